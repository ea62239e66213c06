from __future__ import annotations

from datetime import timedelta

from formulacode_dagster.models.month import Month
from formulacode_dagster.sources.intake.pull_requests.windows import window_item
from tests.support.github import repository

MONTH = Month.parse("2026-02")
LATER = timedelta(days=200)


def test_an_unsettled_month_is_asked_again_and_a_settled_one_is_not():
    def inputs(after_the_end: timedelta) -> str:
        return window_item(repository(), MONTH, MONTH.end + after_the_end).inputs

    open_still, just_closed, settled = -timedelta(days=3), timedelta(minutes=5), timedelta(hours=1)
    assert inputs(open_still) != inputs(open_still + timedelta(seconds=1))
    assert inputs(just_closed) != inputs(settled)
    assert inputs(settled) == inputs(LATER)


def test_a_renamed_repository_has_the_same_window():
    now = MONTH.end + LATER
    renamed = repository(full_name="demo/renamed", aliases=("demo/project",))
    assert window_item(repository(), MONTH, now).inputs == window_item(renamed, MONTH, now).inputs
    assert window_item(repository(id=2), MONTH, now).inputs != window_item(repository(), MONTH, now).inputs
