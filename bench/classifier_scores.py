"""Scores of verdicts on labelled commits: recall and false positives by stratum, calibration, agreement. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from formulacode_dagster.measuring.measurement.statistics.chance import clopper_pearson

from .classifier_modes import Injection
from .labelled import Entry, Label

PREVALENCE = 0.067
"""Share of optimisations among candidates that the predecessor saw: precision refers to it, not to the list."""
BINS = 5


@dataclass(frozen=True)
class Verdict:
    """A model's verdict on one labelled commit; without a yes or no, it failed."""

    entry: Entry
    is_performance: bool | None
    confidence: float = 0.0
    injection: Injection | None = None

    @property
    def probability(self) -> float:
        """The model's probability of performance."""
        return self.confidence if self.is_performance else 1 - self.confidence


@dataclass(frozen=True)
class Share:
    """Number called performance out of a total, with the exact interval of 95 %."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """0 if there was none."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """From 0 to 1 if there was none."""
        return clopper_pearson(self.hits, self.of) if self.of else (0.0, 1.0)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.hits:4} of {self.of:4} {self.value:7.1%} ({low:6.1%} to {high:6.1%})"

    def figures(self) -> dict[str, float]:
        """Form for the last line."""
        low, high = self.interval
        return {"hits": self.hits, "of": self.of, "low": round(low, 4), "high": round(high, 4)}


def called_performance(verdicts: Iterable[Verdict], wanted: Callable[[Entry], bool]) -> Share:
    """Recall if *wanted* selects optimisations, false positives if it selects others; failures count as no."""
    said = [verdict.is_performance for verdict in verdicts if wanted(verdict.entry)]
    return Share(said.count(True), len(said))


def recall(verdicts: Iterable[Verdict]) -> Share:
    """Optimisations called so."""
    return called_performance(verdicts, lambda entry: entry.label is Label.PERFORMANCE)


def false_positives(verdicts: Iterable[Verdict]) -> Share:
    """Others called optimisations."""
    return called_performance(verdicts, lambda entry: entry.label is Label.OTHER)


def by_stratum(verdicts: Sequence[Verdict]) -> dict[tuple[Label, str], Share]:
    """Numbers called performance for each label, by stratum."""
    kinds = sorted({(verdict.entry.label, verdict.entry.stratum.value) for verdict in verdicts}, reverse=True)

    def share(kind: tuple[Label, str]) -> Share:
        return called_performance(verdicts, lambda entry: (entry.label, entry.stratum.value) == kind)

    return {kind: share(kind) for kind in kinds}


def precision_at(recall: float, false_positives: float, prevalence: float = PREVALENCE) -> float:
    """The share of optimisations among those called one, at a *prevalence* among the candidates."""
    true, false = recall * prevalence, false_positives * (1 - prevalence)
    return true / (true + false) if true + false else 0.0


@dataclass(frozen=True)
class Bin:
    """Verdicts of similar probability: their number, the mean prediction, and the observed rate."""

    count: int
    said: float
    true: float


def reliability(verdicts: Iterable[Verdict], bins: int = BINS) -> list[Bin]:
    """The reliability curve, over equal ranges of the probability; empty ranges are left out."""
    ranges: list[list[Verdict]] = [[] for _ in range(bins)]
    for verdict in verdicts:
        if verdict.is_performance is not None:
            ranges[min(int(verdict.probability * bins), bins - 1)].append(verdict)
    return [
        Bin(
            len(own),
            sum(verdict.probability for verdict in own) / len(own),
            sum(verdict.entry.label is Label.PERFORMANCE for verdict in own) / len(own),
        )
        for own in ranges
        if own
    ]


def expected_calibration_error(curve: Sequence[Bin]) -> float:
    """Mean distance of the curve from the diagonal, weighted by count (Naeini et al. 2015)."""
    total = sum(each.count for each in curve)
    return sum(each.count * abs(each.said - each.true) for each in curve) / total if total else 0.0


def brier_score(verdicts: Iterable[Verdict]) -> float:
    """Mean squared distance of the probability from the truth (Brier 1950); 0 is best, a coin has 0.25."""
    errors = [
        (verdict.probability - (verdict.entry.label is Label.PERFORMANCE)) ** 2
        for verdict in verdicts
        if verdict.is_performance is not None
    ]
    return sum(errors) / len(errors) if errors else 0.0


@dataclass(frozen=True)
class Agreement:
    """Two judges on the same commits, and both together, where any yes is accepted."""

    alike: Share
    kappa: float
    recall: Share
    false_positives: Share


def agreement(first: Sequence[Verdict], second: Sequence[Verdict]) -> Agreement:
    """Agreement of two judges on their common answers; kappa is Cohen's (1960), 1 if neither leaves room for chance."""
    answered = {verdict.entry.sha: verdict for verdict in second if verdict.is_performance is not None}
    pairs = [
        (verdict, answered[verdict.entry.sha])
        for verdict in first
        if verdict.is_performance is not None and verdict.entry.sha in answered
    ]
    alike = Share(sum(mine.is_performance == theirs.is_performance for mine, theirs in pairs), len(pairs))
    yes = [sum(bool(pair[side].is_performance) for pair in pairs) / max(1, len(pairs)) for side in (0, 1)]
    chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    kappa = (alike.value - chance) / (1 - chance) if chance < 1 else 1.0
    either = [Verdict(mine.entry, bool(mine.is_performance or theirs.is_performance)) for mine, theirs in pairs]
    return Agreement(alike, kappa, recall(either), false_positives(either))


def misled(plain: Sequence[Verdict], injected: Sequence[Verdict]) -> dict[Injection, Share]:
    """Verdicts that were right without an instruction, and were reversed or failed with it, by its place."""
    right = {
        verdict.entry.sha
        for verdict in plain
        if verdict.is_performance is not None and verdict.is_performance is (verdict.entry.label is Label.PERFORMANCE)
    }
    shares: dict[Injection, Share] = {}
    for kind in Injection:
        own = [verdict for verdict in injected if verdict.injection is kind and verdict.entry.sha in right]
        wrong = sum(verdict.is_performance is not (verdict.entry.label is Label.PERFORMANCE) for verdict in own)
        shares[kind] = Share(wrong, len(own))
    return shares
