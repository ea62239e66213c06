"""Replication of breakpoints: does one machine find what another one finds?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .choices import WITHIN
from .persistence import Breakpoints

NORMAL_95 = 1.959964
PAIRS = pl.Schema(
    {
        "benchmark": pl.String(),
        "parameters": pl.List(pl.String()),
        "reference_hash": pl.String(),
        "other_hash": pl.String(),
        "reference_ratio": pl.Float64(),
        "other_ratio": pl.Float64(),
    }
)
"""One row a step that both sets have; hashes are of the first commit after it."""


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95 % interval; None if the data are insufficient."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class BreakpointSet:
    """One of two sets: its name, its breakpoints, and the commits that it measured (`hash`, `date`)."""

    name: str
    breakpoints: Breakpoints
    revisions: pl.DataFrame


@dataclass(frozen=True)
class Replication:
    """Comparison of two sets, over the commits between the first and the last that both measured."""

    reference: str
    other: str
    first_commit: str
    last_commit: str
    commits: int
    only_reference: int
    only_other: int
    pairs: pl.DataFrame
    pearson: Estimate
    spearman: Estimate
    same_sign: Estimate
    bias: Estimate
    """Bland–Altman: mean of other / reference, and its limits of agreement, by logarithm."""

    def row(self, method: str) -> dict[str, object]:
        """Return it as a row of its table, both sets found by *method*."""
        names = ("reference", "other", "first_commit", "last_commit", "commits", "only_reference", "only_other")
        row: dict[str, object] = {name: getattr(self, name) for name in names}
        for name in ("pearson", "spearman", "same_sign"):
            interval: Estimate = getattr(self, name)
            row |= {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
        limits = {"bias": self.bias.estimate, "agreement_low": self.bias.low, "agreement_high": self.bias.high}
        return {**row, **limits, "pairs": self.pairs.height, "method": method}


def replicate(reference: BreakpointSet, other: BreakpointSet, within: int = WITHIN) -> Replication:
    """Compare two sets over the commits that both measured; breakpoints up to *within* commits apart are the same.

    Commits are ordered by their dates, since two sets number them differently.
    """
    order = _order(reference.revisions, other.revisions)
    both = sorted(set(reference.revisions["hash"]) & set(other.revisions["hash"]), key=order.__getitem__)
    first, last = (both[0], both[-1]) if both else ("", "")
    bounds = (order.get(first, 0), order.get(last, -1))
    mine, theirs = (_ranges(of.breakpoints.commits, order, bounds) for of in (reference, other))
    common = len(_matched(mine, theirs, within))
    pairs = _pairs(reference, other, order, bounds, within)
    logs = np.log(pairs.select("reference_ratio", "other_ratio").to_numpy())
    x, y = logs[:, 0], logs[:, 1]
    return Replication(
        reference=reference.name,
        other=other.name,
        first_commit=first,
        last_commit=last,
        commits=common,
        only_reference=len(mine) - common,
        only_other=len(theirs) - common,
        pairs=pairs,
        pearson=correlation(x, y),
        spearman=correlation(_ranks(x), _ranks(y), of_ranks=True),
        same_sign=share(int((np.sign(x) == np.sign(y)).sum()), len(x)),
        bias=_limits_of_agreement(y - x),
    )


def correlation(x: NDArray[np.float64], y: NDArray[np.float64], *, of_ranks: bool = False) -> Estimate:
    """Pearson's correlation with Fisher's interval; of ranks Spearman's, with the error of Fieller et al. (1957)."""
    if len(x) < 3 or x.std() == 0 or y.std() == 0:
        return Estimate()
    estimate = float(np.clip(np.corrcoef(x, y)[0, 1], -1.0, 1.0))
    if len(x) == 3 or abs(estimate) == 1.0:
        return Estimate(estimate)
    error = NORMAL_95 * math.sqrt((1.06 if of_ranks else 1.0) / (len(x) - 3))
    centre = math.atanh(estimate)
    return Estimate(estimate, math.tanh(centre - error), math.tanh(centre + error))


def share(hits: int, of: int) -> Estimate:
    """A share with Wilson's interval."""
    if not of:
        return Estimate()
    square = NORMAL_95**2
    estimate = hits / of
    centre = (estimate + square / (2 * of)) / (1 + square / of)
    half = NORMAL_95 / (1 + square / of) * math.sqrt(estimate * (1 - estimate) / of + square / (4 * of**2))
    return Estimate(estimate, max(0.0, centre - half), min(1.0, centre + half))


def _limits_of_agreement(differences: NDArray[np.float64]) -> Estimate:
    """Bland and Altman, Lancet 1986: mean difference, and mean ± 1.96 deviations; as ratios."""
    if len(differences) < 2:
        return Estimate(*map(math.exp, differences))
    mean, half = float(differences.mean()), NORMAL_95 * float(differences.std(ddof=1))
    return Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return pl.Series(values).rank("average").to_numpy()


def _order(*revisions: pl.DataFrame) -> dict[str, int]:
    told = pl.concat([each.select("hash", "date") for each in revisions]).unique("hash", keep="first")
    return {commit: place for place, commit in enumerate(told.sort("date", "hash", nulls_last=False)["hash"])}


Range = tuple[int, int, int]
"""Places of the commits before and after, and the row."""


def _ranges(table: pl.DataFrame, order: dict[str, int], bounds: tuple[int, int]) -> list[Range]:
    """The ranges of *table* whose commits are known and lie within *bounds*."""
    hashes = table.select("before_hash", "after_hash").rows()
    ranges = ((order.get(before), order.get(after), row) for row, (before, after) in enumerate(hashes))
    return [
        (before, after, row)
        for before, after, row in ranges
        if before is not None and after is not None and bounds[0] <= before and after <= bounds[1]
    ]


def _matched(mine: Iterable[Range], theirs: Iterable[Range], within: int) -> list[tuple[int, int]]:
    """Rows of *mine* and *theirs* that are the same, each at most once, the nearest first."""
    pairs = sorted(
        (max(0, max(a[0], b[0]) - min(a[1], b[1])), abs(a[1] - b[1]), a[2], b[2]) for a, b in product(mine, theirs)
    )
    used: tuple[set[int], set[int]] = (set(), set())
    matched = []
    for gap, _, a, b in pairs:
        if gap <= within and a not in used[0] and b not in used[1]:
            used[0].add(a)
            used[1].add(b)
            matched.append((a, b))
    return matched


def _pairs(
    reference: BreakpointSet, other: BreakpointSet, order: dict[str, int], bounds: tuple[int, int], within: int
) -> pl.DataFrame:
    mine, theirs = (of.breakpoints.steps.drop_nulls("ratio") for of in (reference, other))
    by = ["benchmark", "parameters"]
    others = {tuple(map(str, key)): part for key, part in theirs.group_by(by, maintain_order=True)}
    rows = []
    for key, part in mine.group_by(by, maintain_order=True):
        opposite = others.get(tuple(map(str, key)))
        if opposite is None:
            continue
        matched = _matched(_ranges(part, order, bounds), _ranges(opposite, order, bounds), within)
        for a, b in matched:
            left, right = part.row(a, named=True), opposite.row(b, named=True)
            hashes = (left["after_hash"], right["after_hash"])
            rows.append((left["benchmark"], left["parameters"], *hashes, left["ratio"], right["ratio"]))
    return pl.DataFrame(rows, schema=PAIRS, orient="row")
