"""The gates hold against texts made to get through them; `make bench-leaks` prints the same figures by kind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from formulacode_dagster.selection.statements.gates import Gates

from .cases import CLEAN, EACH, NEEDS_A_JUDGE, Case, Kind, all_cases
from .judging import gates_see, second_look_sees
from .tried import EARLIER, SECRETS, TRIED, Attempt

ROOT = Path(__file__).parents[5]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """All of them."""
    return list(all_cases())


def test_each_kind_has_enough_reproducible_cases_for_an_interval(cases: list[Case]) -> None:
    assert Counter(case.kind for case in cases) == {**dict.fromkeys(Kind, EACH), None: CLEAN}
    assert len({case.text for case in cases}) > 0.9 * len(cases)
    assert [case.text for case in all_cases()] == [case.text for case in cases]


@pytest.mark.parametrize("kind", sorted(set(Kind) - NEEDS_A_JUDGE))
def test_no_leak_that_rules_can_see_is_missed(cases: list[Case], kind: Kind) -> None:
    assert [case.text for case in cases if case.kind is kind and not gates_see(case)] == []


def test_few_clean_texts_are_stopped(cases: list[Case]) -> None:
    assert sum(gates_see(case) for case in cases if case.kind is None) <= 0.1 * CLEAN


def test_the_second_look_which_shuts_a_month_stops_no_clean_text(cases: list[Case]) -> None:
    assert [case.text for case in cases if case.kind is None and second_look_sees(case)] == []


@pytest.mark.parametrize("attempt", TRIED, ids=lambda attempt: attempt.way)
def test_a_leak_tried_by_hand_is_seen_unless_no_rule_can(attempt: Attempt) -> None:
    assert bool(Gates(SECRETS, earlier=[EARLIER]).judge(attempt.text, "final_md")) is not bool(attempt.unseen)


def test_the_docs_say_what_rules_do_not_see() -> None:
    told = " ".join((ROOT / "docs/statements.md").read_text(encoding="utf-8").split())
    assert len(TRIED) == 42
    for reason in {attempt.unseen for attempt in TRIED} - {""}:
        assert reason.removeprefix("a ") in told
