from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from formulacode_dagster.engines.failures import BuildFailure
from formulacode_dagster.images.repairs.loop import MOST_ATTEMPTS, NEIGHBOUR, build_until_it_holds
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import FormulaCodeError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Fix
from formulacode_dagster.store.attempts import attempts_of, last_attempt, log_of_attempt
from formulacode_dagster.store.database import Database
from tests.formulacode_dagster.images.repairs.failing import NO_FFI, NO_GSL, FailingEngine, make_environment, make_task

SCRIPT = Path(__file__).with_name("failing.py")
STRANGE = "error: Failed to build `/tmp/source`"


def attempts_with(engine: FailingEngine, **options: object) -> tuple[list[BuildAttempt], Exception]:
    """The attempts that were kept, and what was raised in the end."""
    kept: list[BuildAttempt] = []
    task = options.pop("task", make_task())
    with pytest.raises(FormulaCodeError) as caught:
        build_until_it_holds(engine, task, run_id="run", keep=kept.append, **options)  # type: ignore[arg-type]  # only builds
    return kept, caught.value


def test_one_fix_follows_the_other_and_each_build_has_all_of_them() -> None:
    engine = FailingEngine(NO_GSL, NO_FFI, "error: own words")
    kept, error = attempts_with(engine)
    assert [(attempt.attempt, attempt.rule, attempt.rc) for attempt in kept] == [
        (1, "", 2),
        (2, "missing_header", 2),
        (3, "missing_header", 2),
    ]
    assert engine.built[-1].apt_packages == ("libgsl-dev", "libffi-dev")
    assert isinstance(error, BuildFailure)
    assert "own words" in str(error)


def test_attempts_are_bounded() -> None:
    names = ("gsl/a.h", "ffi.h", "zmq.h", "png.h", "curl/curl.h", "yaml.h", "lz4.h", "snappy.h")
    engine = FailingEngine(*(f"fatal error: {name}: No such file or directory" for name in names))
    kept, _ = attempts_with(engine)
    assert len(kept) == len(engine.built) == MOST_ATTEMPTS


def test_the_interpreter_is_stepped_down_twice_at_most_when_nothing_tells_more() -> None:
    engine = FailingEngine(STRANGE)
    kept, _ = attempts_with(engine)
    assert [attempt.spec.python for attempt in kept] == ["3.12", "3.11", "3.10"]
    assert [attempt.rule for attempt in kept] == ["", "older_interpreter", "older_interpreter"]


def test_a_fix_that_cannot_be_planned_is_recorded_and_another_is_tried() -> None:
    def replan(fixes: Sequence[Fix]) -> Environment:
        if any("wheel" in fix.requirements for fix in fixes):
            raise ItemFailure(FailureKind.LOCK, "no solution", log_tail="uv's words")
        return make_environment(fixes)

    engine = FailingEngine(f"error: invalid command 'bdist_wheel'\n{STRANGE}", "error: the end")
    kept, error = attempts_with(engine, task=make_task(replan))
    assert [(attempt.stage, attempt.rule, attempt.kind) for attempt in kept] == [
        ("task", "", "build"),
        ("plan", "no_wheel_command", "lock"),
        ("task", "older_interpreter", "build"),
    ]
    assert kept[1].log == "uv's words"
    assert [fix.rule for fix in engine.built[-1].fixes] == ["older_interpreter"]
    assert "the end" in str(error)


def test_a_neighbours_recipe_counts_among_the_attempts_and_the_plain_build_knows_nothing_of_it() -> None:
    recipe = (Fix(rule="missing_header", evidence="", apt_packages=("libgsl-dev",)),)
    engine = FailingEngine("error: own words")
    kept, _ = attempts_with(engine, neighbour=recipe, first_attempt=3)
    assert [(attempt.attempt, attempt.rule) for attempt in kept] == [(3, NEIGHBOUR), (4, "")]
    assert [spec.apt_packages for spec in engine.built] == [("libgsl-dev",), ()]


def test_a_build_that_was_killed_for_its_time_is_not_repeated() -> None:
    kept, _ = attempts_with(FailingEngine(NO_GSL, kind="timeout"))
    assert [attempt.kind for attempt in kept] == ["timeout"]


def test_an_outside_system_that_is_gone_leaves_no_attempt() -> None:
    def gone() -> None:
        raise OutsideSystemError("docker", "the daemon is gone")

    kept, error = attempts_with(FailingEngine(gone))
    assert kept == []
    assert isinstance(error, OutsideSystemError)


def test_attempts_outlive_a_kill_between_them_and_the_next_run_numbers_on(
    database: Database, database_url: str
) -> None:
    killed = subprocess.run([sys.executable, str(SCRIPT), database_url], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    with database.transaction() as connection:
        (kept,) = attempts_of(connection, "2026-02", (7, 5))
        assert (kept.attempt, kept.stage, kept.rc) == (1, "task", 2)
        assert log_of_attempt(connection, "2026-02", (7, 5), 1) == NO_GSL
        assert last_attempt(connection, "2026-02", (7, 5)) == 1
