"""The repository's own tests before and after a change."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .base import Frozen, PullRequestRow


class RunOutcome(StrEnum):
    """Outcome of one test in one run. Only `passed` counts as a pass."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Skipped by itself, or expected to fail."""
    TIMEOUT = "timeout"
    CRASH = "crash"
    """The process ended under it."""
    MISSING = "missing"
    """Not collected: on this side, its module cannot be imported or does not define it."""
    NOT_BEGUN = "not_begun"
    """The time of the run was up before: nothing is known of it."""


class Fate(StrEnum):
    """Conclusion from all runs of a test."""

    PASS_TO_PASS = "pass_to_pass"  # noqa: S105 - no password
    FAIL_TO_PASS = "fail_to_pass"  # noqa: S105 - no password
    BROKEN = "broken"
    """Passes in every run of the base, and in none of the author's patch."""
    NEVER_PASSES = "never_passes"
    FLAKY = "flaky"
    """Passes in some runs of a side and not in others."""
    NOT_BEGUN = "not_begun"
    """Left out: a run had no time for it, and how long tests take is no evidence."""


class ReachingTest(Frozen):
    """A test that executes the change, on either side, and how it ended in each run."""

    name: str = Field(description="pytest's node id")
    base: tuple[RunOutcome, ...] = Field(description="outcome of each run of the base")
    oracle: tuple[RunOutcome, ...] = Field(description="outcome of each run with the author's patch")
    seconds: float = Field(ge=0, description="seconds of its slowest run")
    message: str = Field(default="", description="end of the report of its last run that did not pass")


class MutationKind(StrEnum):
    """A small mistake in a line of the author's patch."""

    RETURNED = "returned"
    """`return x` becomes `return None`."""
    COMPARED = "compared"
    """`<` becomes `>=`, `is` becomes `is not`, and so on."""
    COMPUTED = "computed"
    """`+` becomes `-`, and so on."""
    CONSTANT = "constant"
    """A number is one more, True is False."""
    DELETED = "deleted"
    """A call is not made, an attribute or an element not set."""


class Mutation(Frozen):
    """A place in a file that can be mutated."""

    line: int = Field(ge=1)
    column: int = Field(ge=0, description="in bytes, from 0")
    kind: MutationKind


class Mutant(Mutation):
    """The author's patch with a mistake, and whether the tests that execute it noticed."""

    path: str
    tests: int = Field(ge=1, description="tests that pass with the patch, execute the line and were to be run")
    killed: bool = Field(description="whether one of them did not pass")


class Correctness(PullRequestRow):
    """The tests that reach the change of one pull request, run on its base and with the author's patch."""

    image_digest: str = Field(description="the image they ran in")
    pytest: str = Field(description="version that ran them; `` if none could run")
    hash_seeds: tuple[int, ...] = Field(description="PYTHONHASHSEED of each run, the same for both sides")
    executed: int = Field(description="tests that were run once a side to learn which reach the change")
    left_out: int = Field(description="files of tests that were not looked into, for there are too many")
    no_time: bool = Field(description="whether time was up before all tests of the others had been run once")
    tests: tuple[ReachingTest, ...] = Field(description="the tests that reach the change")
    pass_to_pass: tuple[str, ...] = Field(description="those that pass in every run of both sides")
    fail_to_pass: tuple[str, ...] = Field(description="those that pass in every run of the patch and none of the base")
    flaky: tuple[str, ...] = Field(description="those that pass in some runs of a side and not in others")
    broken: tuple[str, ...] = Field(description="those that pass in every run of the base and none of the patch")
    not_begun: tuple[str, ...] = Field(default=(), description="the rest, which some run had no time for")
    changed_lines: int = Field(description="removed and added lines that are executable Python, outside of tests")
    covered_lines: int = Field(description="those of them that a test executes, or importing does for tests")
    untraceable: tuple[str, ...] = Field(
        description="changed compiled sources and functions: their covering tests are unknown"
    )
    mutants: tuple[Mutant, ...] = Field(
        default=(), description="mistakes in executed lines of the patch that were tried, up to the first noticed"
    )
    weak_tests: bool = Field(
        description="whether no test covers the change, under half of its lines are executed, no mutant was detected, "
        "or part of it is untraceable"
    )
    problem: str = Field(default="", description="why no test could be run")
    seconds: float = Field(description="seconds in total")
