"""deploy/celery run on this machine: a real Redis, real workers, runs of ours."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.launcher import WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher

from assets.classifications import classifications
from bench.celery_services import Services, services
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.runner.runner import KEPT_AT_ONCE
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import iterate_done, save_changes
from formulacode_dagster.orchestration.placement import IO, MEASURE, QUEUE
from tests.records import make_change, make_merged
from tests.support.celery_workers import require_redis, wait_until
from tests.support.databases import EMPTY, DatabaseServer
from tests.support.gates import open_gates
from tests.support.sampling import TAKES_MINUTES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("celery"),
    TAKES_MINUTES.with_args(case="celery"),
    pytest.mark.timeout(600),
]

MONTH, STAGE = "2026-02", Stage.CLASSIFICATIONS
HELP = {"ops": {"help_stage": {"config": {"stage": Stage.IMAGES.value}}}}
CANDIDATES = 2 * KEPT_AT_ONCE + 1
"""More than are written at once: some are stored before the worker dies, some are not."""
SUCCESS, FAILURE = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE


@pytest.fixture(scope="module")
def month(database_server: DatabaseServer) -> Iterator[Database]:
    """A month of pull requests without changed files, for which no model is asked."""
    url = database_server.create()
    database = Database(url)
    merged = [make_merged(month=MONTH, number=number) for number in range(1, CANDIDATES + 1)]
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, merged)
        save_changes(connection, [(make_change(month=MONTH, number=facts.number), b"diff\n") for facts in merged])
        done = [
            LedgerEntry(stage=Stage.PULL_REQUESTS, month=MONTH, item=facts.item, state=ItemState.DONE)
            for facts in merged
        ]
        ledger.record(connection, done)
    open_gates(database, classifications, MONTH)
    yield database
    database.close()
    database_server.drop(url)


@pytest.fixture(scope="module")
def deployed(
    month: Database, database_server: DatabaseServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Services]:
    """Everything but workers."""
    require_redis()
    url = database_server.create(EMPTY)
    home = tmp_path_factory.mktemp("celery")
    settings = {
        "FC_DATABASE_URL": month.engine.url.render_as_string(hide_password=False),
        "FC_HOME": str(home / "state"),
        "LLM_MODEL": "none",
        "LLM_API_KEY": "none",
        "LLM_BASE_URL": "http://127.0.0.1:9",
    }
    dagster_url = Database(url).engine.url.set(drivername="postgresql+psycopg2")
    with services(home, dagster_url.render_as_string(hide_password=False), settings) as started:
        started.start_daemon()
        yield started
    database_server.drop(url)


@pytest.fixture(scope="module")
def instance(deployed: Services) -> Iterator[dg.DagsterInstance]:
    """The one that daemon and workers share."""
    with dg.DagsterInstance.from_config(str(deployed.folder)) as instance:
        yield instance


def runs(instance: dg.DagsterInstance, job: str) -> list[dg.DagsterRun]:
    """Runs of *job*, the oldest first."""
    return list(reversed(instance.get_runs(dg.RunsFilter(job_name=job))))


def statuses(instance: dg.DagsterInstance, job: str) -> list[dg.DagsterRunStatus]:
    return [run.status for run in runs(instance, job)]


def test_each_run_goes_to_a_worker_of_its_queue_or_waits(deployed: Services, instance: dg.DagsterInstance) -> None:
    deployed.start_worker(IO, "reads")
    deployed.launch("helper", MONTH, HELP, {QUEUE: MEASURE})
    deployed.launch("helper", MONTH, HELP)
    wait_until(lambda: SUCCESS in statuses(instance, "helper"), deployed, "a run without a queue goes to io")
    waits, done = runs(instance, "helper")
    assert (waits.status, done.status) == (dg.DagsterRunStatus.STARTING, SUCCESS)
    health = deployed.health()
    assert (health.returncode, health.stderr) == (1, "no worker takes from build, measure: runs wait there\n")

    deployed.start_worker(MEASURE, "measures")
    wait_until(lambda: statuses(instance, "helper") == [SUCCESS, SUCCESS], deployed, "the other one had to wait")
    assert [deployed.log("reads").count(" received"), deployed.log("measures").count(" received")] == [1, 1]


def test_a_run_of_a_killed_worker_is_finished_once_by_another(
    deployed: Services, instance: dg.DagsterInstance, month: Database
) -> None:
    job = f"{STAGE.value}_only"

    def by_whom() -> dict[str, str]:
        with month.transaction() as connection:
            return {entry.item: entry.run_id for entry in ledger.entries_of(connection, MONTH, STAGE)}

    with month.transaction() as connection:
        *_, last = (pr.item for pr in iterate_done(connection, MONTH, Stage.PULL_REQUESTS))
    deployed.start_worker(IO, "dies")
    deployed.kill("reads")
    with month.engine.connect() as held:
        # whoever writes the last item waits for it, with others kept
        ledger.record(held, [LedgerEntry(stage=STAGE, month=MONTH, item=last, state=ItemState.DONE)])
        deployed.launch(job, MONTH, {})
        wait_until(lambda: len(by_whom()) >= KEPT_AT_ONCE, deployed, "some are kept")
        (lost,) = runs(instance, job)
        assert lost.status is dg.DagsterRunStatus.STARTED
        deployed.start_worker(IO, "lives")
        deployed.kill("dies")
        held.rollback()
    kept = by_whom()
    assert set(kept.values()) == {lost.run_id}
    assert len(kept) < CANDIDATES

    wait_until(lambda: SUCCESS in statuses(instance, job), deployed, "the run is launched anew")
    lost, retried = runs(instance, job)
    assert (lost.status, retried.parent_run_id) == (FAILURE, lost.run_id)
    assert retried.tags[QUEUE] == lost.tags[QUEUE] == IO
    dagsters_own = CeleryRunLauncher.check_run_worker_health(instance.run_launcher, lost)
    assert dagsters_own.status is WorkerStatus.RUNNING, "which would never have noticed"

    done = by_whom()
    assert len(done) == CANDIDATES
    assert {item for item, run_id in done.items() if run_id == lost.run_id} == kept.keys(), "nothing is done again"
    assert set(done.values()) == {lost.run_id, retried.run_id}
    assert len(instance.fetch_materializations(classifications.definition.key, limit=5).records) == 1
    assert [deployed.log(name).count(" received") for name in ("dies", "lives")] == [1, 1]
