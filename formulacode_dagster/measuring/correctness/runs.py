"""Asking a session to run tests: typed questions, typed answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import cast

from pydantic import Field, ValidationError

from formulacode_dagster.building.engines.protocol import Session
from formulacode_dagster.building.suites.harness_output import describe
from formulacode_dagster.building.suites.remote import START_SECONDS, HarnessClient
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.correctness import Mutation, RunOutcome
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.reasons import FailureKind

MOST_FILES = 60
"""Files of tests that are looked into, those that speak most of the change first."""
BUDGET_SECONDS = 300.0
"""Time limit of all tests of one run, in seconds."""
TEST_SECONDS = 60.0
"""Time limit of one test, in seconds."""
MOST_LOST = 5
"""Tests that may end their process, or not let themselves be stopped, before a run is given up."""
COLLECT_SECONDS = 300.0


class EndedTest(Frozen):
    """Outcome of one test in one run."""

    name: str
    outcome: RunOutcome
    seconds: float = Field(default=0.0, ge=0)
    message: str = ""
    lines: dict[str, frozenset[int]] = Field(default_factory=dict, description="watched lines it executed, by path")
    entered: frozenset[str] = Field(default=frozenset(), description="watched files of which it executed any line")
    call_seconds: float = Field(default=0.0, ge=0, description="of the call by itself, fixtures aside")
    call_lines: dict[str, frozenset[int]] = Field(
        default_factory=dict, description="watched lines that the call itself executed, by path"
    )


class TestRun(Frozen):
    """One run of tests, in one process unless a test ended it."""

    __test__ = False
    tests: dict[str, EndedTest] = Field(default_factory=dict, description="by node id")
    pytest: str = Field(default="", description="its version")
    left_out: int = Field(default=0, description="files that were not looked into")
    no_time: bool = Field(default=False, description="whether time was up before the last test")
    is_slowed: bool = Field(default=False, description="whether watching lines took much of the tests' time")
    is_enough: bool = Field(default=False, description="whether as many executed watched lines as were asked for")
    executable: dict[str, frozenset[int]] = Field(
        default_factory=dict, description="watched lines that can be executed"
    )
    imported: dict[str, frozenset[int]] = Field(
        default_factory=dict, description="those that importing the tests executed"
    )
    mutations: dict[str, tuple[Mutation, ...]] = Field(
        default_factory=dict, description="mistakes that can be made on watched lines, by path"
    )
    uncollected: dict[str, str] = Field(default_factory=dict, description="why modules have no tests on this side")


class TestRunner:
    """Runs the tests of one image's repository in a session of it."""

    __test__ = False

    def __init__(
        self,
        session: Session,
        spec: BuildSpec,
        *,
        most_files: int | None = None,
        budget: float | None = None,
        turn: int = 0,
        enough: int = 0,
        least: float = 0.0,
    ) -> None:
        """It looks into *most_files* at most (MOST_FILES), and begins none after *budget* seconds (BUDGET_SECONDS).

        With a *turn* so many tests of each file are run before more of any. After *enough* tests that execute watched
        lines and whose calls take *least* seconds it begins no other, unless that is 0.
        """
        self._turn, self._enough, self._least = turn, enough, least
        self._session, self._spec = session, spec
        self._most_files = MOST_FILES if most_files is None else most_files
        self._budget = BUDGET_SECONDS if budget is None else budget
        self._remote = HarnessClient(session, benchmark_dir=spec.benchmark_dir, environment=spec.run_environment)

    def run(
        self,
        *,
        hash_seed: int,
        named: Collection[str] = (),
        words: Collection[str] = (),
        watched: Mapping[str, Iterable[int]] | None = None,
    ) -> TestRun:
        """Run the tests *named*, or those of the files that mention *words* most, and record which *watched* lines
        execute.

        A test under which the process ends is a `crash`, one that cannot be stopped a `timeout`; the others continue in
        another, which has the rest of the budget.
        Raises ItemFailure (`tests_do_not_run`) if that happens too often, or to all of them.
        """
        run = TestRun()
        lost: dict[str, EndedTest] = {}
        left = self._budget
        while True:
            completed, answers = self._remote.ask(
                self._request(named, words, watched or {}, [*lost, *run.tests]) | {"budget": left},
                timeout=left + COLLECT_SECONDS + START_SECONDS,
                environment={"PYTHONHASHSEED": str(hash_seed)},
            )
            ended = joined(TestRun(), answers)
            used = completed.seconds
            if completed.timed_out:
                # the wait for a test that cannot be stopped is no other's
                used = TEST_SECONDS + sum(test.seconds for test in ended.tests.values())
            left = max(0.0, left - used)
            run = joined(run, answers)
            if answers and answers[-1]["event"] == "end" and not completed.timed_out:
                return run.model_copy(update={"tests": {**run.tests, **lost}})
            started = [str(answer["name"]) for answer in answers if answer["event"] == "started"]
            if not started or started[-1] in run.tests or len(lost) == MOST_LOST:
                raise ItemFailure(
                    FailureKind.TESTS_DO_NOT_RUN,
                    "running the tests broke off",
                    why=describe(completed).partition("\n")[0],
                    log_tail=describe(completed),
                )
            outcome = RunOutcome.TIMEOUT if completed.timed_out else RunOutcome.CRASH
            lost[started[-1]] = EndedTest(
                name=started[-1], outcome=outcome, seconds=completed.seconds, message=describe(completed)
            )

    def kills(
        self, path: str, mutation: Mutation, named: Collection[str], *, hash_seed: int, limit: float, seconds: float
    ) -> bool | None:
        """Return True if one of the tests *named* does not pass with the *mutation* in the file *path*.

        None if unknown: the file was not imported, or there was no time for all tests. A test may take *limit* seconds,
        all together *seconds*.
        """
        changes = {"mutation": {"path": path, **mutation.model_dump()}, "limit": limit, "budget": seconds}
        request = self._request(named, (), {}, ()) | changes
        completed, answers = self._remote.ask(
            request, timeout=seconds + START_SECONDS, environment={"PYTHONHASHSEED": str(hash_seed)}
        )
        events = {answer["event"] for answer in answers}
        if "mutated" not in events:
            return None
        run = joined(TestRun(), answers)
        if any(test.outcome is not RunOutcome.PASSED for test in run.tests.values()):
            return True
        # a process that ended under a test, or a module that could not be imported any more, leaves some without a word
        is_told = "started" in events or not completed.timed_out
        return set(named) > run.tests.keys() if is_told and "no_time" not in events else None

    def _request(
        self,
        named: Collection[str],
        words: Collection[str],
        watched: Mapping[str, Iterable[int]],
        without: Collection[str],
    ) -> dict[str, object]:
        spec, repository = self._spec, self._session.repository
        return {
            "command": "test",
            "repository": repository,
            "folder": f"{repository}/{spec.package_root}",
            "packages": [spec.package_name.partition(".")[0]] if spec.package_name else [],
            "ignored": [f"{repository}/{spec.benchmark_dir}"],
            "tests": self._session.tests,
            "named": sorted(named),
            "words": sorted(words),
            "watched": {path: sorted(lines) for path, lines in watched.items()},
            "without": list(without),
            "most": self._most_files,
            "limit": TEST_SECONDS,
            "budget": self._budget,
            "mutation": None,
            "turn": self._turn,
            "enough": self._enough,
            "least": self._least,
        }


def joined(run: TestRun, answers: Iterable[Mapping[str, object]]) -> TestRun:
    """Merge *run* with the report of another process; raises ItemFailure (`tests_do_not_run`) if that is malformed."""
    whole = run.model_dump()
    try:
        for answer in answers:
            told = {name: value for name, value in answer.items() if name != "event"}
            match answer["event"]:
                case "test":
                    ended = EndedTest.model_validate(told)
                    whole["tests"][ended.name] = ended
                case "uncollected":
                    whole["uncollected"][told["name"]] = told["message"]
                case "executable":
                    whole["executable"][told["path"]] = told["lines"]
                    whole["mutations"][told["path"]] = told["mutations"]
                case "imported":
                    whole["imported"].update(cast("dict[str, object]", told["lines"]))
                case "files":
                    whole["left_out"] = told["left_out"]
                case "no_time":
                    whole["no_time"] = True
                case "enough":
                    whole["is_enough"] = True
                case "ran":
                    whole["pytest"] = told["pytest"]
                    whole["is_slowed"] = told.get("slowed", False)
        return TestRun.model_validate(whole)
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        raise ItemFailure(
            FailureKind.TESTS_DO_NOT_RUN, "the output of the tests is malformed", why=str(error)
        ) from error
