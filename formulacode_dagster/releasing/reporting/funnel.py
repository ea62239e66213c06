"""The funnel of a month: how many items came in, how many went out, and why the others did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.items import FROM_A_RELEASE, Cost, ItemKind, ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reasons import NOT_FASTER, SCREENED_OUT, WRONG
from formulacode_dagster.operating.store.usage import UsageTotal

_STEP_MISSED = {
    Stage.PULL_REQUESTS: "candidates",
    Stage.DISCUSSIONS: "published",
    Stage.PROBLEM_STATEMENTS: "published",
    Stage.PUBLISHED_DATASET: "published",
}

_MEASURED_BUT: dict[str, str] = {
    **{reason.value: "faster" for reason in NOT_FASTER},
    **{reason.value: "right" for reason in WRONG},
}
"""The step that a measured pull request missed, by its reason; with any other it was not measured."""


_OPTIONAL = ("published_images", "gradings")
"""Steps that do not apply if none took them and later ones were taken: without Docker, no image is published."""


class FunnelStep(Frozen):
    """One step: how many pull requests got so far."""

    name: str
    title: str
    count: int


class Loss(Frozen):
    """Pull requests that ended in one stage for one reason."""

    stage: Stage
    state: ItemState
    reason: str
    step: str = Field(description="name of the step they did not reach")
    count: int
    examples: tuple[str, ...] = Field(description="at most three items")


class StageCost(Frozen):
    """Consumption of one stage of the month, over all its runs and attempts."""

    stage: Stage
    cost: Cost


class Funnel(Frozen):
    """A month, counted from the ledger."""

    month: str
    steps: tuple[FunnelStep, ...] = Field(description="without those that do not apply, as images without Docker")
    losses: tuple[Loss, ...]
    costs: tuple[StageCost, ...]

    def count(self, name: str) -> int:
        """Pull requests that reached step *name*; 0 for a step that does not apply."""
        return next((step.count for step in self.steps if step.name == name), 0)

    def lost_before(self, name: str) -> tuple[Loss, ...]:
        """Reasons that kept pull requests from step *name*, most frequent first."""
        return tuple(sorted((loss for loss in self.losses if loss.step == name), key=lambda loss: -loss.count))

    def lost(self, like: Loss) -> int:
        """Pull requests that ended the way those of *like* did, which may be another month's."""
        same = (like.stage, like.state, like.reason)
        return sum(loss.count for loss in self.losses if (loss.stage, loss.state, loss.reason) == same)

    @property
    def is_empty(self) -> bool:
        """True if this month was never materialized."""
        return not self.costs and not self.losses and not any(step.count for step in self.steps)

    @property
    def cost(self) -> Cost:
        """The whole month's cost."""
        return Cost.total(stage.cost for stage in self.costs)


def count_funnel(
    month: str,
    entries: Sequence[LedgerEntry],
    usage: Sequence[UsageTotal] = (),
    spending: Mapping[Stage, Cost] | None = None,
) -> Funnel:
    """Return the funnel of *month* from all its ledger *entries*, with its GitHub *usage*.

    *spending* is the other cost of its stages, over all runs and attempts: a forced run replaces the entries of the one
    before it, but not the cost.
    """
    items = [entry for entry in entries if entry.kind is ItemKind.PULL_REQUEST]

    done = Counter(entry.stage for entry in items if entry.state is ItemState.DONE)
    asked = [entry for entry in items if entry.state is not ItemState.SKIPPED]
    merged = sum(entry.stage is Stage.PULL_REQUESTS for entry in asked)
    candidates = sum(entry.stage is Stage.CLASSIFICATIONS and entry.reason not in SCREENED_OUT for entry in asked)
    others = sum(entry.stage is Stage.MEASUREMENTS and entry.reason in NOT_FASTER for entry in items)
    wrong = sum(entry.stage is Stage.MEASUREMENTS and entry.reason in WRONG for entry in items)
    counted = (
        ("pull_requests", "merged pull requests", merged),
        ("candidates", "candidates", candidates),
        ("performance", "performance PRs", done[Stage.CLASSIFICATIONS]),
        ("environments", "environments", done[Stage.ENVIRONMENTS]),
        ("images", "images", done[Stage.IMAGES]),
        ("measured", "measured", done[Stage.MEASUREMENTS] + others + wrong),
        ("faster", "really faster", done[Stage.MEASUREMENTS] + wrong),
        ("right", "right by their tests", done[Stage.MEASUREMENTS]),
        ("published_images", "images published", done[Stage.PUBLISHED_IMAGES]),
        ("gradings", "gradable", done[Stage.GRADINGS]),
        ("published", "tasks published", done[Stage.PUBLISHED_DATASET]),
    )
    steps = tuple(
        FunnelStep(name=name, title=title, count=count)
        for place, (name, title, count) in enumerate(counted)
        if count or name not in _OPTIONAL or not any(later for _, _, later in counted[place + 1 :])
    )
    return Funnel(month=month, steps=steps, losses=_losses(items), costs=_costs(spending or {}, usage))


def _losses(items: Sequence[LedgerEntry]) -> tuple[Loss, ...]:
    # results of a replay or an export are counted separately: the task is released in any case
    lost = [entry for entry in items if entry.state is not ItemState.DONE and entry.stage not in FROM_A_RELEASE]
    counted = Counter((entry.stage, entry.state, entry.reason) for entry in lost)
    order = list(Stage)
    return tuple(
        Loss(
            stage=stage,
            state=state,
            reason=reason,
            step=_step_missed(stage, state, reason),
            count=count,
            examples=tuple(e.item for e in lost if (e.stage, e.state, e.reason) == (stage, state, reason))[:3],
        )
        for (stage, state, reason), count in sorted(
            counted.items(), key=lambda pair: (order.index(pair[0][0]), -pair[1], pair[0][2])
        )
    )


def _step_missed(stage: Stage, state: ItemState, reason: str) -> str:
    if stage is Stage.CLASSIFICATIONS:
        return "candidates" if state is ItemState.SKIPPED or reason in SCREENED_OUT else "performance"
    if stage is Stage.MEASUREMENTS:
        return _MEASURED_BUT.get(reason, "measured")
    return _STEP_MISSED.get(stage, stage.value)


def _costs(spending: Mapping[Stage, Cost], usage: Sequence[UsageTotal]) -> tuple[StageCost, ...]:
    stages = {*spending, *(total.stage for total in usage)}
    return tuple(
        StageCost(
            stage=stage,
            cost=spending.get(stage, Cost()).model_copy(
                update={
                    "api_points": sum(total.points for total in usage if total.stage is stage),
                    "api_requests": sum(total.requests for total in usage if total.stage is stage),
                }
            ),
        )
        for stage in Stage
        if stage in stages
    )
