"""The repository's own tests that execute a change and take long enough, as a suite of benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import attrgetter
from pathlib import PurePosixPath

from formulacode_dagster.correctness.changed_lines import changed_lines
from formulacode_dagster.correctness.runs import EndedTest, TestRun, TestRunner
from formulacode_dagster.engines.protocol import Engine, Session
from formulacode_dagster.models.correctness import RunOutcome
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec, BuiltImage
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.suites.overlays import SuiteFiles, is_whole_checkout
from formulacode_dagster.suites.patching import apply_patch
from formulacode_dagster.suites.remote import Remote

from .laying import PytestFunction, is_same_everywhere, suite_files

LEAST_SECONDS = 0.002
"""Of a test with its fixtures: what is shorter is no workload, but pytest's own work."""
MOST_TESTS = 24
MOST_FILES = 20
RUN_SECONDS = 60.0
"""For the tests of one side; what they do not come to is no workload."""
HASH_SEED = 0
Lines = Mapping[str, Collection[int]]
"""Numbers of lines by path below the repository."""


@dataclass(frozen=True)
class OwnTest:
    """One test: its file below the repository, what follows it in pytest's id, and the longer of its two runs."""

    file: str
    name: str
    seconds: float

    @property
    def function(self) -> PytestFunction:
        """Its function or method, without parameters."""
        return PytestFunction(self.file, self.name.partition("[")[0])


def suites_of_tests(
    engine: Engine,
    image: BuiltImage,
    sessions: tuple[Session, Session],
    *,
    patch: bytes,
    lines: tuple[Lines, Lines],
    commit: str,
    run_id: str,
    note: Callable[[str], None],
) -> Iterator[SuiteFiles]:
    """The suite of tests that pass on both sides and execute one of *lines*, if there are any; else *note* says why.

    *sessions* and *lines* are those of base and oracle. Tests run in copies of the sessions, which stay as they are.
    Files of tests that *patch* changes are laid over every arm as they are after it. *commit* is the base's.
    """
    if not any(numbers for side in lines for numbers in side.values()) or is_whole_checkout(image.spec.benchmark_dir):
        return
    note("looking for tests of its own that execute the change")
    try:
        tests, laid = _relevant(engine, image, sessions, patch, lines, run_id)
    except ItemFailure as failure:
        note(f"its own tests cannot be told from: {failure}")
        return
    note(f"{len(tests)} of its own tests execute the change, and take long enough")
    if tests:
        yield _suite(sorted(tests, key=attrgetter("file", "name")), laid, image.spec, commit)


def _relevant(
    engine: Engine,
    image: BuiltImage,
    sessions: tuple[Session, Session],
    patch: bytes,
    lines: tuple[Lines, Lines],
    run_id: str,
) -> tuple[list[OwnTest], dict[str, bytes]]:
    """The tests, and the files that are laid with them."""
    changed = changed_lines(patch, benchmark_dir=image.spec.benchmark_dir)
    with ExitStack() as stack:
        base, oracle = (stack.enter_context(engine.session(image, run_id=run_id, like=like)) for like in sessions)
        if changed.tests:
            apply_patch(base, patch, only=changed.tests)
        runs = [
            TestRunner(session, image.spec, most_files=MOST_FILES, budget=RUN_SECONDS).run(
                hash_seed=HASH_SEED, words=changed.words, watched=watched
            )
            for session, watched in zip((base, oracle), lines, strict=True)
        ]
        remote = Remote(oracle, benchmark_dir=image.spec.benchmark_dir)
        candidates = relevant_tests(*runs)
        present = remote.read(path for name in candidates for path in _places(name, image.spec))
        tests = [
            OwnTest(path, name.partition("::")[2], seconds)
            for name, seconds in candidates.items()
            for path in _places(name, image.spec)
            if path in present and is_same_everywhere(path, changed.tests, image.spec.package_name)
        ][:MOST_TESTS]
        return tests, remote.read(changed.tests)


def relevant_tests(base: TestRun, oracle: TestRun) -> dict[str, float]:
    """Names of tests that pass on both sides, take long enough and execute watched lines on either, longest first.

    With each the seconds of its longer run. Of a function with many parameters the longest comes before any second.
    """
    seconds = {
        name: max(test.seconds, after.seconds)
        for name, test in base.tests.items()
        if (after := oracle.tests.get(name)) is not None
        and {test.outcome, after.outcome} == {RunOutcome.PASSED}
        and (_executes(test) or _executes(after))
        and max(test.seconds, after.seconds) >= LEAST_SECONDS
    }
    turns: dict[str, int] = {}
    places: dict[str, tuple[int, float]] = {}
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        function = name.partition("[")[0]
        turns[function] = turns.get(function, 0) + 1
        places[name] = turns[function], -seconds[name]
    return {name: seconds[name] for name in sorted(places, key=places.__getitem__)}


def _suite(tests: Sequence[OwnTest], laid: Mapping[str, bytes], spec: BuildSpec, commit: str) -> SuiteFiles:
    functions: dict[PytestFunction, list[str]] = {}
    for test in tests:
        functions.setdefault(test.function, []).append(test.name)
    adapted = tuple(f"{test.file}: {test.name}" for test in tests)
    files = {**laid, **suite_files(functions, spec)}
    return SuiteFiles(f"{len(tests)} of its own tests", files, Source.OWN_TESTS, commit, adapted)


def _places(name: str, spec: BuildSpec) -> tuple[str, ...]:
    """Where the file of a test may be: pytest's ids are relative to its root, which may lie above the package's."""
    file = name.partition("::")[0]
    below = str(PurePosixPath(spec.package_root, file))
    return tuple(dict.fromkeys((below, file)))


def _executes(test: EndedTest) -> bool:
    return any(test.lines.values())
