"""Running a repository's own tests before and after a change, in fresh sessions of the task's image."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from formulacode_dagster.building.engines.protocol import Completed, Engine, Session
from formulacode_dagster.building.suites.patching import apply_patch, build_oracle
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.building.verification.importing import import_modules
from formulacode_dagster.models.correctness import Correctness, Fate, Mutant, ReachingTest
from formulacode_dagster.models.image import BuiltImage, ResourceLimits

from .module_shape import ModuleShape, shapes_of
from .mutants import try_mutants
from .patch_lines import PatchLines, patch_lines
from .runs import TestRun, TestRunner
from .verdict import RUNS, are_weak, calls_at_import, compared, coverage, holding, may_reach, names_of, reaching

T = TypeVar("T")

HASH_SEEDS = tuple(range(1, RUNS + 1))
"""Hash seeds of the runs, the same on both sides, so that set order affects both equally."""
MOST_AT_ONCE = 2
"""Sides that are built and run side by side, all tasks of this process together."""

_places = threading.BoundedSemaphore(MOST_AT_ONCE)


def compare_tests(
    engine: Engine,
    image: BuiltImage,
    *,
    patch: bytes,
    limits: ResourceLimits,
    run_id: str,
    hidden: Sequence[str],
    oracle: Session | None = None,
) -> Correctness:
    """Run the repository's tests in *image* that reach the changes of *patch*, three times per side.

    The base has the tests of the patch, and its own code. The first run of a side also records which tests reach the
    change, except for compiled code: *hidden* lists such Python. The base runs only tests that may reach it, as the
    patch's first run shows, unless the patch changes what imports do. Every run has a separate session and hash seed.
    Those of the patch are copies of *oracle* if that is given, a session of *engine* with the patch built.
    Raises ItemFailure: `oracle_does_not_apply`, `tests_do_not_run`, and as `build_oracle`.
    """
    started = time.monotonic()
    changed = patch_lines(patch, benchmark_dir=image.spec.benchmark_dir, hidden=hidden)
    base = _Side(engine, image, limits, run_id, patch, changed, is_oracle=False)
    patched = _Side(engine, image, limits, run_id, patch, changed, is_oracle=True, built=oracle)
    sides = [base, patched]
    with ExitStack() as stack:
        stacks = [stack.enter_context(ExitStack()) for _ in sides]
        opened = _side_by_side([partial(side.open, own) for side, own in zip(sides, stacks, strict=True)])
        shapes = [side.shapes(sessions[0]) for side, sessions in zip(sides, opened, strict=True)]
        with_patch = patched.begin(opened[1])
        named = may_reach(changed, with_patch, shapes)
        at_base = base.begin(opened[0], named=named)
        if named and calls_at_import(at_base, shapes[0]):
            at_base = base.begin(opened[0])
        first = [at_base, with_patch]
        names = reaching(changed, *first)
        again = _side_by_side(
            [partial(side.go_on, sessions, names) for side, sessions in zip(sides, opened, strict=True)]
        )
        tests = compared(names, *([run, *others] for run, others in zip(first, again, strict=True)))
        mutants = patched.try_mutants(opened[1][-1], with_patch, tests)
    lines, covered = coverage(*first)
    return Correctness(
        month=image.month,
        repository_id=image.repository_id,
        number=image.number,
        image_digest=image.digest,
        pytest=first[0].pytest,
        hash_seeds=HASH_SEEDS,
        executed=len(first[0].tests.keys() | first[1].tests.keys()),
        left_out=max(run.left_out for run in first),
        no_time=any(run.no_time for run in first),
        tests=tests,
        pass_to_pass=names_of(tests, Fate.PASS_TO_PASS),
        fail_to_pass=names_of(tests, Fate.FAIL_TO_PASS),
        flaky=names_of(tests, Fate.FLAKY),
        broken=names_of(tests, Fate.BROKEN),
        not_begun=names_of(tests, Fate.NOT_BEGUN),
        changed_lines=lines,
        covered_lines=covered,
        untraceable=changed.untraceable,
        mutants=mutants,
        weak_tests=are_weak(tests, mutants, changed=lines, covered=covered, untraceable=changed.untraceable),
        problem=_problem(first),
        seconds=round(time.monotonic() - started, 2),
    )


@dataclass(frozen=True)
class _Side:
    """The base, or the author's patch."""

    engine: Engine
    image: BuiltImage
    limits: ResourceLimits
    run_id: str
    patch: bytes
    changed: PatchLines
    is_oracle: bool
    built: Session | None = None
    """A session with the patch built, if there is one."""

    def shapes(self, session: Session) -> dict[str, ModuleShape]:
        """Return the shapes of the changed Python files in *session*."""
        paths = self.changed.oracle if self.is_oracle else self.changed.base
        return shapes_of(HarnessClient(session, benchmark_dir=self.image.spec.benchmark_dir).read(paths))

    def begin(self, sessions: Sequence[Session], named: Collection[str] = ()) -> TestRun:
        """Run the tests *named*, or all that fit the time, in the first of *sessions*."""
        watched = self.changed.oracle if self.is_oracle else self.changed.base
        with _places:
            runner = TestRunner(sessions[0], self.image.spec)
            return runner.run(hash_seed=HASH_SEEDS[0], named=named, words=self.changed.words, watched=watched)

    def go_on(self, sessions: Sequence[Session], names: Sequence[str]) -> list[TestRun]:
        """Run the tests *names* once in each of *sessions* but the first; without any there is nothing to run."""
        if not names:
            return [TestRun() for _ in sessions[1:]]
        with _places:
            return [
                TestRunner(session, self.image.spec).run(hash_seed=seed, named=names)
                for session, seed in zip(sessions[1:], HASH_SEEDS[1:], strict=True)
            ]

    def try_mutants(self, session: Session, first: TestRun, tests: Sequence[ReachingTest]) -> tuple[Mutant, ...]:
        """Return which mutants of the patch *tests* detect, in a *session* of the patch that is not needed any more."""
        with _places:
            runner = TestRunner(session, self.image.spec)
            return try_mutants(partial(runner.kills, hash_seed=HASH_SEEDS[-1]), first, holding(tests))

    def open(self, stack: ExitStack) -> list[Session]:
        """Open a session for each run until *stack* closes, the package built in all of them."""
        with _places:
            first = stack.enter_context(self.engine.session(self.image, run_id=self.run_id, like=self.built))
            if self.built is None and self.is_oracle:
                apply_patch(first, self.patch)
                build_oracle(partial(self._build, first), self._build_base)
            elif not self.is_oracle and self.changed.tests:
                apply_patch(first, self.patch, only=self.changed.tests)
            if self.image.spec.package_name:
                # bytecode that the copies find: processes of tests keep none
                client = HarnessClient(first, benchmark_dir=self.image.spec.benchmark_dir)
                import_modules(client, [self.image.spec.package_name])
            # builds are copied rather than repeated: a compiled package takes minutes
            copies = [self.engine.session(self.image, run_id=self.run_id, like=first) for _ in HASH_SEEDS[1:]]
            return [first, *map(stack.enter_context, copies)]

    def _build(self, session: Session) -> Completed:
        return session.reinstall(timeout=self.limits.build_seconds)

    def _build_base(self) -> Completed:
        with self.engine.session(self.image, run_id=self.run_id) as session:
            return self._build(session)


def _side_by_side(works: Sequence[Callable[[], T]]) -> list[T]:
    """Return the results of *works*; raises the first error once all have ended."""
    with ThreadPoolExecutor(len(works)) as threads:
        futures = [threads.submit(work) for work in works]
    return [future.result() for future in futures]


def _problem(runs: Sequence[TestRun]) -> str:
    """Return why no test could be run, if none was."""
    if any(run.tests for run in runs):
        return ""
    reasons = [f"{name}: {message}" for run in runs for name, message in run.uncollected.items()]
    return reasons[0] if reasons else "the repository has no tests"
