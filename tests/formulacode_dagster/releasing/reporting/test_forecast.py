"""What a month will come to, by the months before it."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Cost, LedgerEntry, Stage
from formulacode_dagster.releasing.reporting.forecast import ExpectedRange, Forecast, forecast
from formulacode_dagster.releasing.reporting.funnel import Funnel, count_funnel
from tests.support.entries import enter


def month_of(key: str, merged: int, judged: int, performance: int, seconds: float = 2.0) -> Funnel:
    """A month in which so many pull requests were merged, and judged by a model, at so many seconds each."""
    entries: list[LedgerEntry] = []
    for number in range(merged):
        item = f"a/b#{number}"
        entries.append(enter(Stage.PULL_REQUESTS, item, "done"))
        if number >= judged:
            entries.append(enter(Stage.CLASSIFICATIONS, item, "rejected title"))
        elif number < performance:
            entries.append(enter(Stage.CLASSIFICATIONS, item, "done"))
        else:
            entries.append(enter(Stage.CLASSIFICATIONS, item, "rejected not_performance"))
    spending = {Stage.CLASSIFICATIONS: Cost(tokens_in=1000 * judged, seconds=seconds * judged)}
    return count_funnel(key, entries, (), spending)


def counts(expected: Forecast) -> dict[str, ExpectedRange]:
    return {step.name: step.count for step in expected.steps}


EMPTY = count_funnel("2026-04", [])
HISTORY = [month_of("2026-01", 100, 20, 10), month_of("2026-02", 200, 40, 10, seconds=3.0)]


def test_shares_and_costs_of_earlier_months_are_expected_again() -> None:
    expected = forecast(EMPTY, HISTORY)
    assert expected.months == ("2026-01", "2026-02")
    merged = counts(expected)["pull_requests"]
    assert (merged.low, merged.expected) == (80, 150)
    assert merged.high == pytest.approx(228.3, abs=0.1)
    candidates = counts(expected)["candidates"]
    assert candidates.expected == pytest.approx(30)
    assert 10 < candidates.low < 30 < candidates.high < 65
    assert counts(expected)["performance"].expected == pytest.approx(10)
    (cost,) = expected.costs
    assert cost.stage is Stage.CLASSIFICATIONS
    assert cost.amounts["tokens_in"].expected == pytest.approx(30_000)
    assert cost.amounts["seconds"].expected == pytest.approx(30 * 160 / 60)
    assert cost.amounts["seconds"].high == pytest.approx(candidates.high * 3)
    assert expected.total("tokens_in") == cost.amounts["tokens_in"]
    assert expected.total("dollars") == ExpectedRange.exactly(0)


def test_steps_after_those_that_no_month_has_finished_are_left_out() -> None:
    assert [step.name for step in forecast(EMPTY, HISTORY).steps] == ["pull_requests", "candidates", "performance"]


def test_what_the_month_has_done_is_counted() -> None:
    expected = forecast(month_of("2026-04", 50, 12, 3), HISTORY)
    assert [step.count for step in expected.steps] == [ExpectedRange.exactly(count) for count in (50, 12, 3)]
    assert all(step.count.is_known for step in expected.steps)


def test_a_step_in_the_middle_of_its_work_is_expected() -> None:
    taken_in = count_funnel("2026-04", [enter(Stage.PULL_REQUESTS, f"a/b#{number}", "done") for number in range(60)])
    expected = forecast(taken_in, HISTORY)
    assert counts(expected)["pull_requests"] == ExpectedRange.exactly(60)
    assert counts(expected)["candidates"].expected == pytest.approx(12)


def test_one_earlier_month_counts_nothing_of_a_later_one() -> None:
    assert not any(step.count.is_known for step in forecast(EMPTY, HISTORY[:1]).steps)


def test_a_number_of_pull_requests_may_be_given() -> None:
    assert counts(forecast(EMPTY, HISTORY, 1000))["candidates"].expected == pytest.approx(200)


def test_the_latest_months_count() -> None:
    old = [month_of(f"2025-{number:02}", 1000, 1000, 0) for number in range(1, 7)]
    expected = forecast(EMPTY, [*old, *[month_of(f"2025-{number:02}", 100, 20, 10) for number in range(7, 13)]])
    assert expected.months[0] == "2025-07"
    assert counts(expected)["candidates"].expected == pytest.approx(20)


def test_without_an_earlier_month_there_is_nothing_to_expect_from() -> None:
    with pytest.raises(ConfigurationError, match="no month before 2026-04"):
        forecast(EMPTY, [EMPTY])


def test_budgets_that_will_not_suffice_are_found() -> None:
    expected = forecast(EMPTY, HISTORY)
    (over,) = expected.overruns(tokens=29_999, dollars=None)
    assert (over.setting, over.expected, over.limit) == ("LLM_TOKENS_PER_MONTH", expected.total("tokens_in"), 29_999)
    assert not expected.overruns(tokens=30_000, dollars=0)
