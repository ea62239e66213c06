from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import dagster as dg
import pytest

from assets.materialize import ItemConfig, booked, require_done, stage_run, usage_metadata
from assets.partitions import MONTHS
from assets.repositories import repositories
from formulacode_dagster.items.progress import Silence, listener
from formulacode_dagster.items.work import StageRun, StageSummary
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.store.database import Database
from resources.postgres import PostgresResource

FAILED = LedgerEntry(
    stage=Stage.REPOSITORIES,
    month="2026-02",
    item="discovery",
    state=ItemState.FAILED,
    reason="incomplete",
    detail="5 of 6 files",
)


def test_a_stage_that_cannot_do_without_an_item_fails_with_that_item() -> None:
    with pytest.raises(ItemFailure, match="5 of 6 files"):
        require_done(StageSummary(standing=(FAILED,)))
    require_done(StageSummary(standing=(FAILED.model_copy(update={"state": ItemState.DONE}),)))


def test_a_dry_run_is_not_failed_by_what_an_earlier_run_left() -> None:
    require_done(StageSummary(standing=(FAILED,), would_do=("discovery",), dry_run=True))


class Asking:
    """A source that asked GitHub one thing."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.is_open = False

    async def __aenter__(self) -> Asking:
        self.is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.is_open = False

    def usage(self) -> tuple[ApiUsage, ...]:
        return (
            ApiUsage(
                run_id=self.run_id,
                stage=Stage.PULL_REQUESTS,
                month="2026-02",
                resource="graphql",
                started_at=datetime.now(tz=UTC),
                requests=7,
                points=9,
                waited_seconds=61.26,
            ),
        )


def use(run: StageRun, source: Asking, error: BaseException | None = None) -> None:
    async def inside() -> None:
        async with booked(run, source):
            assert source.is_open
            if error is not None:
                raise error

    asyncio.run(inside())


def test_what_a_stage_asked_for_is_stored_when_it_ends_and_when_it_fails(database: Database) -> None:
    run = StageRun(database, Stage.PULL_REQUESTS, "2026-02", "run 1")
    assert usage_metadata(run) == {}
    use(run, Asking("run 1"))
    for error in (OutsideSystemError("github", "gone"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            use(run, Asking("run 1"), error)
    use(run, Asking("another"))
    found = usage_metadata(run)
    assert (found["github_requests"], found["github_points"], found["github_waited_seconds"]) == (21, 27, 183.8)
    (record,) = found["github"].records
    assert record.data["resource"] == "graphql"


def test_the_failure_of_the_stage_is_told_when_its_books_cannot_be_kept(database: Database) -> None:
    class Gone:
        def transaction(self) -> None:
            raise OutsideSystemError("postgres", "gone")

    run = StageRun(cast("Database", Gone()), Stage.PULL_REQUESTS, "2026-02", "run 1")
    with pytest.raises(ItemFailure, match="the cause"):
        use(run, Asking("run 1"), ItemFailure(FailureKind.TIMEOUT, "the cause"))
    with pytest.raises(OutsideSystemError, match="postgres"):
        use(run, Asking("run 1"))


def test_a_wait_and_a_warning_stand_in_the_log_of_the_run(database_url: str, tmp_path: Path) -> None:
    postgres = PostgresResource(url=database_url, home=str(tmp_path))

    @dg.asset(partitions_def=MONTHS)
    def probe(context) -> None:
        with stage_run(context, postgres, repositories, ItemConfig()):
            listener().waiting(Stage.REPOSITORIES, "GitHub's limit of graphql requests", 754.0)
            listener().warn(Stage.REPOSITORIES, "the cache was damaged")

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([probe], partition_key="2026-02", instance=instance)
        said = [entry.user_message for entry in instance.all_logs(result.run_id)]
    postgres.teardown_after_execution(dg.build_init_resource_context())
    assert any(text.startswith("waiting 12 min 34 s, until ") for text in said)
    assert "the cache was damaged" in said
    assert isinstance(listener(), Silence)
