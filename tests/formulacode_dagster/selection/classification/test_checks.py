import pytest

from formulacode_dagster.selection.classification.checks import every_candidate_has_verdict, share_of_positives


def test_a_candidate_that_vanished_shuts_the_gate() -> None:
    verdict = every_candidate_has_verdict(["a/b#1", "a/b#2", "a/b#3"], ["a/b#1"], ["a/b#2"], [])
    assert not verdict.passed
    assert verdict.offenders == ("a/b#3",)


def test_a_recorded_failure_and_a_rejection_count_as_accounted_for() -> None:
    verdict = every_candidate_has_verdict(["a/b#1", "a/b#2", "a/b#3"], ["a/b#1"], ["a/b#2"], ["a/b#3"])
    assert verdict.passed


def test_offenders_are_bounded() -> None:
    verdict = every_candidate_has_verdict([f"a/b#{n}" for n in range(1, 200)], [], [], [])
    assert len(verdict.offenders) == 50
    assert verdict.figures["lost"] == 199


def test_a_share_far_off_the_history_fires() -> None:
    verdict = share_of_positives(150, 300, [(20, 300), (24, 310), (18, 290)])
    assert not verdict.passed
    assert verdict.figures["upper"] < 0.5


def test_a_classifier_that_says_no_to_everything_fires() -> None:
    assert not share_of_positives(0, 400, [(20, 300), (24, 310)]).passed


@pytest.mark.parametrize(("positives", "candidates"), [(21, 300), (0, 5), (2, 8)])
def test_what_chance_explains_passes(positives: int, candidates: int) -> None:
    assert share_of_positives(positives, candidates, [(20, 300), (24, 310), (18, 290)]).passed


def test_few_data_give_wide_limits() -> None:
    assert share_of_positives(6, 8, [(1, 6)]).passed


@pytest.mark.parametrize(("candidates", "history"), [(10, []), (0, [(1, 10)]), (10, [(0, 0)])])
def test_without_data_nothing_is_out_of_limits(candidates: int, history: list[tuple[int, int]]) -> None:
    assert share_of_positives(candidates // 2, candidates, history).passed
