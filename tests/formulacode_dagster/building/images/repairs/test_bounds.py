from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.images.repairs.attempts import Proposal, Recipe, Task
from formulacode_dagster.building.images.repairs.loop import MOST_ATTEMPTS, build_until_it_holds
from formulacode_dagster.models.attempt import BuildAttempt, Rung
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import FormulaCodeError, ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Fix
from formulacode_dagster.operating.store.attempts import attempts_of, last_attempt, log_of_attempt
from formulacode_dagster.operating.store.database import Database
from tests.formulacode_dagster.building.images.repairs.failing import (
    NO_FFI,
    NO_GSL,
    FailingEngine,
    make_environment,
    make_task,
)

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


def test_timings_are_held_off_during_each_build_and_not_between_them() -> None:
    engine, built = FailingEngine(NO_GSL, "error: own words"), list[int]()

    @contextmanager
    def turn() -> Iterator[None]:
        built.append(len(engine.built))
        try:
            yield
        finally:
            built.append(len(engine.built))

    attempts_with(engine, turn=turn)
    assert built == [0, 1, 1, 2]


def test_attempts_are_bounded() -> None:
    names = ("gsl/a.h", "ffi.h", "zmq.h", "png.h", "curl/curl.h", "yaml.h", "lz4.h", "snappy.h")
    engine = FailingEngine(*(f"fatal error: {name}: No such file or directory" for name in names))
    kept, _ = attempts_with(engine)
    assert len(kept) == len(engine.built) == MOST_ATTEMPTS


def test_the_interpreter_is_stepped_down_at_most_twice() -> None:
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


def test_a_neighbours_recipe_counts_as_an_attempt_before_the_plain_build() -> None:
    recipe = (Fix(rule="missing_header", evidence="", apt_packages=("libgsl-dev",)),)
    engine = FailingEngine("error: own words")
    kept, _ = attempts_with(engine, recipes=[Recipe(Rung.NEAREST, recipe)], first_attempt=3)
    assert [(attempt.attempt, attempt.rule) for attempt in kept] == [(3, "recipe_of_a_neighbour"), (4, "")]
    assert [attempt.rung for attempt in kept] == [Rung.NEAREST, Rung.RULES]
    assert [spec.apt_packages for spec in engine.built] == [("libgsl-dev",), ()]


def test_a_build_that_was_killed_for_its_time_is_not_repeated() -> None:
    kept, _ = attempts_with(FailingEngine(NO_GSL, kind="timeout"))
    assert [attempt.kind for attempt in kept] == ["timeout"]


@pytest.mark.parametrize(
    "end",
    [
        OutsideSystemError("docker", "the daemon is gone"),
        SuspectedOutage("package index", FailureKind.TIMEOUT, "no answer"),
    ],
    ids=["gone", "suspected"],
)
def test_an_outside_system_that_is_gone_leaves_no_attempt(end: FormulaCodeError) -> None:
    def gone() -> None:
        raise end

    kept, error = attempts_with(FailingEngine(gone))
    assert kept == []
    assert error is end


def test_a_silent_index_ends_the_attempts_and_one_slow_question_does_not() -> None:
    for kind, ended_by_it in ((FailureKind.INCOMPLETE, True), (FailureKind.TIMEOUT, False)):
        lost = SuspectedOutage("package index", kind, "no answer")

        def replan(fixes: Sequence[Fix], lost: SuspectedOutage = lost) -> Environment:
            raise lost

        kept, error = attempts_with(FailingEngine(NO_GSL), task=make_task(replan))
        assert [attempt.kind for attempt in kept[:2]] == (["build"] if ended_by_it else ["build", "timeout"])
        assert (error is lost) is ended_by_it


@pytest.mark.slow
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


class Author:
    """Proposes the next of *proposals*, and keeps which attempts it was shown."""

    def __init__(self, *proposals: Proposal) -> None:
        self._proposals = list(proposals)
        self.shown: list[list[str]] = []

    def propose(self, tried: Sequence[BuildAttempt], task: Task, build: object) -> Proposal | None:
        self.shown.append([attempt.rule for attempt in tried])
        return self._proposals.pop(0) if self._proposals else None


BOUND = Fix(rule="agent:stub", evidence="own words", constraints=("setuptools<81",))
COST = Cost(tokens_in=100, tokens_out=20, dollars=0.5, seconds=3.0)


def test_an_agent_runs_if_no_rule_matches_and_each_spec_is_an_attempt() -> None:
    refused = ItemFailure(FailureKind.TIMEOUT, "it was ended")
    author = Author(Proposal("stub", (BOUND,), cost=COST, log="I bound it"), Proposal("stub", failure=refused))
    engine = FailingEngine(NO_GSL, "error: own words")
    kept, error = attempts_with(engine, author=author)
    assert [(attempt.attempt, attempt.rung, attempt.rule, attempt.stage) for attempt in kept] == [
        (1, Rung.RULES, "", "task"),
        (2, Rung.RULES, "missing_header", "task"),
        (3, Rung.AGENT, "agent:stub", "task"),
        (4, Rung.AGENT, "agent:stub", "agent"),
    ]
    asked = kept[2]
    assert (asked.agent, asked.tokens_in, asked.tokens_out, asked.dollars) == ("stub", 100, 20, 0.5)
    assert asked.seconds >= asked.agent_seconds == 3.0
    assert asked.log == "I bound it\nerror: own words"
    assert engine.built[-1].fixes == (BOUND,)
    assert author.shown == [
        ["", "missing_header"],
        ["", "missing_header", "agent:stub"],
        [attempt.rule for attempt in kept],
    ]
    assert error is refused


def test_an_agents_cost_is_stored_even_if_docker_is_gone() -> None:
    def gone() -> None:
        raise OutsideSystemError("docker", "the daemon is gone")

    author = Author(Proposal("stub", (BOUND,), cost=COST))
    kept, error = attempts_with(FailingEngine("error: own words", gone), author=author)
    assert isinstance(error, OutsideSystemError)
    assert [(attempt.rung, attempt.tokens_in) for attempt in kept] == [(Rung.RULES, 0), (Rung.AGENT, 100)]


def test_further_recipes_take_nothing_from_the_attempts_of_rules() -> None:
    names = ("gsl/a.h", "ffi.h", "zmq.h", "png.h", "curl/curl.h", "yaml.h", "lz4.h", "snappy.h")
    lacks = [f"fatal error: {name}: No such file or directory" for name in names]
    recipes = [Recipe(Rung.STORED, (BOUND,)), Recipe(Rung.NEAREST, (BOUND, BOUND))]
    kept, _ = attempts_with(FailingEngine("error: own words", "error: own words", *lacks), recipes=recipes)
    assert [attempt.rung for attempt in kept[:3]] == [Rung.STORED, Rung.NEAREST, Rung.RULES]
    assert len(kept) == MOST_ATTEMPTS + 1
