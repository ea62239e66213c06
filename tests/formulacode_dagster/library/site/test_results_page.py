"""The page of results: agents of hostile names, in tables that people sort and programs read."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from formulacode_dagster.library.site.build import OF_RESULTS, write_site
from formulacode_dagster.library.site.results_page import SiteResults
from formulacode_dagster.models.agent_run import AgentRun, Review, ReviewVerdict
from formulacode_dagster.operating.store.acceptances import add_review
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
from formulacode_dagster.operating.store.database import Database
from tests.support.agent_runs import agent_run, speedups
from tests.support.browser import PLAYWRIGHT, require_browser
from tests.support.command_line import FcData
from tests.support.site import HOSTILE, hostile_dataset

MONTHS = ("2026-01", "2026-02")
REVIEW = Review(
    month=MONTHS[1],
    task_id="acme__fast-1",
    reviewed_at=datetime(2026, 5, 1, tzinfo=UTC),
    reviewed_by=f"Ada {HOSTILE}",
    verdict=ReviewVerdict.DOUBTFUL,
    note=f"unclear {HOSTILE}",
    release="",
)


def run(number: int, reward: float | None, agent: str, **changes: object) -> AgentRun:
    """A run on task `acme__fast-N`, which is of the first month if N is even."""
    known = {"month": MONTHS[number % 2], "benchmarks": speedups(a=(1.5, 2.0))}
    return agent_run(f"acme__fast-{number}", reward, agent, **{**known, **changes})


RUNS = (
    *(run(number, 1.0, "oracle") for number in range(4)),
    *(run(number, 0.2 * number, HOSTILE, dollars=1.5, model="=1+1") for number in range(4)),
    *(run(number, 0.1, "cheap", dollars=0.01) for number in range(2)),
    run(1, None, "cheap", error="EnvironmentStartTimeoutError"),
    run(99, 1.0, "elsewhere"),
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The site of four tasks in two months, with runs of three agents on them."""
    dataset = hostile_dataset(tmp_path / "data", tasks=4, months=2)
    return write_site(dataset, tmp_path / "site", (), SiteResults(RUNS, {REVIEW.task_id: [REVIEW]})).index.parent


def test_agents_are_compared_by_month_and_together_with_intervals(site: Path) -> None:
    page = (site / "results.html").read_text()
    assert [page.index(f'<section id="{scope}">') for scope in ("all", *reversed(MONTHS))] == sorted(
        page.index(f'<section id="{scope}">') for scope in ("all", *MONTHS)
    )
    assert page.count("<svg") == 3 * 3
    assert "<script>window" not in page
    assert "elsewhere" not in page
    assert "★" in page
    for other in ("index.html", "months.html", "tasks/acme__fast-1.html"):
        assert "results.html" in (site / other).read_text()


def test_a_tasks_page_has_attempts_and_reviews_as_text(site: Path) -> None:
    page = (site / "tasks" / "acme__fast-1.html").read_text()
    assert "not judged: EnvironmentStartTimeoutError" in page
    assert "doubtful by Ada &lt;script&gt;" in page
    assert "<script" not in page
    assert "Reviews" not in (site / "tasks" / "acme__fast-2.html").read_text()


def test_tables_and_runs_are_there_for_programs(site: Path) -> None:
    told = {(row["month"], row["agent"]): row for row in json.loads((site / "results.json").read_text())}
    assert len(told) == 3 * 3
    hostile = told["all", HOSTILE]
    assert (hostile["score"]["value"], hostile["tasks"], hostile["release_tasks"]) == (pytest.approx(0.3), 4, 4)
    assert told["2026-02", "cheap"]["infrastructure"] == 1
    with (site / "results.csv").open() as file:
        rows = {(row["scope"], row["agent"]): row for row in csv.DictReader(file)}
    assert float(rows["all", HOSTILE]["advantage_l4"]) == pytest.approx(-0.5)
    # no text of a stranger's is a formula in a spreadsheet
    assert rows["all", HOSTILE]["model"] == "'=1+1"
    with (site / "runs.csv").open() as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == len(RUNS) - 1
    assert [run["reward"] for run in runs if run["state"] == "infrastructure"] == [""]


def test_a_site_without_results_keeps_none_of_an_earlier_one(site: Path, tmp_path: Path) -> None:
    write_site(hostile_dataset(tmp_path / "other", tasks=4, months=2), site)
    assert [name for name in OF_RESULTS if (site / name).exists()] == []
    assert "results.html" not in (site / "index.html").read_text()


def test_the_command_adds_what_the_database_has(
    database: Database, database_url: str, call_fc_data: FcData, tmp_path: Path
) -> None:
    hostile_dataset(tmp_path / "data", tasks=4, months=2)
    with database.transaction() as connection:
        AGENT_RUNS.save(connection, RUNS)
        add_review(connection, REVIEW)
    done = call_fc_data("site", "site", "--from", str(tmp_path / "data"), "--results", FC_DATABASE_URL=database_url)
    assert done.returncode == 0, done.stderr
    assert "oracle" in (tmp_path / "site" / "results.html").read_text()
    assert "doubtful by Ada" in (tmp_path / "site" / "tasks" / "acme__fast-1.html").read_text()


@pytest.mark.slow
def test_a_browser_sorts_by_a_column_and_asks_nobody(site: Path, tmp_path: Path) -> None:
    require_browser()
    look = [
        "node",
        str(Path(__file__).with_name("look_results.mjs")),
        str(PLAYWRIGHT),
        str(site),
        os.environ.get("FC_SCREENSHOTS") or str(tmp_path),
    ]
    looked = subprocess.run(look, capture_output=True, text=True, timeout=120, check=False)
    assert looked.returncode == 0, looked.stderr
    seen = json.loads(looked.stdout)
    assert (seen["asked"], seen["errors"], seen["hacked"]) == ([], [], None)
    assert seen["scores"] == ["1.000", "0.300", "0.100"]
    assert seen["byCost"] == ["$1.50 ★", "$0.01 ★", "–"]
    assert seen["byCostAgain"] == ["$0.01 ★", "$1.50 ★", "–"]
    assert seen["overflow"] == 0
