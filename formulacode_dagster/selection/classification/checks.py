"""Verdicts on a month of `classifications`. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.classification import ClassifierEvaluation

SIGMAS = 3.0


def every_candidate_has_verdict(
    candidates: Sequence[str], classified: Sequence[str], failed: Sequence[str], rejected: Sequence[str]
) -> CheckFinding:
    """Each of *candidates* (item names) was judged, failed on record, or was rejected. None just vanished."""
    accounted = {*classified, *failed, *rejected}
    lost = sorted(set(candidates) - accounted)
    summary = f"{len(set(candidates))} candidates: {len(set(classified))} judged, {len(set(failed))} failed on record"
    if lost:
        summary = f"{len(lost)} of {len(set(candidates))} candidates have neither a verdict nor a recorded failure"
    figures = {"candidates": len(set(candidates)), "lost": len(lost), "failed": len(set(failed))}
    return CheckFinding.by_offenders(summary, lost, figures)


def share_of_positives(positives: int, candidates: int, history: Sequence[tuple[int, int]]) -> CheckFinding:
    """Pass if the share of performance changes is within three-sigma limits of earlier months.

    *history* has (positives, candidates) of other months. The limits of this p-chart allow for the few data of this
    month and of the history, so they are wide at first; without history, nothing is out of limits.
    """
    seen_positives, seen = (sum(column) for column in zip(*history, strict=True)) if history else (0, 0)
    share = positives / candidates if candidates else 0.0
    figures = {"share": share, "positives": float(positives), "candidates": float(candidates)}
    if not candidates or not seen:
        summary = (
            "no candidates" if not candidates else f"{share:.1%} are performance; no earlier month to compare with"
        )
        return CheckFinding(passed=True, summary=summary, figures=figures)
    # one more of each kind: a history of only one kind must not give limits of zero width
    expected = (seen_positives + 1) / (seen + 2)
    spread = SIGMAS * math.sqrt(expected * (1 - expected) * (1 / candidates + 1 / (seen + 2)))
    lower, upper = max(0.0, expected - spread), min(1.0, expected + spread)
    passed = lower <= share <= upper
    return CheckFinding(
        passed=passed,
        summary=(
            f"{share:.1%} of {candidates} candidates are performance, {'within' if passed else 'outside'} the limits "
            f"{lower:.1%} to {upper:.1%} of {len(history)} earlier months"
        ),
        figures={**figures, "expected": expected, "lower": lower, "upper": upper},
    )


def accuracy_on_labelled_set(evaluations: Mapping[tuple[str, str], ClassifierEvaluation | None]) -> CheckFinding:
    """Each model and version of the prompt that judged has been measured on the labelled commits.

    *evaluations* has the newest of each (model, prompt version), None if there is none. Figures are of the last.
    """
    unmeasured = [f"{model}, prompt {version}" for (model, version), kept in evaluations.items() if kept is None]
    measured = [kept for kept in evaluations.values() if kept is not None]
    told = [
        f"{kept.model}, prompt {kept.prompt_version}: recall {kept.recall:.1%} of {kept.positives}, false positives "
        f"{kept.false_positive_rate:.1%} of {kept.others}, {kept.misled} of {kept.injected} misled by instructions, "
        f"on {kept.evaluated_at:%Y-%m-%d}"
        for kept in measured
    ]
    if unmeasured:
        told.append(f"never measured: {'; '.join(unmeasured)} (`make eval-classifier`)")
    figures: dict[str, float] = {}
    if measured:
        last = measured[-1]
        figures = {
            "recall": last.recall,
            "false_positive_rate": last.false_positive_rate,
            "calibration_error": last.calibration_error,
            "dollars_per_thousand": last.dollars_per_thousand,
        }
    return CheckFinding.by_offenders("; ".join(told) or "no verdict of a model", unmeasured, figures)
