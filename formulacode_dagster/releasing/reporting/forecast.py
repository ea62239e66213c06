"""Forecast of a month: how far its pull requests will get and what that costs, by the months before it.

Steps that the month has finished are counted, the others expected: each keeps the share of the step before it that
earlier months kept, together, with its 95 % interval by Clopper and Pearson. What enters a stage costs there what it
cost in earlier months, in a range from the cheapest month to the dearest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise

from pydantic import Field

from formulacode_dagster.measuring.measurement.statistics.chance import clopper_pearson
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Cost, Stage

from .funnel import Funnel

MOST_MONTHS = 6
"""Earlier months that count, the latest ones: repositories and settings change."""
ENTERS = {
    Stage.CLASSIFICATIONS: "candidates",
    Stage.DISCUSSIONS: "performance",
    Stage.PROBLEM_STATEMENTS: "performance",
    Stage.ENVIRONMENTS: "performance",
    Stage.IMAGES: "environments",
    Stage.MEASUREMENTS: "images",
    Stage.PUBLISHED_IMAGES: "right",
    Stage.GRADINGS: "published_images",
}
"""Step whose pull requests a stage's cost depends on; that of other stages depends on all merged ones."""
FIRST = "pull_requests"


class ExpectedRange(Frozen):
    """An expected number and its range."""

    low: float
    expected: float
    high: float

    @classmethod
    def exactly(cls, number: float) -> ExpectedRange:
        """Return a number that is known."""
        return cls(low=number, expected=number, high=number)

    @property
    def is_known(self) -> bool:
        """True if it was counted."""
        return self.low == self.high

    def plus(self, other: ExpectedRange) -> ExpectedRange:
        """Return the sum, both ends together."""
        return ExpectedRange(
            low=self.low + other.low, expected=self.expected + other.expected, high=self.high + other.high
        )

    def times(self, other: ExpectedRange) -> ExpectedRange:
        """Return the product, both ends together."""
        return ExpectedRange(
            low=self.low * other.low, expected=self.expected * other.expected, high=self.high * other.high
        )


class ExpectedStep(Frozen):
    """A step of the funnel: how many pull requests will get so far."""

    name: str
    title: str
    count: ExpectedRange


class ExpectedCost(Frozen):
    """Forecast cost of a stage, in each unit of `Cost` that it has cost before."""

    stage: Stage
    amounts: dict[str, ExpectedRange]


class Overrun(Frozen):
    """A setting's budget that a month is expected to pass."""

    setting: str
    unit: str = Field(description="as in `amount`")
    expected: ExpectedRange
    limit: float


class Forecast(Frozen):
    """Forecast of a month."""

    month: str
    months: tuple[str, ...] = Field(description="the earlier months it is based on")
    steps: tuple[ExpectedStep, ...]
    costs: tuple[ExpectedCost, ...]

    def total(self, unit: str) -> ExpectedRange:
        """Return the sum of all stages in *unit*, a field of `Cost`."""
        amounts = [cost.amounts[unit] for cost in self.costs if unit in cost.amounts]
        return reduce(ExpectedRange.plus, amounts, ExpectedRange.exactly(0))

    def overruns(self, tokens: int, dollars: float | None) -> list[Overrun]:
        """Return which of the models' monthly budgets, *tokens* and *dollars*, will not suffice."""
        asked, answered = self.total("tokens_in"), self.total("tokens_out")
        budgets = (
            Overrun(setting="LLM_TOKENS_PER_MONTH", unit="tokens", expected=asked.plus(answered), limit=tokens),
            Overrun(
                setting="LLM_DOLLARS_PER_MONTH",
                unit="dollars",
                expected=self.total("dollars"),
                limit=math.inf if dollars is None else dollars,
            ),
        )
        return [budget for budget in budgets if budget.expected.expected > budget.limit]


def forecast(current: Funnel, earlier: Sequence[Funnel], pull_requests: int | None = None) -> Forecast:
    """Return what the month of the *current* funnel will come to, by *earlier* months in their order.

    *pull_requests* is how many were merged, if they are not taken in yet; by default as many as in earlier months.
    Raises ConfigurationError if no earlier month took in pull requests.
    """
    history = [funnel for funnel in earlier if funnel.count(FIRST)][-MOST_MONTHS:]
    if not history:
        raise ConfigurationError(
            f"no month before {current.month} was taken in, so there is nothing to expect from",
            remedy="Run a month of a few repositories first: fc-data run --month … --only owner/repo",
        )
    counts = dict(_counts(current, history, pull_requests))
    steps = [ExpectedStep(name=s.name, title=s.title, count=counts[s.name]) for s in current.steps if s.name in counts]
    stages = [stage for stage in Stage if any(_cost_of(funnel, stage) != Cost() for funnel in history)]
    costs = [ExpectedCost(stage=stage, amounts=_amounts(stage, history, counts)) for stage in stages]
    months = tuple(funnel.month for funnel in history)
    return Forecast(month=current.month, months=months, steps=tuple(steps), costs=tuple(costs))


def _counts(
    current: Funnel, history: Sequence[Funnel], pull_requests: int | None
) -> Iterator[tuple[str, ExpectedRange]]:
    merged = [funnel.count(FIRST) for funnel in history]
    known = current.count(FIRST) or pull_requests
    least, most = min(merged), max(merged)
    # the same repositories merge more in one month than in another by chance: two standard deviations of a count
    count = ExpectedRange(
        low=max(0.0, least - 2 * math.sqrt(least)),
        expected=sum(merged) / len(merged),
        high=most + 2 * math.sqrt(most),
    )
    count = count if known is None else ExpectedRange.exactly(known)
    yield FIRST, count
    is_counted = bool(current.count(FIRST))
    for before, step in pairwise(current.steps):
        is_counted = is_counted and _has_ended(current, before.name, step.name)
        if is_counted:
            count = ExpectedRange.exactly(step.count)
        else:
            tried = [funnel for funnel in history if _has_ended(funnel, before.name, step.name)]
            reached, entered = (sum(funnel.count(name) for funnel in tried) for name in (step.name, before.name))
            if not entered:
                return
            low, high = clopper_pearson(reached, entered)
            count = count.times(ExpectedRange(low=low, expected=reached / entered, high=high))
        yield step.name, count


def _has_ended(funnel: Funnel, before: str, name: str) -> bool:
    """Return True if all pull requests that reached the step *before* either reached step *name* or were lost."""
    lost = sum(loss.count for loss in funnel.lost_before(name))
    return bool(funnel.count(before)) and funnel.count(name) + lost >= funnel.count(before)


def _amounts(stage: Stage, history: Sequence[Funnel], counts: Mapping[str, ExpectedRange]) -> dict[str, ExpectedRange]:
    step = ENTERS.get(stage, FIRST)
    entered = [(funnel, funnel.count(step)) for funnel in history if funnel.count(step)]
    if step not in counts or not entered:
        return {}
    amounts = {}
    for unit in Cost.model_fields:
        spent = [(float(getattr(_cost_of(funnel, stage), unit)), count) for funnel, count in entered]
        if total := sum(cost for cost, _ in spent):
            each = [cost / count for cost, count in spent]
            usual = total / sum(count for _, count in spent)
            amounts[unit] = counts[step].times(ExpectedRange(low=min(each), expected=usual, high=max(each)))
    return amounts


def _cost_of(funnel: Funnel, stage: Stage) -> Cost:
    return next((each.cost for each in funnel.costs if each.stage is stage), Cost())
