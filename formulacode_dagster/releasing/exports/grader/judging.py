"""Judges samples by a task's stored rule: `measurement.statistics` without numpy, the same figures but for rounding.

Quantiles of Student's t come with the task (`tails`), since nothing here could compute them.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import random
from typing import Any, List, NamedTuple  # noqa: UP035 - CPython 3.7 evaluates the alias below

FASTER, SLOWER = 1, -1
RESAMPLES = 2000
MOST_MEDIANS = 2.0
MOST_ROWS = 4096
LEVEL, UNCHANGED_LEVEL = 0.95, 0.90
TIE = 1e-12

Rows = List[List[float]]  # noqa: UP006 - evaluated on CPython 3.7
"""Differences of logarithms: a row a block, a column a benchmark."""


class LogInterval(NamedTuple):
    """Two bounds, of logarithms."""

    low: float
    high: float


class ArmVerdict(NamedTuple):
    """Comparison of one arm with the base; ratios are base / arm."""

    verdict: str
    speedup: float
    low: float
    high: float
    p_value: float
    control_speedup: float
    by_benchmark: dict[str, float]

    @property
    def is_decided(self) -> bool:
        """Whether more samples would be useless."""
        return self.verdict != "inconclusive"


class Samples(NamedTuple):
    """Samples so far: values by arm and benchmark, in the order of the rounds, and the build of each."""

    values: dict[str, dict[str, list[float]]]
    objects: dict[str, list[str]]


class StoredRule:
    """The stored rule of a task, and the metrics of its benchmarks."""

    def __init__(self, told: dict[str, Any]) -> None:
        """*told* is `rule` of the task's file."""
        self.by_build = told["unit"] == "build"
        self.looks = [(int(look["units"]), float(look["alpha"])) for look in told["looks"]]
        self.min_speedup, self.min_bound = float(told["min_speedup"]), float(told["min_bound"])
        self.trade_off, self.workload_alpha = float(told["trade_off"]), float(told["workload_alpha"])
        self.seed = int(told["seed"])
        self.metrics: dict[str, str] = told["benchmark_metrics"]
        self.rates = frozenset(told["rates"])
        self.tails: dict[str, list[float]] = told["tails"]

    def tail(self, level: float, units: int) -> float:
        """The quantile that a percentile interval of *level* takes, of so many units; from 2 on."""
        return self.tails[str(level)][units - 2]


class Draws:
    """The stream of numpy's `RandomState(seed).randint`: the platform draws by it, and its figures are to come out."""

    def __init__(self, seed: int) -> None:
        key, number = [], seed % 2**32
        for place in range(624):
            key.append(number)
            number = (1812433253 * (number ^ (number >> 30)) + place + 1) % 2**32
        self._random = random.Random()  # noqa: S311 - resamples, protects nothing
        self._random.setstate((3, (*key, 624), None))

    def below(self, limit: int, size: int) -> list[int]:
        """*size* numbers from 0 to below *limit*."""
        if limit == 1:
            return [0] * size
        drawn: list[int] = []
        mask = (1 << (limit - 1).bit_length()) - 1
        while len(drawn) < size:
            number = self._random.getrandbits(32) & mask
            if number < limit:
                drawn.append(number)
        return drawn


@functools.lru_cache(maxsize=None)
def resamples(blocks: int, seed: int) -> list[list[int]]:
    """Places of blocks drawn again."""
    drawn = Draws(seed).below(blocks, RESAMPLES * blocks)
    return [drawn[start : start + blocks] for start in range(0, len(drawn), blocks)]


@functools.lru_cache(maxsize=None)
def sign_flips(blocks: int, seed: int) -> list[tuple[float, ...]]:
    """Relabellings that single workloads are compared on, the observed one first."""
    if 2**blocks <= MOST_ROWS:
        return list(itertools.product((1.0, -1.0), repeat=blocks))
    drawn = Draws(seed).below(2, (MOST_ROWS - 1) * blocks)
    rows = [tuple(2.0 * sign - 1.0 for sign in drawn[at : at + blocks]) for at in range(0, len(drawn), blocks)]
    return [(1.0,) * blocks, *rows]


class ArmContrast:
    """The base compared with another arm."""

    def __init__(self, sampled: Rows, rule: StoredRule) -> None:
        self._sampled, self._rule = sampled, rule
        self.units = len(sampled)
        self._bounded = bounded(sampled)

    def series(self, places: list[int]) -> list[float]:
        """A number a block: the mean over the benchmarks at *places*."""
        return [math.fsum(row[place] for place in places) / len(places) for row in self._bounded]

    def mean(self, places: list[int]) -> float:
        """Over blocks and benchmarks."""
        return math.fsum(self.series(places)) / self.units

    def interval(self, places: list[int], level: float) -> LogInterval:
        """The *level* interval of that mean."""
        if self.units < 2:
            return LogInterval(-math.inf, math.inf)
        series = self.series(places)
        drawn = sorted(sum(series[at] for at in row) / self.units for row in resamples(self.units, self._rule.seed))
        tail = self._rule.tail(level, self.units)
        return LogInterval(_quantile(drawn, tail), _quantile(drawn, 1 - tail))

    def p_value(self, places: list[int], direction: int) -> float:
        """Exact one-sided p-value of that mean, by sign flips."""
        return sign_flip_p([direction * difference for difference in self.series(places)])

    def corrected(self, direction: int, margin: float) -> list[float]:
        """One-sided p-values of each benchmark going beyond *margin*, by step-down max-T on the same flips."""
        values = bounded([[direction * cell - margin for cell in row] for row in self._sampled])
        columns = list(zip(*values))
        scales = [math.sqrt(math.fsum(cell * cell for cell in column)) or 1.0 for column in columns]
        statistics = [
            [sum(sign * cell for sign, cell in zip(signs, column)) / scale for column, scale in zip(columns, scales)]
            for signs in sign_flips(self.units, self._rule.seed)
        ]
        observed, highest, found = statistics[0], 0.0, [1.0] * len(columns)
        order = sorted(range(len(columns)), key=lambda place: -observed[place])
        for number, place in enumerate(order):
            rest = order[number:]
            reaching = sum(max(row[other] for other in rest) >= observed[place] - TIE for row in statistics)
            highest = max(highest, reaching / len(statistics))
            found[place] = highest
        return found


def judge(samples: Samples, arm: str, rule: StoredRule, look: int) -> ArmVerdict:
    """Decide on *arm* against `base`, with `control`, at the interim analysis *look* of the rule."""
    oracle, control = (ArmContrast(_differences(samples, side, rule), rule) for side in (arm, "control"))
    names, alpha = list(samples.values["base"]), rule.looks[look][1]
    metrics = list(dict.fromkeys(rule.metrics[name] for name in names))
    metrics.sort(key=["time", "peakmemory", "memory", "track"].index)
    groups = [[at for at, name in enumerate(names) if rule.metrics[name] == metric] for metric in metrics]
    margin = math.log(rule.trade_off)
    some_faster, some_slower = (
        any(p <= rule.workload_alpha for p in oracle.corrected(direction, margin)) for direction in (FASTER, SLOWER)
    )
    disturbed = any(
        _moved(control, places, direction, rule, alpha) for places in groups for direction in (FASTER, SLOWER)
    )
    faster, slower = (
        [places for places in groups if _moved(oracle, places, direction, rule, alpha)]
        for direction in (FASTER, SLOWER)
    )
    if disturbed:
        verdict = "inconclusive"
    elif (faster or some_faster) and (slower or some_slower):
        verdict = "trade_off"
    elif faster or slower:
        verdict = "faster" if faster else "slower"
    else:
        unchanged = all(_is_unchanged(oracle, places, rule, alpha) for places in groups)
        verdict = "unchanged" if unchanged else "inconclusive"
    decisive = (faster or slower or groups)[0]
    bounds = oracle.interval(decisive, LEVEL)
    return ArmVerdict(
        verdict=verdict,
        speedup=math.exp(oracle.mean(decisive)),
        low=math.exp(bounds.low),
        high=math.exp(bounds.high),
        p_value=oracle.p_value(decisive, FASTER),
        control_speedup=math.exp(control.mean(decisive)),
        by_benchmark={name: math.exp(oracle.mean([at])) for at, name in enumerate(names)},
    )


def _moved(contrast: ArmContrast, places: list[int], direction: int, rule: StoredRule, alpha: float) -> bool:
    bounds = contrast.interval(places, LEVEL)
    least = bounds.low if direction == FASTER else -bounds.high
    return (
        direction * contrast.mean(places) >= math.log(rule.min_speedup)
        and least >= math.log(rule.min_bound)
        and contrast.p_value(places, direction) <= alpha
    )


def _is_unchanged(oracle: ArmContrast, places: list[int], rule: StoredRule, alpha: float) -> bool:
    least, margin = math.log(rule.min_speedup), math.log(rule.trade_off)
    if oracle.interval(places, UNCHANGED_LEVEL).high > least or oracle.mean(places) <= -least:
        return False
    bounds = [oracle.interval([place], UNCHANGED_LEVEL) for place in places]
    return alpha > 0 or not any(bound.low > margin or bound.high < -margin for bound in bounds)


def _differences(samples: Samples, arm: str, rule: StoredRule) -> Rows:
    columns = []
    for name, base in samples.values["base"].items():
        better = -1 if name in rule.rates else 1
        pairs = zip(base, samples.values[arm][name])
        columns.append([better * math.log(before / after) for before, after in pairs])
    rows = [list(row) for row in zip(*columns)]
    if not rule.by_build:
        return rows
    units = _sharing([{samples.objects[side][at] for side in ("base", arm)} - {""} for at in range(len(rows))])
    return [
        [math.fsum(rows[at][column] for at in unit) / len(unit) for column in range(len(columns))] for unit in units
    ]


def _sharing(binaries: list[set[str]]) -> list[list[int]]:
    """Places of the rounds, those together in which either arm ran a binary of each other's: they are one sample."""
    units: list[tuple[set[str], list[int]]] = []
    for place, own in enumerate(binaries):
        shared, places = own, [place]
        for unit in [unit for unit in units if unit[0] & shared]:
            units.remove(unit)
            shared, places = shared | unit[0], unit[1] + places
        units.append((shared, places))
    return [places for _, places in units]


def bounded(rows: Rows) -> Rows:
    """*rows* with no cell more than `MOST_MEDIANS` times the median size of its column."""
    most = [MOST_MEDIANS * median([abs(cell) for cell in column]) for column in zip(*rows)]
    return [[min(max(cell, -limit), limit) for cell, limit in zip(row, most)] for row in rows]


def median(values: list[float]) -> float:
    """The middle one of *values*, or the mean of both."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def sign_flip_p(differences: list[float]) -> float:
    """One-sided p-value of the mean of *differences*, if each had either sign by chance; exact."""
    sizes = [abs(difference) for difference in differences]
    observed = math.fsum(differences) - TIE * sum(sizes)
    half = (len(sizes) + 1) // 2
    first, second = _signed_sums(sizes[:half]), sorted(_signed_sums(sizes[half:]))
    reaching = sum(len(second) - bisect.bisect_left(second, observed - one) for one in first)
    return float(reaching / 2.0 ** len(sizes))


def _signed_sums(sizes: list[float]) -> list[float]:
    sums = [0.0]
    for size in sizes:
        sums = [total + sign * size for sign in (1, -1) for total in sums]
    return sums


def _quantile(ordered: list[float], share: float) -> float:
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)
