"""The tables of an evaluation, and the row that is kept of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from formulacode_dagster.models.classification import ClassifierEvaluation
from formulacode_dagster.selection.classification.prompts import PROMPT_VERSION

from .classifier_asking import Answers
from .classifier_modes import Mode
from .classifier_scores import (
    Agreement,
    brier_score,
    by_stratum,
    expected_calibration_error,
    false_positives,
    misled,
    precision_at,
    recall,
    reliability,
)
from .labelled import LIST


def report(model: str, answers: Mapping[Mode, Answers], second: str, together: Agreement) -> dict[str, object]:
    """Print all that was measured of *model*, and give its figures; *together* is how it agrees with *second*."""
    print(f"\nclassifier: {model}, prompt {PROMPT_VERSION}: called performance, 95 % Clopper-Pearson")
    modes = {mode.value: _mode(mode, answers[mode]) for mode in answers}
    full = answers[Mode.FULL].verdicts
    strata = by_stratum(full)
    print("by stratum, shown in full")
    for (label, stratum), share in strata.items():
        print(f"  {label:12} {stratum:16} {share}")
    parts = {"held_out": True, "tuned_on": False}
    for name, held_out in parts.items():
        own = [verdict for verdict in full if verdict.entry.held_out is held_out]
        print(f"  {name:12} recall           {recall(own)}\n  {'':12} false positives  {false_positives(own)}")
    curve = reliability(full)
    error = expected_calibration_error(curve)
    print(f"calibration: expected error {error:.3f}, Brier {brier_score(full):.3f}")
    for point in curve:
        print(f"  said {point.said:6.1%}, true {point.true:6.1%}, {point.count} commits")
    judges = f"{model} and {second}, asked the diff first"
    print(f"two judges, {judges}: alike {together.alike}, kappa {together.kappa:.2f}")
    print(f"  any yes: recall    {together.recall}\n  any yes: false pos. {together.false_positives}")
    turned = misled(full, answers[Mode.INJECTED].verdicts) if Mode.INJECTED in answers else {}
    for kind, share in turned.items():
        print(f"  misled by {kind:14} {share}")
    per_thousand = answers[Mode.FULL].cost_per_thousand()
    print(
        f"a thousand verdicts: {per_thousand.model_calls} calls, {per_thousand.tokens_in:,} tokens in, "
        f"{per_thousand.tokens_out:,} out, ${per_thousand.dollars:.2f}"
    )
    return {
        "model": model,
        "prompt_version": PROMPT_VERSION,
        "modes": modes,
        "strata": {f"{label}/{stratum}": share.figures() for (label, stratum), share in strata.items()},
        "calibration": {
            "expected_error": round(error, 4),
            "brier": round(brier_score(full), 4),
            "curve": [asdict(point) for point in curve],
        },
        "agreement": {
            "judges": judges,
            "alike": together.alike.figures(),
            "kappa": round(together.kappa, 4),
            "any_yes_recall": together.recall.figures(),
            "any_yes_false_positives": together.false_positives.figures(),
        },
        "misled": {kind.value: share.figures() for kind, share in turned.items()},
        "per_thousand": per_thousand.model_dump(exclude_defaults=True),
    }


def evaluation(model: str, answers: Mapping[Mode, Answers], together: Agreement) -> ClassifierEvaluation:
    """Stored result for the check of `classifications`."""
    full = answers[Mode.FULL]
    found, wrong = recall(full.verdicts), false_positives(full.verdicts)
    turned = misled(full.verdicts, answers[Mode.INJECTED].verdicts) if Mode.INJECTED in answers else {}
    return ClassifierEvaluation(
        model=model,
        prompt_version=PROMPT_VERSION,
        evaluated_at=datetime.now(tz=UTC),
        commits_sha256=hashlib.sha256(LIST.read_bytes()).hexdigest(),
        positives=found.of,
        recalled=found.hits,
        others=wrong.of,
        false_positives=wrong.hits,
        unanswered=full.unanswered,
        calibration_error=expected_calibration_error(reliability(full.verdicts)),
        agreement=together.alike.value,
        injected=sum(share.of for share in turned.values()),
        misled=sum(share.hits for share in turned.values()),
        dollars_per_thousand=full.cost_per_thousand().dollars,
    )


def _mode(mode: Mode, answers: Answers) -> dict[str, object]:
    found, wrong = recall(answers.verdicts), false_positives(answers.verdicts)
    precision = precision_at(found.value, wrong.value)
    print(f"  {mode:16} recall          {found}   without an answer: {answers.unanswered}")
    print(f"  {'':16} false positives {wrong}   precision among candidates: {precision:.0%}")
    return {
        "recall": found.figures(),
        "false_positives": wrong.figures(),
        "unanswered": answers.unanswered,
        "precision_at_prevalence": round(precision, 4),
    }
