from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import cast

import pytest

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.intake import ApiUsage
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner.metering import metered
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.usage import usage_totals


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
        async with metered(run, source):
            assert source.is_open
            if error is not None:
                raise error

    asyncio.run(inside())


def test_what_a_stage_asked_for_is_stored_when_it_ends_and_when_it_fails(database: Database) -> None:
    run = StageRun(database, Stage.PULL_REQUESTS, "2026-02", "run 1")
    use(run, Asking("run 1"))
    for error in (OutsideSystemError("github", "gone"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            use(run, Asking("run 1"), error)
    with database.transaction() as connection:
        (total,) = usage_totals(connection, run.month, "run 1")
    assert (total.requests, total.points) == (21, 27)


def test_the_failure_of_the_stage_is_told_when_its_usage_cannot_be_stored(database: Database) -> None:
    class Gone:
        def transaction(self) -> None:
            raise OutsideSystemError("postgres", "gone")

    run = StageRun(cast("Database", Gone()), Stage.PULL_REQUESTS, "2026-02", "run 1")
    with pytest.raises(ItemFailure, match="the cause"):
        use(run, Asking("run 1"), ItemFailure(FailureKind.TIMEOUT, "the cause"))
    with pytest.raises(OutsideSystemError, match="postgres"):
        use(run, Asking("run 1"))
