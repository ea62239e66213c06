"""What the runs of tests say about a change. Pure: runs in, row out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formulacode_dagster.models.correctness import Fate, Mutant, ReachingTest, RunOutcome

from .patch_lines import PatchLines
from .runs import EndedTest, TestRun

RUNS = 3
"""Of each side: passing is passing in all of them."""
MIN_COVERAGE = 0.5
"""Share of the changed lines below which the tests are weak, whatever they say."""


def fate_of(test: ReachingTest) -> Fate:
    """What the runs of *test* say together; blame takes failing in all runs of one side and in none of the other.

    One that any run had no time for is left out, whatever the others say.
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

    Where only importing executes what changed of a file, every test that enters the file counts; where compiled code
    changed, which cannot be traced, every test.
    """
    if changed.untraceable:
        return tuple(sorted(base.tests.keys() | oracle.tests.keys()))
    names: set[str] = set()
    for run in (base, oracle):
        imported = set(_only_imported(run))
        names |= {name for name, test in run.tests.items() if any(test.lines.values()) or test.entered & imported}
    return tuple(sorted(names))


def coverage(base: TestRun, oracle: TestRun) -> tuple[int, int]:
    """How many executable lines the change removes and adds, and how many of them are executed for the tests."""
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
    """Those of *tests* that pass in all runs of the patch, and depend on the run on neither side."""
    return [test for test in tests if fate_of(test) in {Fate.PASS_TO_PASS, Fate.FAIL_TO_PASS}]


def are_weak(
    tests: Sequence[ReachingTest],
    mutants: Sequence[Mutant],
    *,
    changed: int,
    covered: int,
    untraceable: Sequence[str],
) -> bool:
    """Whether *tests* may let a wrong change through.

    They may when none of them passes with it, when they execute too little of it, or notice none of its *mutants*; and
    when part of it is *untraceable*: nothing shows that any of them executes that.
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
    """How the test *name* ended, of which *run* told nothing."""
    # a file that cannot be collected is known before time can be up
    is_missing = not run.no_time or any(name.startswith((f"{path}::", f"{path}/")) for path in run.uncollected)
    return EndedTest(name=name, outcome=RunOutcome.MISSING if is_missing else RunOutcome.NOT_BEGUN)


def _passes(outcomes: Sequence[RunOutcome]) -> bool | None:
    """Whether a test passes in all of its runs or in none; None where it depends on the run."""
    passed = {outcome is RunOutcome.PASSED for outcome in outcomes}
    return passed.pop() if len(passed) == 1 else None


def _only_imported(run: TestRun) -> Iterable[str]:
    """Files of which importing executes changed lines, and no test any."""
    by_tests = {path for test in run.tests.values() for path, lines in test.lines.items() if lines}
    return [path for path, lines in run.imported.items() if lines and path not in by_tests]
