"""`kill -9` in one stage after the other: nothing that was done is done again, nothing is left half done."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import text

from formulacode_dagster.models.items import MONTH_STAGES, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import artifacts
from tests.support.expected_outcomes import expected_outcomes, settled
from tests.support.sampling import TAKES_MINUTES, sampled

MONTH = "2026-02"
# few items with every kind of end: done, rejected by the model and by what they are, failed where others may
REPOSITORIES = ("signal-kit/rollwin", "sample-org/pairheap", "dmoreau/gridpath")
HALF_MAY_FAIL = {"FC_FAILURE_BUDGET": "0.5"}
HOLD = 4242
CALLS_IN_FLIGHT = 8
# as Dagster runs them: neither of these two needs the other
FIRST, SECOND = Stage.ENVIRONMENTS, Stage.PROBLEM_STATEMENTS
ORDER = sampled([{SECOND: FIRST, FIRST: SECOND}.get(stage, stage) for stage in MONTH_STAGES], most=2, of=__name__)
PROCESS_END = (Stage.PUBLISHED_IMAGES, ItemState.SKIPPED, "process_engine")

pytestmark = [
    pytest.mark.slow,
    TAKES_MINUTES,
    pytest.mark.timeout(1200),
]


@contextmanager
def held_at(platform, stage: Stage) -> Iterator[None]:
    """While the block lasts, whoever has done an item of *stage* is held just before it is recorded."""
    with platform.database.transaction() as connection:
        connection.execute(
            text(
                "CREATE OR REPLACE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                f" IF NEW.stage = TG_ARGV[0] THEN PERFORM pg_advisory_xact_lock({HOLD}); END IF; RETURN NEW; END $$"
            )
        )
        connection.execute(
            text(f"CREATE TRIGGER hold BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION hold('{stage.value}')")
        )
    with platform.database.engine.connect() as holder:
        holder.execute(text(f"SELECT pg_advisory_lock({HOLD})"))
        holder.commit()
        yield
        holder.execute(text(f"SELECT pg_advisory_unlock({HOLD})"))
        holder.commit()
    with platform.database.transaction() as connection:
        connection.execute(text("DROP TRIGGER hold ON ledger"))


def somebody_is_held(platform) -> bool:
    with platform.database.transaction() as connection:
        waiting = text("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = :key AND NOT granted")
        return connection.execute(waiting, {"key": HOLD}).first() is not None


def in_stage(platform, stage: Stage) -> bool:
    with platform.database.transaction() as connection:
        label = text("SELECT 1 FROM pg_stat_activity WHERE application_name LIKE :label")
        return connection.execute(label, {"label": f"{stage}/{MONTH} %"}).first() is not None


def building(platform) -> bool:
    return any((platform.home / "builds" / "building").glob("*/venv"))


def measuring(platform) -> bool:
    sessions = (platform.home / "builds" / "sessions").glob("*/repository")
    return in_stage(platform, Stage.MEASUREMENTS) and any(sessions)


def reporting(platform) -> bool:
    return in_stage(platform, Stage.MONTHLY_REPORT)


def processes_of(home: Path) -> list[int]:
    """Processes that were started with *home* in their environment or arguments, this one and Postgres excepted."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                told = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
                program = (folder / "comm").read_text().strip()
            except OSError:
                continue
            if str(home).encode() in told and program != "postgres":
                found.append(int(folder.name))
    return found


def finished(entries: dict[tuple[Stage, str], LedgerEntry]) -> dict[tuple[Stage, str], object]:
    return {
        key: (entry.finished_at, entry.run_id) for key, entry in entries.items() if entry.state is not ItemState.SKIPPED
    }


def postmaster(platform) -> str:
    return (platform.home / "postgres" / "postmaster.pid").read_text().splitlines()[0]


def test_a_month_killed_in_every_stage_ends_as_without_kills(own_platform) -> None:
    platform = own_platform
    platform.settings |= HALF_MAY_FAIL
    platform.database.migrate()
    server = postmaster(platform)
    before: dict[tuple[Stage, str], object] = {}
    with platform.serve(folder=platform.folder_of(*REPOSITORIES)) as served:
        for stage in ORDER:
            kill_in(platform, stage)
            platform.wait_for(lambda: not processes_of(platform.home), "the end of what the run had started")
            now = finished(platform.ledger())
            assert before.items() <= now.items(), f"done again in {stage}"
            before = now
        said = platform.fc_data("run", "--month", MONTH)
        assert said.succeeded, said.text
        assert before.items() <= finished(platform.ledger()).items()
        # what a probe found is kept among the answers
        asked = served.calls("model") + served.probes()
    assert postmaster(platform) == server, "the embedded server outlives those who use it"
    assert outcomes(platform) == expected()
    assert {entry.attempt for entry in platform.ledger().values()} == {1}
    for part in ("building", "sessions"):
        assert list((platform.home / "builds" / part).iterdir()) == []
    with platform.database.transaction() as connection:
        answers = connection.execute(text("SELECT count(*) FROM completions")).scalar_one()
    assert answers <= asked <= answers + CALLS_IN_FLIGHT
    assert_rows_agree_with_the_ledger(platform)
    with dg.DagsterInstance.from_config(str(platform.home / "dagster")) as instance:
        ends = Counter(run.status for run in instance.get_runs())
    assert ends == {dg.DagsterRunStatus.FAILURE: len(ORDER), dg.DagsterRunStatus.SUCCESS: 1}, "none seems to run"


def kill_in(platform, stage: Stage) -> None:
    """Run the month, and kill the process in the middle of *stage*."""
    begun = {Stage.IMAGES: building, Stage.MEASUREMENTS: measuring, Stage.MONTHLY_REPORT: reporting}.get(stage)
    with (
        nullcontext() if begun else held_at(platform, stage),
        platform.started("run", "--month", MONTH) as process,
    ):

        def begun_or_over() -> bool:
            assert process.poll() is None, process.communicate()[0]
            return (begun or somebody_is_held)(platform)

        # a busy machine may take minutes to measure what comes before
        platform.wait_for(begun_or_over, f"{stage} to begin", seconds=600)
        process.kill()
        process.wait()


def expected() -> dict[str, tuple[Stage, ItemState, str]]:
    return {
        expected.item: (expected.last_stage, expected.state, expected.reason)
        for expected in expected_outcomes(MONTH, REPOSITORIES)
    }


def outcomes(platform) -> dict[str, tuple[Stage, ItemState, str]]:
    """The last entry of every item, leaving out that the process engine publishes nothing."""
    order = list(Stage)
    last: dict[str, tuple[Stage, ItemState, str]] = {}
    for (stage, item), entry in sorted(platform.ledger().items(), key=lambda pair: order.index(pair[0][0])):
        if item not in expected():
            continue
        end = (stage, entry.state, settled(entry.reason, expected()[item][2]))
        if end != PROCESS_END:
            last[item] = end
    return last


def assert_rows_agree_with_the_ledger(platform) -> None:
    """Every item that the ledger calls done has its row, and there is no other row."""
    done = {stage: platform.states(stage)[ItemState.DONE] for stage in Stage}
    assert platform.count("merged_pull_requests") == platform.count("changes") == done[Stage.PULL_REQUESTS]
    for stage in (Stage.PROBLEM_STATEMENTS, Stage.ENVIRONMENTS, Stage.IMAGES):
        assert platform.count(stage.value) == done[stage]
    assert platform.count("releases") == 1
    with platform.database.transaction() as connection:
        judged = artifacts.CLASSIFICATIONS.read(connection, MONTH)
        measured = artifacts.MEASUREMENTS.read(connection, MONTH)
        tested = artifacts.CORRECTNESS.read(connection, MONTH)
        (released,) = artifacts.RELEASES.read(connection, MONTH)
    assert sum(row.is_performance for row in judged) == done[Stage.CLASSIFICATIONS]
    assert len(tested) == sum(row.is_faster for row in measured)
    assert sum(not row.broken for row in tested) == done[Stage.MEASUREMENTS] == released.tasks
