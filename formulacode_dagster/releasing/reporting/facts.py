"""Facts of a monthly report, read from the store."""

from __future__ import annotations

from collections import Counter

from pydantic import Field
from sqlalchemy import Connection

from formulacode_dagster.models.attempt import AgentUse
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.check import Acceptance, CheckVerdict
from formulacode_dagster.models.items import Cost, ItemState, Stage
from formulacode_dagster.models.measurement import Metric, Source, TaskProfile, Verdict
from formulacode_dagster.models.month import FIRST_MONTH, Month
from formulacode_dagster.models.release import Release, ReplayNote, ReplayVerdict, standing
from formulacode_dagster.operating.store import artifacts, ledger
from formulacode_dagster.operating.store.acceptances import acceptances
from formulacode_dagster.operating.store.attempts import agents_used
from formulacode_dagster.operating.store.checks import verdicts
from formulacode_dagster.operating.store.measurements import replays_of
from formulacode_dagster.operating.store.pull_requests import items_by_key
from formulacode_dagster.operating.store.spending import spending_of
from formulacode_dagster.operating.store.usage import UsageTotal, usage_totals
from formulacode_dagster.releasing.dataset.validity import Validity, validity

from .funnel import Funnel, count_funnel

_MEASURED = (ItemState.DONE, ItemState.REJECTED)


class TaskSpeedup(Frozen):
    """One measured pull request, for the picture of the speed-ups."""

    item: str
    category: str
    difficulty: str
    verdict: Verdict
    metric: Metric = Field(default=Metric.TIME, description="metric of the speed-up")
    speedup: float = Field(description="geometric mean over all its relevant benchmarks of that metric")
    low: float = Field(description="lower bound of its 95 % interval")
    high: float = Field(description="upper bound of it")
    control: float = Field(description="the same of base against base")
    ratios: tuple[float, ...] = Field(default=(), description="geometric mean of each benchmark")
    benchmarks: int
    source: Source = Field(description="their source")
    faster: tuple[str, ...] = Field(default=(), description="benchmarks that really are faster")
    slower: tuple[str, ...] = Field(default=(), description="benchmarks that really are slower")
    needs: str = Field(default="", description="requirement for a conclusive result")


class ReportFacts(Frozen):
    """Everything the report of a month says."""

    month: str
    funnel: Funnel
    measured: tuple[TaskSpeedup, ...]
    checks: tuple[CheckVerdict, ...]
    release: Release | None
    accepted: tuple[Acceptance, ...] = Field(default=(), description="failures that people accepted")
    replays: dict[str, tuple[ReplayNote, ...]] = Field(default_factory=dict, description="of each task, oldest first")
    validity: tuple[Validity, ...] = Field(default=(), description="of the replayed tasks by machine and CPU family")
    agents: tuple[tuple[str, AgentUse], ...] = Field(default=(), description="items that agents were asked for")
    usage: tuple[UsageTotal, ...] = Field(default=(), description="GitHub requests of all its runs")
    profiles: dict[str, TaskProfile] = Field(
        default_factory=dict, description="stacks of base and oracle by item, for profiled items"
    )

    @property
    def replayed(self) -> dict[ReplayVerdict, int]:
        """Number of tasks by state after all their replays."""
        stands = Counter(standing(note.verdict for note in notes) for notes in self.replays.values())
        return {verdict: stands[verdict] for verdict in ReplayVerdict}

    @property
    def cost(self) -> Cost:
        """The whole month's cost."""
        return self.funnel.cost


def month_facts(connection: Connection, month: Month, destination: str) -> ReportFacts:
    """Read the facts of *month*, with its newest release at the destination of that name.

    A month before the first, or one never materialized, has none.
    """
    key = month.key
    if key < FIRST_MONTH:
        return ReportFacts(month=key, funnel=count_funnel(key, []), measured=(), checks=(), release=None)
    entries = ledger.entries_of(connection, key)
    # the row of a measurement that was repeated and failed is still there; it is no result any more
    stands = {entry.item for entry in entries if entry.stage is Stage.MEASUREMENTS and entry.state in _MEASURED}
    names = items_by_key(connection, key)
    classified = {(row.repository_id, row.number): row for row in artifacts.CLASSIFICATIONS.read(connection, key)}
    measured = []
    for row in artifacts.MEASUREMENTS.read(connection, key):
        verdict = classified.get((row.repository_id, row.number))
        name = names.get((row.repository_id, row.number))
        if verdict is None or name not in stands:
            continue
        measured.append(
            TaskSpeedup(
                item=name,
                category=verdict.category.value,
                difficulty=verdict.difficulty.value,
                verdict=row.verdict,
                metric=row.metric,
                speedup=row.speedup,
                low=row.low,
                high=row.high,
                control=row.control_speedup,
                ratios=tuple(result.speedup for result in row.results),
                benchmarks=len(row.results),
                source=row.provenance.source,
                faster=row.faster,
                slower=row.slower,
                needs=row.needs,
            )
        )
    usage = usage_totals(connection, key)
    releases = [row for row in artifacts.RELEASES.read(connection, key) if row.destination == destination]
    replays = {task_id: tuple(replay.note for replay in made) for task_id, made in replays_of(connection, key).items()}
    return ReportFacts(
        month=key,
        funnel=count_funnel(key, entries, usage, spending_of(connection, key)),
        measured=tuple(sorted(measured, key=lambda task: (-task.speedup, task.item))),
        checks=tuple(verdicts(connection, key)),
        agents=tuple(
            (names.get((use.repository_id, use.number), f"#{use.number}"), use) for use in agents_used(connection, key)
        ),
        release=max(releases, key=lambda release: release.number, default=None),
        accepted=tuple(acceptances(connection, key)),
        replays=replays,
        validity=validity(replays),
        usage=tuple(usage),
        profiles={
            name: row
            for row in artifacts.PROFILES.read(connection, key)
            if (name := names.get((row.repository_id, row.number))) in stands
        },
    )
