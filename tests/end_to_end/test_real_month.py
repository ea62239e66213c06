"""What `make real-month` does and says, on the months of the demo."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.real_month import LISTED, commands, figures, listed
from formulacode_dagster.operating.store.database import Database


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_figures_of_a_month_say_what_became_of_it(demo_database: Database) -> None:
    report = figures(demo_database, "2026-02")
    funnel = report["funnel"]
    assert funnel["pull_requests"] > funnel["candidates"] > funnel["performance"] >= len(report["measured"]) > 0
    assert all(loss["count"] > 0 and loss["stage"] for loss in report["losses"])
    measured = {row["item"]: row for row in report["measured"]}["sample-org/gridpath#12"]
    low, high = measured["interval"]
    assert measured["verdict"] == "faster"
    assert low <= measured["speedup"] <= high
    assert report["planned"]["candidates"]
    assert report["cost"]["images"]["seconds"] > 0


def test_the_month_before_is_taken_in_first_so_that_this_one_can_be_planned() -> None:
    asked = list(commands("2026-01", Path("home")))
    assert asked[1] == ("run", "--month", "2025-12", "--stage", "repositories", "--yes")
    assert [command[0] for command in asked[4:]] == ["plan", "run", "funnel", "export", "site"]


def test_the_list_has_at_least_forty_repositories_each_once() -> None:
    lines = [line for line in LISTED.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == len(listed()) >= 40
    assert all(name.count("/") == 1 for name in listed())
