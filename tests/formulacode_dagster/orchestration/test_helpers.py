"""Helper runs: they work on a stage that another run leads, and are launched as long as some are missing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import Engine, event

from assets.materialize import HELPS
from assets.measurements import measurements
from assets.published_images import published_images
from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.items import ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.reasons import SkipReason
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.runner.claims import ClaimableItem, Worker
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import IMAGES, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.checks import record_verdict, verdicts
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from formulacode_dagster.orchestration.helpers import MOST_LAUNCHES, helper, helpers_sensor
from resources.defaults import default_resources
from resources.postgres import PostgresResource
from tests.records import make_change, make_image, make_merged
from tests.support.gates import open_gates

MONTH, STAGE = "2026-02", Stage.PUBLISHED_IMAGES
CONFIG = {"ops": {"help_stage": {"config": {"stage": STAGE.value}}}}
LEADER = Worker(STAGE, MONTH, "leader", timedelta(minutes=1))


@pytest.fixture
def month(database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A month with two measured images in folders of this machine, which no registry takes."""
    for name, value in {
        "FC_DATABASE_URL": database_url,
        "FC_HOME": str(tmp_path),
        "FC_ENGINE": "process",
        "FC_HELPER_RUNS": "2",
        "FC_RETRY_SECONDS": "0",
    }.items():
        monkeypatch.setenv(name, value)
    with database.transaction() as connection:
        for number in (1, 2):
            facts = make_merged(month=MONTH, number=number)
            MERGED_PULL_REQUESTS.save(connection, [facts])
            save_changes(connection, [(make_change(b"diff\n", month=MONTH, number=number), b"diff\n")])
            image = make_image(month=MONTH, number=number, engine=EngineName.PROCESS)
            IMAGES.save(connection, [image])
            entry = LedgerEntry(stage=Stage.MEASUREMENTS, month=MONTH, item=facts.item, state=ItemState.DONE)
            ledger.record(connection, [entry])
    open_gates(database, published_images, MONTH)
    return database


def entries(database: Database) -> dict[str, LedgerEntry]:
    with database.transaction() as connection:
        return {entry.item: entry for entry in ledger.entries_of(connection, MONTH, STAGE)}


def materialize(instance: dg.DagsterInstance, **config: object) -> dg.ExecuteInProcessResult:
    resources = default_resources()
    return dg.materialize(
        [published_images.definition],
        partition_key=MONTH,
        instance=instance,
        resources={name: resources[name] for name in ("postgres", "containers", "registry")},
        run_config={"ops": {"published_images": {"config": config}}},
        raise_on_error=False,
    )


def help_out(instance: dg.DagsterInstance, stage: str = STAGE.value) -> dg.ExecuteInProcessResult:
    return helper.execute_in_process(
        partition_key=MONTH,
        instance=instance,
        resources=default_resources(),
        run_config={"ops": {"help_stage": {"config": {"stage": stage}}}},
        raise_on_error=False,
    )


def share(database: Database, inputs: dict[str, str], run_id: str = "leader") -> None:
    with database.transaction() as connection:
        items = [ClaimableItem(item, given, "Acme/tiny", 0.0) for item, given in inputs.items()]
        claims.open_stage(connection, LEADER, run_id, RunOptions(), items)


@pytest.mark.slow
def test_a_helper_does_what_is_left_and_materializes_nothing(
    month: Database, dagster_instance: dg.DagsterInstance
) -> None:
    alone = materialize(dagster_instance)
    assert alone.success
    asked = {item: entry.inputs for item, entry in entries(month).items()}
    assert len(asked) == 2
    with month.transaction() as connection:
        ledger.forget(connection, MONTH, STAGE, list(asked))
        assert claims.shared_stages(connection) == [], "who led it shares it no longer"
    share(month, asked)
    done = help_out(dagster_instance)
    assert done.success
    helped = entries(month)
    assert {entry.run_id for entry in helped.values()} == {done.run_id}
    assert {entry.reason for entry in helped.values()} == {SkipReason.PROCESS_ENGINE}
    assert len(dagster_instance.fetch_materializations(published_images.definition.key, limit=5).records) == 1


def test_without_a_leader_a_helper_does_nothing(month: Database, dagster_instance: dg.DagsterInstance) -> None:
    done = help_out(dagster_instance)
    assert done.success
    assert entries(month) == {}


@pytest.mark.slow
def test_a_stage_that_is_not_shared_is_named(month: Database, dagster_instance: dg.DagsterInstance) -> None:
    with month.transaction() as connection:
        claims.open_stage(
            connection, Worker(Stage.REPLAYS, MONTH, "leader", timedelta(minutes=1)), "leader", RunOptions(), []
        )
    done = help_out(dagster_instance, Stage.REPLAYS.value)
    assert not done.success
    failure = done.get_step_failure_events()[0].step_failure_data.user_failure_data
    assert failure is not None
    assert "replays is not a shared stage" in str(failure.description)


@pytest.mark.slow
def test_a_second_launch_joins_the_first(month: Database, dagster_instance: dg.DagsterInstance) -> None:
    judged = CheckVerdict(stage=STAGE, month=MONTH, check="any", passed=True, blocking=True, summary="good")
    alone = materialize(dagster_instance)
    asked = {item: entry.inputs for item, entry in entries(month).items()}
    with month.transaction() as connection:
        ledger.forget(connection, MONTH, STAGE, list(asked))
    with month.month_lock(STAGE, MONTH, "leader"):
        refused = materialize(dagster_instance)
        assert not refused.success, "nothing is shared yet"
        share(month, asked)
        with month.transaction() as connection:
            record_verdict(connection, judged, "leader")
        joined = materialize(dagster_instance)
    assert alone.success
    assert joined.success
    assert {entry.run_id for entry in entries(month).values()} == {joined.run_id}
    with month.transaction() as connection:
        assert judged in verdicts(connection, MONTH), "only who leads forgets verdicts"


def test_only_some_stages_are_shared() -> None:
    assert measurements.is_shared
    assert published_images.is_shared


def asked_for(instance: dg.DagsterInstance) -> list[object]:
    with dg.build_sensor_context(instance=instance, resources={"postgres": PostgresResource()}) as context:
        return list(helpers_sensor(context))


@pytest.mark.parametrize(
    ("free", "under_way", "ended", "asked"),
    [(5, 0, 0, 2), (1, 0, 0, 1), (5, 1, 3, 1), (5, 2, 0, 0), (5, 0, 2 * MOST_LAUNCHES, 0)],
)
def test_as_many_helpers_are_launched_as_are_missing(
    month: Database,
    dagster_instance: dg.DagsterInstance,
    free: int,
    under_way: int,
    ended: int,
    asked: int,
) -> None:
    share(month, {f"Acme/tiny#{number}": "v1" for number in range(free)})
    name = f"{STAGE} {MONTH} leader"
    for status, count in ((dg.DagsterRunStatus.STARTED, under_way), (dg.DagsterRunStatus.FAILURE, ended)):
        for _ in range(count):
            dagster_instance.create_run_for_job(helper, run_config=CONFIG, status=status, tags={HELPS: name})
    requests = [request for request in asked_for(dagster_instance) if isinstance(request, dg.RunRequest)]
    assert len(requests) == asked
    assert len({request.run_key for request in requests}) == asked
    assert all((request.partition_key, request.tags[HELPS]) == (MONTH, name) for request in requests)


@pytest.mark.parametrize(("at_work", "starting", "free", "asked"), [(3, 0, 3, 1), (1, 1, 1, 0), (1, 1, 2, 1)])
def test_running_helpers_take_no_free_items_and_starting_ones_do(
    month: Database,
    dagster_instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    at_work: int,
    starting: int,
    free: int,
    asked: int,
) -> None:
    monkeypatch.setenv("FC_HELPER_RUNS", "4")
    # the instance has runs of earlier tests
    run_id = f"leader of {at_work} {starting} {free}"
    share(month, {f"Acme/tiny#{number}": "v1" for number in range(at_work + free)}, run_id)
    tags = {HELPS: f"{STAGE} {MONTH} {run_id}"}
    for _ in range(starting):
        dagster_instance.create_run_for_job(helper, run_config=CONFIG, status=dg.DagsterRunStatus.STARTING, tags=tags)
    for _ in range(at_work):
        run = dagster_instance.create_run_for_job(
            helper, run_config=CONFIG, status=dg.DagsterRunStatus.STARTED, tags=tags
        )
        with month.transaction() as connection:
            assert claims.claim(connection, Worker(STAGE, MONTH, f"{run.run_id} 1", timedelta(minutes=1)))
    assert sum(isinstance(request, dg.RunRequest) for request in asked_for(dagster_instance)) == asked


@pytest.mark.usefixtures("month")
def test_no_helper_is_asked_for_where_runs_work_alone(
    dagster_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_HELPER_RUNS", "0")
    (skipped,) = asked_for(dagster_instance)
    assert isinstance(skipped, dg.SkipReason)
    assert "FC_HELPER_RUNS is 0" in str(skipped.skip_message)


def test_two_schedulers_at_once_ask_for_the_same_helpers(month: Database, dagster_instance: dg.DagsterInstance) -> None:
    """Dagster launches what has one run key once."""
    share(month, {f"Acme/tiny#{number}": "v1" for number in range(5)}, "led twice")
    first, second = ([request.run_key for request in asked_for(dagster_instance)] for _ in range(2))
    assert first == second
    assert len(set(first)) == 2


@pytest.mark.slow
def test_a_run_that_works_alone_asks_nothing_of_claims(
    month: Database, dagster_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked_of_claims() -> list[str]:
        asked: list[str] = []

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            asked.extend(name for name in ("claims", "shared_stages") if name in statement)

        event.listen(Engine, "before_cursor_execute", note)
        try:
            assert materialize(dagster_instance).success
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        return asked

    assert asked_of_claims(), "one that shares does"
    monkeypatch.setenv("FC_HELPER_RUNS", "0")
    with month.transaction() as connection:
        ledger.forget(connection, MONTH, STAGE, list(entries(month)))
    assert asked_of_claims() == []
    assert len(entries(month)) == 2
