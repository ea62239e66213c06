"""Short tests scaled to larger inputs by declared rules, until a call takes long enough for the clock.

The rules are in `generated/growing.py`: numbers that size data are multiplied, lists are tiled. A scaled test
counts if it passes on both sides with its assertions unchanged; a test that no rule scales is repeated.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from formulacode_dagster.models.image import BuildSpec

from .generated.growing import REPEATS, SEQUENCES, SIZES
from .overlay import PytestFunction, class_names, suite_files
from .sides import Sides, Tried

GROWN = " | "
LARGER = (SIZES, SEQUENCES, f"{SIZES} and {SEQUENCES}")
RULES = (*LARGER, REPEATS)
FACTORS = (10, 100, 1000)
MOST_TESTS = 12
LEAST_SECONDS = 0.002
"""Minimum seconds of a call: shorter ones are scaled, since mostly the caller would be timed."""
LONGEST_SECONDS = 5.0
"""Time limit of one call of a scaled test, in seconds."""
TRIAL_SECONDS = 60.0
"""Time limit for all scaled tests of one side; tests beyond it are no workload."""

Growths = Mapping[PytestFunction, Sequence[str]]
"""Tests of each function, by name with rule and factor."""


def grown_tests(sides: Sides, tests: Growths, laid: Mapping[str, bytes], *, least: float) -> Growths:
    """The least growth of each of *tests* by which a call takes *least* seconds, of those that have one.

    *laid* are the files copied with them. Repetition is the last rule: it enlarges no input.
    """
    growths = {
        function: [growth_name(name, rule, factor) for name in names for rule in RULES for factor in FACTORS]
        for function, names in tests.items()
    }
    files = {**laid, **grown_files(growths, sides.image.spec)}
    tried = sides.trial(files, limit=LONGEST_SECONDS, budget=TRIAL_SECONDS).tried
    owners = {name: function for function, name in class_names(tests).items()}
    chosen: dict[PytestFunction, list[str]] = {}
    aimed = [each for each in tried if sides.may_execute_change(each)]
    for (owner, _), growth in least_growths(aimed, least=least).items():
        chosen.setdefault(owners[owner], []).append(growth)
    return chosen


def least_growths(tried: Sequence[Tried], *, least: float) -> dict[tuple[str, str], str]:
    """Return the smallest growth with at least *least* seconds, by class and test."""
    long_enough = [each for each in tried if each.seconds >= least]
    ordered = sorted(long_enough, key=lambda each: (_rule(each) == REPEATS, each.seconds))
    chosen: dict[tuple[str, str], str] = {}
    for each in ordered:
        growth = _parameter(each)
        chosen.setdefault((each.base.owner, growth.rpartition(GROWN)[0]), growth)
    return chosen


def grown_files(growths: Growths, spec: BuildSpec) -> dict[str, bytes]:
    """Return a benchmark folder with only *growths*."""
    return suite_files(growths, spec, grown=True)


def growth_name(name: str, rule: str, factor: int) -> str:
    """The parameter under which the test *name* is grown."""
    return f"{name}{GROWN}{rule} x{factor}"


def _parameter(tried: Tried) -> str:
    return str(ast.literal_eval(tried.base.name.partition("(")[2][:-1]))


def _rule(tried: Tried) -> str:
    return _parameter(tried).rpartition(GROWN)[2].rpartition(" x")[0]
