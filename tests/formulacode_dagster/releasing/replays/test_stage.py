from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.items import ItemState, RunOptions, Stage
from formulacode_dagster.models.measurement import Verdict
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.measurements import replays_of
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth
from formulacode_dagster.releasing.replays import stage as replays_stage
from formulacode_dagster.releasing.replays.stage import ReplayTools
from tests.records import MONTH, make_measurement

FASTER = make_measurement({"bench.a": 2.0})
UNCHANGED = make_measurement({"bench.a": 1.0})
DISTURBED = make_measurement({"bench.a": 2.0}, verdict=Verdict.INCONCLUSIVE, disturbed=True)


class Puller:
    """A registry with one image for all; it records requests and releases."""

    def __init__(self, error: Exception | None = None) -> None:
        self.said: list[str] = []
        self._error = error

    @contextmanager
    def pulled(self, reference, digest):
        self.said.append(f"pull {reference} {digest}")
        if self._error is not None:
            raise self._error
        yield "sha256:here"
        self.said.append("gone")


@pytest.fixture
def run(database, monkeypatch):
    """Replays *tasks*, of which measuring again gives *measured* one after the other; an exception is raised."""

    def run(tasks, measured=(), *, engine=EngineName.PROCESS, puller=None, run_id="run", **options):
        answers = iter(measured)
        run.asked = []

        def measure_again(*arguments, **keywords):
            run.asked.append(SimpleNamespace(image=arguments[1], **keywords))
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer, "log"

        monkeypatch.setattr(replays_stage, "measure_again", measure_again)
        monkeypatch.setattr(replays_stage, "tasks_of", lambda _: iter(tasks))
        folders = SimpleNamespace(name=engine, clean=lambda: 0, location_of=lambda digest: f"/images/{digest}")
        stage = StageRun(database, Stage.REPLAYS, MONTH, run_id, RunOptions(**options))
        tools = ReplayTools(folders, puller or Puller(), "hub:acme/tasks", ReleasedMonth("tag", None))
        run_loop(replays_stage.run(stage, tools))
        with database.transaction() as connection:
            entries = {entry.item: entry for entry in ledger.entries_of(connection, MONTH, Stage.REPLAYS)}
            return entries, replays_of(connection, MONTH)

    return run


@pytest.mark.parametrize(
    ("measured", "state", "reason", "verdict", "failure"),
    [
        (FASTER, ItemState.DONE, "", "confirmed", None),
        (UNCHANGED, ItemState.REJECTED, "not_confirmed", "not_confirmed", None),
        (DISTURBED, ItemState.FAILED, "disturbed", "could_not_run", "disturbed"),
        (ItemFailure(FailureKind.TIMEOUT, "slow"), ItemState.FAILED, "timeout", "could_not_run", "timeout"),
    ],
    ids=["faster", "unchanged", "disturbed", "failed"],
)
def test_however_a_replay_ends_it_is_kept_and_in_the_ledger(run, task, measured, state, reason, verdict, failure):
    entries, made = run([task()], [measured])
    (entry,), ((replay,),) = entries.values(), made.values()
    assert (entry.item, entry.state, entry.reason) == ("a/b#1", state, reason)
    assert (replay.verdict, replay.failure, replay.attempt) == (verdict, failure, 1)
    assert (replay.release, replay.destination, replay.is_same_harness) == (
        "tag",
        "hub:acme/tasks",
        not isinstance(measured, Exception),
    )
    assert (replay.measurement is None) is isinstance(measured, Exception)


def test_replays_are_not_repeated_unless_forced_and_never_replaced(run, task):
    run([task()], [FASTER])
    run([task()])
    assert run.asked == []
    _, made = run([task()], [UNCHANGED], force=True, run_id="another")
    assert [(replay.attempt, replay.verdict) for replay in made["a__b-1"]] == [(1, "confirmed"), (2, "not_confirmed")]


def test_another_run_meets_other_chances(run, task):
    seeds = set()
    for name in ("one", "two"):
        run([task(1), task(2)], [FASTER, FASTER], run_id=name, force=True)
        seeds |= {asked.seed for asked in run.asked}
    assert len(seeds) == 4


def test_a_published_image_is_pulled_by_digest_and_removed_at_the_end(run, task):
    puller = Puller()
    tasks = [
        task(number, engine=EngineName.DOCKER, image_name=f"r/n:{number}", image_digest="sha256:m") for number in (1, 2)
    ]
    run(tasks, [FASTER, FASTER], engine=EngineName.DOCKER, puller=puller)
    assert puller.said == ["pull r/n:1 sha256:m", "pull r/n:2 sha256:m", "gone", "gone"]
    assert {asked.image.digest for asked in run.asked} == {"sha256:here"}


def test_a_missing_image_is_that_rows_failure_and_the_others_go_on(run, task):
    missing = Puller(ItemFailure(FailureKind.IMAGE_MISSING, "it is not in its registry"))
    tasks = [
        task(1, engine=EngineName.DOCKER, image_name="r/n:1", image_digest="sha256:m"),
        task(2, engine=EngineName.DOCKER),
    ]
    entries, made = run(tasks, [FASTER], engine=EngineName.DOCKER, puller=missing)
    assert (entries["a/b#1"].state, entries["a/b#1"].reason) == (ItemState.FAILED, "image_missing")
    assert entries["a/b#2"].state is ItemState.DONE
    assert made["a__b-1"][0].failure is FailureKind.IMAGE_MISSING


def test_a_dead_registry_stops_the_stage_and_is_no_tasks_failure(run, task, database):
    dead = Puller(OutsideSystemError("registry", "no answer"))
    tasks = [task(1, engine=EngineName.DOCKER, image_name="r/n:1", image_digest="sha256:m")]
    with pytest.raises(OutsideSystemError, match="no answer"):
        run(tasks, engine=EngineName.DOCKER, puller=dead)
    with database.transaction() as connection:
        assert replays_of(connection, MONTH) == {}


def test_what_docker_measured_is_not_measured_in_a_folder(run, task):
    entries, _ = run([task(engine=EngineName.DOCKER)])
    assert entries["a/b#1"].reason == "other_engine"
    assert "FC_ENGINE=docker" in entries["a/b#1"].detail
