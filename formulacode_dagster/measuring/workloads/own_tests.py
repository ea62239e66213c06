"""The repository's own tests that execute a change, as suites of benchmarks: those that take long enough, then short
ones with larger inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import PurePosixPath

from formulacode_dagster.building.engines.protocol import Session
from formulacode_dagster.building.suites.harness.survey import TRACED_FACTOR
from formulacode_dagster.building.suites.overlays import SuiteFiles, is_whole_checkout
from formulacode_dagster.building.suites.patching import apply_patch
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.correctness.patch_lines import patch_lines
from formulacode_dagster.measuring.correctness.runs import EndedTest, TestRun, TestRunner
from formulacode_dagster.models.correctness import RunOutcome
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import Source

from .line_cover import covering_first
from .overlay import PytestFunction, functions_in, is_laid, is_same_everywhere, suite_files, words_of
from .scaled import LEAST_SECONDS, grown_files, grown_tests
from .scaled import MOST_TESTS as MOST_GROWN
from .sides import Lines, Sides
from .unchanged_tests import unchanged_tests

MOST_TESTS = 24
ENOUGH = 2 * MOST_TESTS
"""Number of slow tests per side; some do not pass or execute the change on the other side."""
MOST_FILES = 20
RUN_SECONDS = 60.0
"""Time limit for the tests of one side; tests beyond it are no workload."""
TURN = 20
"""Tests of a file that are run before those of the next: one file with thousands took all the time."""
HASH_SEED = 0


@dataclass(frozen=True)
class OwnTest:
    """One test: its file in the repository, the rest of its pytest id, and the longer of its two calls in seconds."""

    file: str
    name: str
    seconds: float
    lines: frozenset[tuple[int, str, int]] = frozenset()
    """Changed lines that its call executes: side, path and number."""

    @property
    def function(self) -> PytestFunction:
        """Its function or method, without parameters."""
        return PytestFunction(self.file, self.name.partition("[")[0])


def suites_of_tests(
    sides: Sides, *, patch: bytes, commit: str, merged: str, note: Callable[[str], None]
) -> Iterator[SuiteFiles]:
    """Return suites of tests that pass on both sides and execute the change; otherwise *note* receives the reason.

    Tests run in copies of the sessions. Test files that *patch* changes are copied over every arm in their final state,
    from the commit *merged*; all others come from *commit*, the base.
    """
    spec = sides.image.spec
    if not sides.can_be_aimed or is_whole_checkout(spec.benchmark_dir):
        return
    note("looking for tests of its own that execute the change")
    try:
        tests, laid, why_not_all = _relevant(sides, patch)
    except ItemFailure as failure:
        note(f"its own tests cannot be distinguished from: {failure}")
        return
    commit = merged if laid else commit
    timed = covering_first([test for test in tests if test.seconds >= LEAST_SECONDS], attrgetter("lines"))[:MOST_TESTS]
    short = covering_first([test for test in tests if test.seconds < LEAST_SECONDS], attrgetter("lines"))[:MOST_GROWN]
    how = "may execute" if sides.is_compiled else "execute"
    told = f"{len(tests)} of its own tests {how} the change, and {len(timed)} of them take long enough"
    note("; ".join(filter(None, [told, why_not_all])))
    if timed:
        functions = _by_function(timed)
        files = {**laid, **suite_files(functions, spec)}
        name = f"{len(timed)} of its own tests"
        yield SuiteFiles(name, files, Source.OWN_TESTS, commit, _adapted(functions))
    if short:
        note(f"growing {len(short)} short ones")
        try:
            grown = grown_tests(sides, _by_function(short), laid, least=LEAST_SECONDS)
        except ItemFailure as failure:
            note(f"they cannot be grown: {failure}")
            return
        adapted = _adapted(grown)
        note(f"{len(adapted)} of them pass with larger inputs, and take long enough")
        if grown:
            files = {**laid, **grown_files(grown, spec)}
            yield SuiteFiles(f"{len(adapted)} grown tests", files, Source.SCALED_TESTS, commit, adapted)


def _relevant(sides: Sides, patch: bytes) -> tuple[list[OwnTest], dict[str, bytes], str]:
    """The tests, the files copied with them, and why not all tests were run."""
    spec = sides.image.spec
    changed = patch_lines(patch, benchmark_dir=spec.benchmark_dir)
    laid = [path for path in changed.tests if is_laid(path, spec.package_name)]
    with sides.copies() as (base, oracle):
        before = HarnessClient(base, benchmark_dir=spec.benchmark_dir).read(laid)
        if laid:
            apply_patch(base, patch, only=laid)

        def run(session: Session, watched: Lines, named: Collection[str] = ()) -> TestRun:
            bounds = {"most_files": MOST_FILES, "turn": TURN, "enough": ENOUGH}
            runner = TestRunner(session, spec, budget=RUN_SECONDS, least=LEAST_SECONDS, **bounds)
            return runner.run(hash_seed=HASH_SEED, named=named, words=changed.words, watched=watched)

        remote = HarnessClient(oracle, benchmark_dir=spec.benchmark_dir)
        # in parallel if each has a core
        with ThreadPoolExecutor(min(2, remote.core_count)) as pool:
            runs = list(pool.map(run, (base, oracle), sides.lines))
        candidates = relevant_tests(*runs, is_compiled=sides.is_compiled)
        doubtful = [name for name, seconds in candidates.items() if 1 <= seconds / LEAST_SECONDS < TRACED_FACTOR]
        if doubtful and any(run.is_slowed for run in runs):
            # without it the traced seconds stand
            with suppress(ItemFailure):
                again = run(base, {}, doubtful)
                candidates = relevant_tests(*runs, is_compiled=sides.is_compiled, untraced=again)
        places = {name: str(PurePosixPath(spec.package_root, name.partition("::")[0])) for name in candidates}
        present = remote.read(places.values())
        unchanged = {
            path: unchanged_tests(before[path], present[path])
            for path in before.keys() & present.keys()
            if is_same_everywhere(path, [other for other in changed.tests if other != path], spec.package_name)
        }
        passing = [
            OwnTest(path, name.partition("::")[2], candidates[name], _lines_of(name, runs))
            for name, path in places.items()
            if path in present
        ]
        tests = [
            test
            for test in passing
            if is_same_everywhere(test.file, changed.tests, spec.package_name)
            or test.function.name in unchanged.get(test.file, ())
        ]
        if sides.is_compiled:
            # a test that executes the Python part of the change comes before those that only speak of it
            others = [test for test in tests if not test.lines]
            tests = [*filter(attrgetter("lines"), tests), *speaking_of(others, present, changed.words)]
        why_not_all = "there was no time for all of them" if any(run.no_time for run in runs) else ""
        if any(run.is_enough for run in runs):
            why_not_all = "that is enough, and others were not run"
        return tests, remote.read(laid), why_not_all


def speaking_of(tests: Sequence[OwnTest], sources: Mapping[str, bytes], words: Collection[str]) -> list[OwnTest]:
    """Return *tests* that mention most of *words* first: for compiled code no more is known before it is built.

    *sources* are the files of tests, by path.
    """
    wanted = frozenset(words)
    spoken = {
        PytestFunction(path, name): len(wanted & words_of(function))
        for path in {test.file for test in tests}
        for name, function in functions_in(sources[path]).items()
    }
    return sorted((test for test in tests if spoken.get(test.function)), key=lambda test: -spoken[test.function])


def relevant_tests(
    base: TestRun, oracle: TestRun, *, is_compiled: bool = False, untraced: TestRun | None = None
) -> dict[str, float]:
    """Names of tests that pass on both sides and whose call executes watched lines on either, longest first.

    If the change *is_compiled*, all that pass, since lines cannot be traced. Code executed by fixtures is not timed
    later, and does not count.

    With each the seconds of its longer call, or of its call in the *untraced* run. Of a function with many parameters
    the longest comes before any second.
    """
    known = {
        name: test.call_seconds
        for name, test in (untraced.tests.items() if untraced else ())
        if test.outcome is RunOutcome.PASSED
    }
    seconds = {
        name: known.get(name, max(test.call_seconds, after.call_seconds))
        for name, test in base.tests.items()
        if (after := oracle.tests.get(name)) is not None
        and {test.outcome, after.outcome} == {RunOutcome.PASSED}
        and (is_compiled or _executes(test) or _executes(after))
    }
    turns: dict[str, int] = {}
    places: dict[str, tuple[int, float]] = {}
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        function = name.partition("[")[0]
        turns[function] = turns.get(function, 0) + 1
        places[name] = turns[function], -seconds[name]
    return {name: seconds[name] for name in sorted(places, key=places.__getitem__)}


def _by_function(tests: Sequence[OwnTest]) -> dict[PytestFunction, list[str]]:
    functions: dict[PytestFunction, list[str]] = {}
    for test in sorted(tests, key=attrgetter("file", "name")):
        functions.setdefault(test.function, []).append(test.name)
    return functions


def _adapted(functions: Mapping[PytestFunction, Sequence[str]]) -> tuple[str, ...]:
    return tuple(f"{function.file}: {name}" for function, names in functions.items() for name in names)


def _lines_of(name: str, runs: Sequence[TestRun]) -> frozenset[tuple[int, str, int]]:
    return frozenset(
        (side, path, line)
        for side, run in enumerate(runs)
        for path, lines in run.tests[name].call_lines.items()
        for line in lines
    )


def _executes(test: EndedTest) -> bool:
    return any(test.call_lines.values())
