"""Timings stay, with any result of the tests that follow."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE
from formulacode_dagster.measuring.measurement import stage as stage_module
from formulacode_dagster.measuring.measurement.cores import Cores
from formulacode_dagster.measuring.measurement.measure import TimedTask
from formulacode_dagster.measuring.measurement.persistence import save, untested
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.measuring.measurement.stage import MeasuredTask, MeasurementTools, TaskMeasurement
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.models.measurement import Occasion, Returned
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner.work import StageRun, WorkItem
from formulacode_dagster.operating.store.artifacts import CORRECTNESS, MEASUREMENTS
from formulacode_dagster.operating.store.blobs import get_blob
from formulacode_dagster.operating.store.measurements import measurements_of
from tests.records import KEY, make_image, make_measurement, make_merged, make_pull_request
from tests.support.correctness import correctness_row, reaching_test

PLAN, LIMITS = SamplingPlan(), ResourceLimits()
SLOW = ItemFailure(FailureKind.TIMEOUT, "the tests take too long", log_tail="collecting ...")
GONE = OutsideSystemError("docker", "the daemon is gone")
RIGHT = correctness_row(reaching_test("...", "..."))


class Attempts:
    """Attempts at one task, with scripted timings and test results."""

    def __init__(self, database, monkeypatch):
        self.database, self.timed, self.tested, self.building = database, [], [], False
        self.oracle, self.oracles, self.is_open, self.closing = object(), [], False, None
        self.pr = make_pull_request(make_merged(number=1))
        self.image = make_image()
        mocks = {
            "patch_of": lambda *_: b"",
            "suites_elsewhere": lambda *_: [],
            "first_suite": lambda *_, **__: BASE_SUITE,
            "measure_task": self._measure,
            "compare_tests": self._test,
        }
        for name, mock in mocks.items():
            monkeypatch.setattr(stage_module, name, mock)

    def __call__(self, samples, tests=RIGHT, *, inputs="one", run_id="run", **options):
        """The outcome, kept as the runner does; *samples* and *tests* are what they come to, or are raised."""
        self.samples, self.tests = samples, tests
        stage = StageRun(self.database, Stage.MEASUREMENTS, "2026-02", run_id, RunOptions(**options))
        cache = SimpleNamespace(ensure=lambda *_, **__: None)
        tools = MeasurementTools(None, cache, PLAN, LIMITS, cores=Cores(building=self._turn))
        task = MeasuredTask(self.pr, self.image, Environment.model_construct(**KEY, suite_sha="a" * 40))
        outcome = TaskMeasurement(stage, tools, WorkItem(self.pr.item, inputs, task)).outcome()
        with self.database.transaction() as connection:
            save(connection, [outcome.value])
        return outcome

    @contextmanager
    def _turn(self):
        self.building = True
        yield
        self.building = False

    def _measure(self, _engine, task, *_, keep, **__):
        row, stopped = self.samples if isinstance(self.samples, tuple) else (self.samples, None)
        self.timed.append(row)
        procedure = Procedure.of(
            task.image, patch=b"", suite=BASE_SUITE, benchmarks=["bench.a"], plan=PLAN, rule=row.rule, limits=LIMITS
        )
        task.sessions.enter_context(self._open())
        timed = TimedTask(row, procedure, "round 1", ("pkg/fast.pyx",), self.oracle)
        if stopped:
            keep(timed)
            raise stopped
        return timed

    @contextmanager
    def _open(self):
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False
        if self.closing:
            raise self.closing

    def _test(self, *_, hidden, oracle, **__):
        assert self.building, "beside what others time"
        assert self.is_open == (oracle is not None)
        self.tested.append(hidden)
        self.oracles.append(oracle)
        if isinstance(self.tests, Exception):
            raise self.tests
        return self.tests

    @property
    def ever(self):
        with self.database.transaction() as connection:
            return measurements_of(connection, "2026-02", self.pr.key)

    @property
    def read(self):
        with self.database.transaction() as connection:
            return MEASUREMENTS.read(connection, "2026-02")


@pytest.fixture
def attempt(database, monkeypatch):
    return Attempts(database, monkeypatch)


@pytest.fixture
def faster():
    return make_measurement({"bench.a": 2.0}, returned={"bench.a": Returned.SAME})


def test_timings_are_kept_if_tests_fail_and_the_next_attempt_tests_only(attempt, faster):
    with pytest.raises(ItemFailure, match="too long") as caught:
        attempt(faster, SLOW, run_id="first")
    assert caught.value.log.splitlines() == ["round 1", "the tests take too long", "collecting ..."]
    (kept,) = attempt.ever
    assert (kept.attempt, kept.run_id, kept.inputs, kept.occasion) == (1, "first", "one", Occasion.FIRST)
    with attempt.database.transaction() as connection:
        assert Procedure.parse(get_blob(connection, kept.procedure_sha256).decode(), "it").benchmarks == ("bench.a",)
    # what people read of a task goes with how it ended
    assert attempt.read == []
    outcome = attempt(faster, RIGHT, run_id="second")
    assert outcome.rejection is None
    assert outcome.log.startswith("measurement 1 (faster, 2.00×) was kept, and is not taken again")
    assert (len(attempt.timed), attempt.tested) == (1, [("pkg/fast.pyx",), ("pkg/fast.pyx",)])
    assert attempt.ever == attempt.read == [kept]
    # of what was built to be timed nothing is left for the second attempt
    assert (attempt.oracles, attempt.is_open) == ([attempt.oracle, None], False)
    with attempt.database.transaction() as connection:
        assert CORRECTNESS.read(connection, "2026-02") == [RIGHT]


def test_what_a_session_finds_as_it_closes_has_the_log_of_the_measurement(attempt, faster):
    attempt.closing = ItemFailure(FailureKind.IMAGE_CHANGED, "the image has changed", log_tail="pkg/core.py")
    with pytest.raises(ItemFailure) as caught:
        attempt(faster)
    assert caught.value.log.splitlines() == ["round 1", "the image has changed", "pkg/core.py"]


def test_what_was_timed_is_kept_when_the_daemon_goes_while_it_is_tested(attempt, faster):
    with pytest.raises(OutsideSystemError):
        attempt(faster, GONE)
    assert [row.attempt for row in attempt.ever] == [1]


def test_results_without_compared_values_are_kept_and_timed_again(attempt, faster):
    with pytest.raises(OutsideSystemError):
        attempt((faster.model_copy(update={"returned": {}}), GONE))
    attempt(faster)
    assert [(row.attempt, row.occasion, bool(row.returned)) for row in attempt.ever] == [
        (1, Occasion.FIRST, False), (2, Occasion.CHANGED, True),
    ]  # fmt: skip
    assert attempt.read == attempt.ever[1:]


@pytest.mark.parametrize(
    "again",
    [{"inputs": "another"}, {"force": True, "reason": "a noisy night"}],
    ids=["other inputs", "forced"],
)
def test_it_is_timed_again_when_something_has_changed_or_a_person_wants_it(attempt, faster, again):
    with pytest.raises(ItemFailure):
        attempt(faster, SLOW)
    attempt(faster, **again)
    assert [row.attempt for row in attempt.ever] == [1, 2]


def test_a_forced_measurement_is_a_new_row_with_its_reason(attempt, faster):
    attempt(faster)
    attempt(faster, force=True, reason="a noisy night")
    attempt(faster, force=True, reason="another night")
    assert [(row.occasion, row.reason) for row in attempt.ever] == [
        (Occasion.FIRST, ""), (Occasion.FORCED, "a noisy night"), (Occasion.FORCED, "another night"),
    ]  # fmt: skip
    assert attempt.read == attempt.ever[2:]


def test_what_is_no_faster_is_kept_as_well_and_never_only_tested(attempt):
    same = make_measurement({"bench.a": 1.0})
    assert attempt(same).value.measurement == attempt.ever[0] == attempt.read[0]
    assert (attempt.tested, attempt.ever[0].procedure_sha256) == ([], "")
    with attempt.database.transaction() as connection:
        assert untested(connection, "2026-02", attempt.pr.key, "one") is None
