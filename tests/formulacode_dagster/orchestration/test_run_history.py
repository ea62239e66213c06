"""Runs of old go, and with them not one state that the UI shows."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from formulacode_dagster.orchestration.run_history import PrunedRuns, prune_runs

MONTHS = dg.StaticPartitionsDefinition(["2026-01", "2026-02", "2026-03"])
LATER = datetime.now(tz=UTC) + timedelta(days=200)


class Ends(dg.Config):
    fails: bool = False
    holds: bool = True


@dg.asset(partitions_def=MONTHS, check_specs=[dg.AssetCheckSpec("holds", asset="images", partitions_def=MONTHS)])
def images(config: Ends) -> Iterator[Any]:
    if config.fails:
        raise dg.Failure(description="asked for")
    yield dg.MaterializeResult(check_results=[dg.AssetCheckResult(passed=config.holds)])


@dg.asset
def operations() -> None:
    """Without partitions."""


@dg.op
def tidy() -> None:
    """Makes nothing."""


@dg.job
def tidying() -> None:
    tidy()


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """SQLite, as a home has it."""
    with dg.DagsterInstance.local_temp(
        str(tmp_path_factory.mktemp("home")), {"telemetry": {"enabled": False}}
    ) as local:
        yield local


@pytest.fixture(autouse=True)
def emptied(instance: dg.DagsterInstance) -> Iterator[None]:
    yield
    for run in instance.get_runs():
        instance.delete_run(run.run_id)
    for asset in instance.get_asset_keys():
        instance.wipe_assets([asset])


def make(instance: dg.DagsterInstance, month: str, *, tags: Mapping[str, str] | None = None, **ends: bool) -> str:
    config = {"ops": {"images": {"config": ends}}}
    return dg.materialize(
        [images], partition_key=month, instance=instance, run_config=config, raise_on_error=False, tags=tags
    ).run_id


def shown(instance: dg.DagsterInstance) -> dict[str, Any]:
    """The UI's view of the assets."""
    key = images.key
    states = instance.get_status_by_partition(key, MONTHS.get_partition_keys(), MONTHS) or {}
    (check,) = images.check_keys
    checks = instance.event_log_storage.get_asset_check_partition_info([check])
    return {
        "partitions": {month: state and state.value for month, state in states.items()},
        "checks": {info.partition_key: info.latest_execution_status.value for info in checks},
        "operations": bool(instance.get_latest_materialization_event(operations.key)),
    }


def prune(instance: dg.DagsterInstance, days: int = 180, *, dry_run: bool = False) -> PrunedRuns:
    return prune_runs(instance, days, now=LATER, dry_run=dry_run)


def left(instance: dg.DagsterInstance) -> set[str]:
    return {run.run_id for run in instance.get_runs()}


@pytest.mark.slow
def test_what_the_ui_shows_stays_and_all_else_of_old_goes(instance: dg.DagsterInstance) -> None:
    superseded = make(instance, "2026-01")
    made = make(instance, "2026-01", holds=False)
    failed_before, failed = (make(instance, "2026-02", fails=True) for _ in range(2))
    earlier, operated = (dg.materialize([operations], instance=instance).run_id for _ in range(2))
    tidied = tidying.execute_in_process(instance=instance).run_id
    before = shown(instance)
    assert before == {
        "partitions": {"2026-01": "MATERIALIZED", "2026-02": "FAILED", "2026-03": None},
        "checks": {"2026-01": "FAILED", "2026-02": "PLANNED"},
        "operations": True,
    }
    everything = left(instance)
    told = prune(instance, dry_run=True)
    assert left(instance) == everything
    done = prune(instance)
    assert everything - left(instance) == {superseded, failed_before, earlier, tidied}
    assert left(instance) == {made, failed, operated}
    assert shown(instance) == before
    assert (told.runs, told.bytes, told.shown) == (done.runs, done.bytes, done.shown) == (4, done.bytes, 3)
    assert [what for what, _, _ in done.gone()] == ["4 runs with their events"]
    assert "kept for what they show: runs 3" in done.summary
    assert prune(instance).runs == 0


@pytest.mark.slow
def test_of_a_run_that_goes_nothing_is_left(instance: dg.DagsterInstance) -> None:
    run_id = tidying.execute_in_process(instance=instance).run_id
    captured = Path(instance.storage_directory()) / run_id / "compute_logs" / "tidy.out"
    captured.parent.mkdir(parents=True, exist_ok=True)
    captured.write_text("printed")
    assert prune(instance).bytes > 10_000
    assert instance.get_run_by_id(run_id) is None
    assert list(Path(instance.root_directory).rglob(f"{run_id}*")) == []
    assert prune(instance).bytes == 0


@pytest.mark.slow
def test_a_run_that_judged_last_stays_without_having_made_anything(instance: dg.DagsterInstance) -> None:
    made = dg.materialize([operations], instance=instance).run_id

    @dg.asset_check(asset=operations)
    def verified() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False)

    job = dg.define_asset_job("judging", dg.AssetSelection.checks(verified))
    definitions = dg.Definitions(assets=[operations], asset_checks=[verified], jobs=[job])
    judging = definitions.resolve_job_def("judging")
    before, judged = (judging.execute_in_process(instance=instance).run_id for _ in range(2))
    assert prune(instance).runs == 1
    assert left(instance) == {made, judged}
    assert before != judged


@pytest.mark.slow
def test_the_run_that_another_one_repeats_stays_with_it(instance: dg.DagsterInstance) -> None:
    """The UI has no page for a retry whose first run is gone."""
    first = make(instance, "2026-01", fails=True)
    again = make(instance, "2026-01", tags={"dagster/root_run_id": first})
    assert prune(instance).runs == 0
    assert left(instance) == {first, again}


@pytest.mark.slow
@pytest.mark.parametrize("days", [0, 201])
def test_what_is_younger_stays_and_without_an_age_all(instance: dg.DagsterInstance, days: int) -> None:
    run_id = tidying.execute_in_process(instance=instance).run_id
    assert prune(instance, days).runs == 0
    assert left(instance) == {run_id}
    assert ("for ever" in prune(instance, days).summary) is (days == 0)


def test_a_run_that_has_not_ended_stays(instance: dg.DagsterInstance) -> None:
    waiting = instance.create_run_for_job(tidying, status=dg.DagsterRunStatus.STARTED)
    assert prune(instance).runs == 0
    assert left(instance) == {waiting.run_id}
