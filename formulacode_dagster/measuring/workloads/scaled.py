"""Short tests scaled to larger inputs by declared rules, until a call takes long enough for the clock.

The rules are in `generated/growing.py`: numbers that size data are multiplied, lists are tiled. A scaled test
counts if it passes on both sides with its assertions unchanged; a test that no rule scales is repeated.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import partial

from formulacode_dagster.building.suites.questions import SurveyedBenchmark
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
CLEARLY = 2
"""A call of that many times the minimum takes long enough, however much calls differ."""
LONGEST_SECONDS = 5.0
"""Time limit of one call of a scaled test, in seconds."""
TRIAL_SECONDS = 60.0
"""Time limit for all scaled tests of one side; tests beyond it are no workload."""

Growths = Mapping[PytestFunction, Sequence[str]]
"""Tests of each function, by name with rule and factor."""


def grown_tests(sides: Sides, tests: Growths, laid: Mapping[str, bytes], *, least: float) -> Growths:
    """The least growth of each of *tests* by which a call takes *least* seconds, of those that have one.

    *laid* are the files copied with them. Repetition is the last rule: it enlarges no input. Growths beyond the first
    that clearly takes long enough are tried only if none before them can be taken.
    """
    growths = {
        function: [growth_name(name, rule, factor) for name in names for rule in RULES for factor in FACTORS]
        for function, names in tests.items()
    }
    files = {**laid, **grown_files(growths, sides.image.spec)}
    clearly = partial(up_to_enough, enough=CLEARLY * least)
    trial = sides.trial(files, limit=LONGEST_SECONDS, budget=TRIAL_SECONDS, wanted=clearly)
    aimed = [each for each in trial.tried if sides.may_execute_change(each)]
    growths_taken = least_growths(aimed, least=least)
    larger = [each.name for each in trial.unwanted if _is_better(each, growths_taken)]
    if larger:
        trial = sides.trial(files, limit=LONGEST_SECONDS, budget=TRIAL_SECONDS, only=larger)
        aimed += [each for each in trial.tried if sides.may_execute_change(each)]
        growths_taken = least_growths(aimed, least=least)
    owners = {name: function for function, name in class_names(tests).items()}
    chosen: dict[PytestFunction, list[str]] = {}
    for (owner, _), growth in growths_taken.items():
        chosen.setdefault(owners[owner], []).append(growth)
    return chosen


def up_to_enough(ran: Mapping[str, SurveyedBenchmark], *, enough: float) -> list[str]:
    """Return the growths to try of those that *ran*: of each test and rule up to the first of *enough* seconds."""
    wanted: list[str] = []
    is_enough: set[tuple[str, str]] = set()
    for name, each in sorted(ran.items(), key=lambda item: int(_parameter(item[1]).rpartition(" x")[2])):
        series = each.owner, _parameter(each).rpartition(" x")[0]
        if series not in is_enough:
            wanted.append(name)
        if each.seconds >= enough:
            is_enough.add(series)
    return wanted


def least_growths(tried: Sequence[Tried], *, least: float) -> dict[tuple[str, str], str]:
    """Return the smallest growth with at least *least* seconds, by class and test."""
    long_enough = [each for each in tried if each.seconds >= least]
    ordered = sorted(long_enough, key=lambda each: (_rule(_parameter(each.base)) == REPEATS, each.seconds))
    chosen: dict[tuple[str, str], str] = {}
    for each in ordered:
        chosen.setdefault(_test(each.base), _parameter(each.base))
    return chosen


def grown_files(growths: Growths, spec: BuildSpec) -> dict[str, bytes]:
    """Return a benchmark folder with only *growths*."""
    return suite_files(growths, spec, grown=True)


def growth_name(name: str, rule: str, factor: int) -> str:
    """The parameter under which the test *name* is grown."""
    return f"{name}{GROWN}{rule} x{factor}"


def _is_better(growth: SurveyedBenchmark, chosen: Mapping[tuple[str, str], str]) -> bool:
    """Return True if *growth* would be taken rather than that *chosen* for its test."""
    taken = chosen.get(_test(growth))
    return taken is None or (_rule(taken) == REPEATS and _rule(_parameter(growth)) != REPEATS)


def _test(growth: SurveyedBenchmark) -> tuple[str, str]:
    """Return its class and test."""
    return growth.owner, _parameter(growth).rpartition(GROWN)[0]


def _parameter(growth: SurveyedBenchmark) -> str:
    return str(ast.literal_eval(growth.name.partition("(")[2][:-1]))


def _rule(parameter: str) -> str:
    return parameter.rpartition(GROWN)[2].rpartition(" x")[0]
