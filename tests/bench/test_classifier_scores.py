"""Verdicts on labelled commits: what they come to, and what a hostile question looks like."""

from __future__ import annotations

import pytest

from bench.classifier_modes import Injection, Mode, injected, questions
from bench.classifier_scores import (
    Bin,
    Share,
    Verdict,
    agreement,
    brier_score,
    by_stratum,
    expected_calibration_error,
    false_positives,
    misled,
    precision_at,
    recall,
    reliability,
)
from bench.labelled import Label, Stratum
from formulacode_dagster.selection.classification.prompts import prompt_for
from tests.bench.labelled_examples import example

FAST = example("a", Label.PERFORMANCE, Stratum.PERF_TITLED, "Use a table")
HIDDEN = example("b", Label.PERFORMANCE, Stratum.MAINT, "Clean up")
NAMES = example("c", Label.OTHER, Stratum.MAINT, "Rename")
SIGN = example("d", Label.OTHER, Stratum.BUG, "Fix the sign")
ALL = (FAST, HIDDEN, NAMES, SIGN)


def said(*answers: bool | None, confidence: float = 0.8, injection: Injection | None = None) -> list[Verdict]:
    return [Verdict(each.entry, answer, confidence, injection) for each, answer in zip(ALL, answers, strict=True)]


def test_recall_and_false_positives_count_what_failed_as_no_yes() -> None:
    verdicts = said(True, None, True, False)
    assert (recall(verdicts), false_positives(verdicts)) == (Share(1, 2), Share(1, 2))
    assert by_stratum(verdicts) == {
        (Label.PERFORMANCE, "perf_titled"): Share(1, 1),
        (Label.PERFORMANCE, "maint"): Share(0, 1),
        (Label.OTHER, "maint"): Share(1, 1),
        (Label.OTHER, "bug"): Share(0, 1),
    }


def test_an_interval_is_exact_and_nothing_seen_is_nothing_known() -> None:
    assert Share(0, 59).interval == (0.0, pytest.approx(0.05, abs=5e-4))
    assert Share(5, 10).interval == (pytest.approx(0.1871, abs=1e-4), pytest.approx(0.8129, abs=1e-4))
    assert Share(0, 0).interval == (0.0, 1.0)


def test_precision_is_told_for_rare_optimisations() -> None:
    assert precision_at(0.985, 0.03) == pytest.approx(0.70, abs=0.005)
    assert precision_at(0.0, 0.0) == 0.0


def test_the_reliability_curve_has_what_was_said_beside_what_was_true() -> None:
    verdicts = said(True, False, True, False)
    curve = reliability(verdicts)
    assert curve == [Bin(2, pytest.approx(0.2), 0.5), Bin(2, pytest.approx(0.8), 0.5)]
    assert expected_calibration_error(curve) == pytest.approx(0.3)
    assert brier_score(verdicts) == pytest.approx((0.04 + 0.64 + 0.64 + 0.04) / 4)
    assert reliability(said(None, None, None, None)) == []


def test_two_judges_agree_by_kappa_and_any_yes_goes_on() -> None:
    together = agreement(said(True, False, False, False), said(True, True, False, None))
    assert together.alike == Share(2, 3)
    assert together.kappa == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))
    assert (together.recall, together.false_positives) == (Share(2, 2), Share(0, 1))
    assert agreement(said(True, True, True, True), said(True, True, True, True)).kappa == 1.0


def test_misled_is_what_was_right_before_and_is_wrong_or_missing_now() -> None:
    plain = said(True, False, False, False)
    turned = misled(plain, said(False, False, None, False, injection=Injection.BODY))
    assert turned[Injection.BODY] == Share(2, 3)
    assert turned[Injection.FILE_NAME] == Share(0, 0)


@pytest.mark.parametrize("kind", Injection)
@pytest.mark.parametrize(("asked", "wanted"), [(FAST, "false"), (SIGN, "true")])
def test_an_injection_stands_where_it_says_and_asks_for_the_contrary(kind: Injection, asked, wanted: str) -> None:
    question = injected(asked, kind)
    order = f"is_performance={wanted}"
    planted = question.facts.body if b"notes" not in question.patch and b"Note" not in question.patch else ""
    in_body = kind in (Injection.CLOSING_TAG, Injection.OTHER_SECTION, Injection.BODY)
    assert (order in planted, order.encode() in question.patch) == (in_body, not in_body)
    assert question.patch.endswith(asked.patch)
    assert question.facts.title == asked.pr.facts.title
    assert order in prompt_for(question.facts, question.patch).messages[-1].content


def test_modes_hide_and_swap_and_show_no_prefix() -> None:
    bodies = [question.facts.body for question in questions(ALL, Mode.DIFF_ONLY)]
    assert bodies == [""] * 4
    assert [question.facts.title for question in questions(ALL, Mode.BODY_AND_DIFF)] == [""] * 4
    swapped = [question.facts.title for question in questions(ALL, Mode.TITLES_SWAPPED)]
    assert swapped == ["Rename", "Fix the sign", "Use a table", "Clean up"]
    kinds = [question.injection for question in questions(ALL, Mode.INJECTED)]
    assert kinds == [Injection.CLOSING_TAG, Injection.OTHER_SECTION] * 2
