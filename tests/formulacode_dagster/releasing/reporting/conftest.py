"""A month by hand: its ledger, its measured tasks, its checks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.check import Acceptance, CheckVerdict
from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import Cost, LedgerEntry, Stage
from formulacode_dagster.models.measurement import Source, Verdict
from formulacode_dagster.models.release import Release
from formulacode_dagster.operating.store.usage import UsageTotal
from formulacode_dagster.releasing.reporting.facts import ReportFacts, TaskSpeedup
from formulacode_dagster.releasing.reporting.funnel import count_funnel
from tests.support.entries import MONTH, enter

STARTED = datetime(2026, 3, 25, tzinfo=UTC)


@pytest.fixture(scope="session")
def asked() -> tuple[ApiUsage, ...]:
    """GitHub requests of three runs; the second one was forced to repeat the first."""

    def row(run: str, stage: Stage, resource: str, **figures: float) -> ApiUsage:
        told = {"run_id": run, "stage": stage, "month": MONTH, "resource": resource, "started_at": STARTED}
        return ApiUsage.model_validate(told | figures)

    return (
        row("1", Stage.REPOSITORIES, "code_search", requests=20, points=18, unchanged=2, waited_seconds=120.5),
        row("1", Stage.PULL_REQUESTS, "graphql", requests=30, points=40, seconds=9.25, bytes=2_500_000),
        row("2", Stage.PULL_REQUESTS, "graphql", requests=31, points=41, retries=1, limit_hits=1),
    )


@pytest.fixture(scope="session")
def usage() -> tuple[UsageTotal, ...]:
    """The same, summed."""
    none = {"unchanged": 0, "retries": 0, "limit_hits": 0, "seconds": 0.0, "waited_seconds": 0.0, "bytes": 0}
    return (
        UsageTotal.model_validate(
            none
            | {"stage": Stage.REPOSITORIES, "resource": "code_search", "runs": 1, "requests": 20, "points": 18}
            | {"unchanged": 2, "waited_seconds": 120.5}
        ),
        UsageTotal.model_validate(
            none
            | {"stage": Stage.PULL_REQUESTS, "resource": "graphql", "runs": 2, "requests": 61, "points": 81}
            | {"retries": 1, "limit_hits": 1, "seconds": 9.25, "bytes": 2_500_000}
        ),
    )


@pytest.fixture(scope="session")
def ledger_of_a_month() -> tuple[LedgerEntry, ...]:
    """Ten pull requests, each with an end of its own, two of them tasks."""
    entries = [
        enter(Stage.REPOSITORIES, "a/b", api_points=3, api_requests=2),
        enter(Stage.REPOSITORIES, "a/fork", "rejected fork"),
        enter(Stage.PULL_REQUESTS, "a/b", api_points=5, api_requests=5),
        enter(Stage.PUBLISHED_DATASET, "release", seconds=1.0),
    ]
    told = {
        1: ("done", "done", "done", "done", "done"),
        2: ("done", "done", "done", "done", "done"),
        3: ("done", "done", "done", "done", "rejected no_speedup"),
        4: ("done", "done", "done", "done", "failed timeout"),
        5: ("done", "done", "done", "failed build"),
        6: ("done", "done", "failed unresolvable"),
        7: ("done", "rejected not_performance"),
        8: ("done", "rejected title"),
        9: ("done", "rejected no_core_file"),
        10: ("failed patch_mismatch",),
    }
    stages = (Stage.PULL_REQUESTS, Stage.CLASSIFICATIONS, Stage.ENVIRONMENTS, Stage.IMAGES, Stage.MEASUREMENTS)
    for number, ends in told.items():
        for stage, said in zip(stages, ends, strict=False):
            asked = stage is Stage.CLASSIFICATIONS and "title" not in said and "core" not in said
            cost = {"model_calls": 1, "tokens_in": 100, "dollars": 0.5} if asked else {"seconds": 1.5}
            entries.append(enter(stage, f"a/b#{number}", said, **cost))
    for number in (1, 2):
        entries.append(enter(Stage.PUBLISHED_IMAGES, f"a/b#{number}", "skipped process_engine"))
        entries.append(enter(Stage.PUBLISHED_DATASET, f"a/b#{number}"))
    return tuple(entries)


def spent_on(entries: Sequence[LedgerEntry]) -> dict[Stage, Cost]:
    """Cost of each stage, if none of *entries* had an attempt before."""
    stages = dict.fromkeys(entry.stage for entry in entries)
    return {stage: Cost.total(entry.cost for entry in entries if entry.stage is stage) for stage in stages}


@pytest.fixture
def facts(ledger_of_a_month: tuple[LedgerEntry, ...], usage: tuple[UsageTotal, ...]) -> ReportFacts:
    """The month, with what was measured, judged and released."""
    fast = TaskSpeedup(
        item="a/b#1",
        category="cache_and_reuse",
        difficulty="easy",
        verdict=Verdict.FASTER,
        speedup=12.34,
        low=11.0,
        high=13.0,
        control=1.01,
        ratios=(20.0, 7.6, 1.0),
        benchmarks=3,
        source=Source.OWN_TESTS,
        faster=("bench.a", "bench.b"),
    )
    slow = fast.model_copy(
        update={
            "item": "a/b#3",
            "verdict": Verdict.UNCHANGED,
            "speedup": 1.02,
            "low": 1.0,
            "high": 1.03,
            "ratios": (1.02,),
            "faster": (),
        }
    )
    shut = CheckVerdict(
        stage=Stage.IMAGES,
        month=MONTH,
        check="imports",
        passed=False,
        blocking=True,
        summary="1 of 4 images does not import",
        offenders=("a/b#5",),
    )
    release = Release(
        month=MONTH,
        tag="formulacode@2026-03",
        destination="hub:owner/name",
        revision="c0ffee" * 6 + "0000",
        tasks=2,
        task_ids=("a__b-1", "a__b-2"),
        rows_sha256="r",
        read_back_sha256="r",
        schema_sha256="s",
        released_at=datetime(2026, 3, 25, 2, 30, tzinfo=UTC),
    )
    open_gate = shut.model_copy(update={"check": "declared_commit", "passed": True, "summary": "all", "offenders": ()})
    accepted = Acceptance(
        month="2026-02",
        stage=Stage.IMAGES,
        accepted_at=datetime(2026, 3, 5, tzinfo=UTC),
        accepted_by="Ada",
        reason="it is theirs",
        summary="1 of 4 pull requests failed",
        failed=1,
        done=3,
    )
    return ReportFacts(
        month=MONTH,
        funnel=count_funnel(MONTH, ledger_of_a_month, usage, spent_on(ledger_of_a_month)),
        measured=(fast, slow),
        checks=(open_gate, shut),
        release=release,
        accepted=(accepted,),
        usage=usage,
    )


@pytest.fixture
def nothing() -> ReportFacts:
    """The month before the first."""
    return ReportFacts(month="2026-01", funnel=count_funnel("2026-01", []), measured=(), checks=(), release=None)
