"""Verdict on a change from its test runs. Pure: runs in, row out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from formulacode_dagster.models.correctness import Fate, Mutant, ReachingTest, RunOutcome

from .module_shape import ModuleShape
from .patch_lines import PatchLines
from .runs import EndedTest, TestRun

Shapes = Mapping[str, ModuleShape]
"""Changed files by path, without those that cannot be read."""

RUNS = 3
"""Runs per side: passing means passing in all of them."""
MIN_COVERAGE = 0.5
"""Share of executed changed lines below which the tests are weak, whatever their outcome."""


def fate_of(test: ReachingTest) -> Fate:
    """Return the outcome of *test* over all runs; blame requires failing in all runs of one side and none of the other.

    A test that some run had no time for is left out, whatever the others say.
    """
    if RunOutcome.NOT_BEGUN in {*test.base, *test.oracle}:
        return Fate.NOT_BEGUN
    base, oracle = (_passes(outcomes) for outcomes in (test.base, test.oracle))
    if base is None or oracle is None:
        return Fate.FLAKY
    if base:
        return Fate.PASS_TO_PASS if oracle else Fate.BROKEN
    return Fate.FAIL_TO_PASS if oracle else Fate.NEVER_PASSES


def names_of(tests: Iterable[ReachingTest], fate: Fate) -> tuple[str, ...]:
    """Names of those of *tests* whose runs say *fate*, in their order."""
    return tuple(test.name for test in tests if fate_of(test) is fate)


def reaching(changed: PatchLines, base: TestRun, oracle: TestRun) -> tuple[str, ...]:
    """Names of the tests that execute a removed line at the base or an added one with the patch, sorted.

    If only the import executes the changed lines of a file on a side, every test that enters the file on either counts;
    if untraceable compiled code changed, every test.
    """
    if changed.untraceable:
        return tuple(sorted(base.tests.keys() | oracle.tests.keys()))
    names: set[str] = set()
    imported = {*_only_imported(base), *_only_imported(oracle)}
    for run in (base, oracle):
        names |= {name for name, test in run.tests.items() if any(test.lines.values()) or test.entered & imported}
    return tuple(sorted(names))


def may_reach(changed: PatchLines, oracle: TestRun, shapes: Sequence[Shapes]) -> frozenset[str]:
    """Return the tests that may execute a removed line at the base, by a run with the patch; empty: any may.

    Up to the first changed line both sides do the same: a test that executes one at the base enters a changed file with
    the patch. That is not known of a test that ended its process; and of none, if a file is deleted or compiled, some
    tests cannot be collected with the patch, or it had no time for all. Nor is it known if imports do something else,
    by the *shapes* of the files on either side, or import and collection call changed functions.
    """
    if changed.untraceable or changed.deletes or oracle.uncollected or oracle.no_time:
        return frozenset()
    if not _imports_alike(changed, *shapes) or calls_at_import(oracle, shapes[1]):
        return frozenset()
    lost = {RunOutcome.CRASH, RunOutcome.TIMEOUT}
    return frozenset({name for name, test in oracle.tests.items() if test.entered or test.outcome in lost})


def calls_at_import(run: TestRun, shapes: Shapes) -> bool:
    """Return True if import or collection executes changed lines inside of functions: then the tests may differ."""
    return any(path in shapes and lines & shapes[path].bodies for path, lines in run.imported.items())


def coverage(base: TestRun, oracle: TestRun) -> tuple[int, int]:
    """Return the number of executable lines that the change removes and adds, and how many of them tests execute."""
    changed = covered = 0
    for run in (base, oracle):
        executed: dict[str, set[int]] = {path: set(lines) for path, lines in run.imported.items()}
        for test in run.tests.values():
            for path, lines in test.lines.items():
                executed.setdefault(path, set()).update(lines)
        changed += sum(map(len, run.executable.values()))
        covered += sum(len(lines & executed.get(path, set())) for path, lines in run.executable.items())
    return changed, covered


def holding(tests: Iterable[ReachingTest]) -> list[ReachingTest]:
    """Return those of *tests* that pass in all runs of the patch, and are flaky on neither side."""
    return [test for test in tests if fate_of(test) in {Fate.PASS_TO_PASS, Fate.FAIL_TO_PASS}]


def are_weak(
    tests: Sequence[ReachingTest],
    mutants: Sequence[Mutant],
    *,
    changed: int,
    covered: int,
    untraceable: Sequence[str],
) -> bool:
    """Return True if *tests* may accept a wrong change.

    That is the case if none of them passes with it, if they execute too little of it, or detect none of its *mutants*;
    and if part of it is *untraceable*, since nothing shows that any of them executes that.
    """
    unnoticed = bool(mutants) and not any(mutant.killed for mutant in mutants)
    return not holding(tests) or covered < MIN_COVERAGE * changed or unnoticed or bool(untraceable)


def compared(names: Iterable[str], base: Sequence[TestRun], oracle: Sequence[TestRun]) -> tuple[ReachingTest, ...]:
    """The tests *names* with how they ended in each run of *base* and *oracle*."""
    return tuple(_compared(name, base, oracle) for name in names)


def _compared(name: str, base: Sequence[TestRun], oracle: Sequence[TestRun]) -> ReachingTest:
    sides = [[run.tests.get(name) or _absent(name, run) for run in runs] for runs in (base, oracle)]
    messages = [test.message for runs in sides for test in runs if test.message]
    return ReachingTest(
        name=name,
        base=tuple(test.outcome for test in sides[0]),
        oracle=tuple(test.outcome for test in sides[1]),
        seconds=round(max(test.seconds for runs in sides for test in runs), 4),
        message=messages[-1] if messages else "",
    )


def _absent(name: str, run: TestRun) -> EndedTest:
    """Return the outcome of the test *name*, which *run* did not report."""
    # a file that cannot be collected is known before time can be up
    is_missing = not run.no_time or any(name.startswith((f"{path}::", f"{path}/")) for path in run.uncollected)
    return EndedTest(name=name, outcome=RunOutcome.MISSING if is_missing else RunOutcome.NOT_BEGUN)


def _passes(outcomes: Sequence[RunOutcome]) -> bool | None:
    """Return True if a test passes in all of its runs, False if in none; None if it is flaky."""
    passed = {outcome is RunOutcome.PASSED for outcome in outcomes}
    return passed.pop() if len(passed) == 1 else None


def _imports_alike(changed: PatchLines, base: Shapes, oracle: Shapes) -> bool:
    """Return True if importing a changed file does the same on both sides, or only binds more names with the patch."""
    both = base.keys() & oracle.keys()
    return all(path in both and base[path].is_part_of(oracle[path]) for path in changed.base)


def _only_imported(run: TestRun) -> Iterable[str]:
    """Files of which importing executes changed lines, and no test any."""
    by_tests = {path for test in run.tests.values() for path, lines in test.lines.items() if lines}
    return [path for path, lines in run.imported.items() if lines and path not in by_tests]
