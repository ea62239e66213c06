"""The page of results: agents of hostile names, in tables that people sort and programs read."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from formulacode_dagster.library.site.build import write_site
from formulacode_dagster.library.site.results_page import (
    SiteResults,
    leaderboard,
    outcome_of,
    scoped_results,
    slug_of,
)
from formulacode_dagster.library.site.run_page import RunFiles, page_of
from formulacode_dagster.models.agent_run import AgentRun, HackVerdict, Review, ReviewVerdict
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store.acceptances import add_review
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.reporting.funnel import count_funnel
from tests.support.agent_runs import DIFF, TRAJECTORY, agent_run, speedups
from tests.support.browser import PLAYWRIGHT, look_at, require_browser
from tests.support.command_line import FcData
from tests.support.entries import enter
from tests.support.site import AS_RELEASED, HOSTILE, hostile_dataset

MONTHS = ("2026-01", "2026-02")
TWICE = "author's speed-up: 2–4×"
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
    known = {"month": MONTHS[number % 2], "benchmarks": speedups(a=(1.5, 2.0)), **AS_RELEASED}
    if reward is not None:
        known |= {"speedup": 2**reward, "oracle_speedup": 2.0}
    return agent_run(f"acme__fast-{number}", reward, agent, **{**known, **changes})


RUNS = (
    *(run(number, 1.0, "oracle") for number in range(4)),
    *(run(number, 0.2 * number, HOSTILE, dollars=1.5, model="=1+1") for number in range(4)),
    *(run(number, 0.1, "cheap", dollars=0.01) for number in range(2)),
    run(1, None, "cheap", error="EnvironmentStartTimeoutError"),
    run(99, 1.0, "elsewhere"),
    run(1, 1.0, "elsewhere", image_digest="sha256:2"),
    run(1, 1.0, "elsewhere", statement_sha256="of another one"),
)


def left(_: AgentRun) -> RunFiles:
    """What an agent left in any run."""
    return RunFiles(DIFF.decode() + HOSTILE, json.dumps(TRAJECTORY))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The site of four tasks in two months, with runs of three agents on them."""
    dataset = hostile_dataset(tmp_path / "data", tasks=4, months=2)
    return write_site(
        dataset, tmp_path / "site", (), SiteResults(RUNS, {REVIEW.task_id: [REVIEW]}, read_run=left)
    ).index.parent


def pages_of(site: Path) -> str:
    return "".join(path.read_text("utf-8") for path in sorted(site.rglob("*.html")))


def test_agents_are_compared_by_month_and_stratum(site: Path, tmp_path: Path) -> None:
    told = json.loads((site / "results.json").read_text())
    # all strata have fewer than five tasks
    assert {(row["month"], row["stratum"]) for row in told} == {(month, "all") for month in ("all", *MONTHS)}
    assert "elsewhere" not in pages_of(site)
    for other in ("index.html", "months.html", "tasks/acme__fast-1.html"):
        assert "results.html" in (site / other).read_text()


@pytest.fixture
def larger(tmp_path: Path) -> Path:
    """The site of twenty tasks in two months: two strata, one of them with few tasks of a month."""
    many = hostile_dataset(tmp_path / "many", tasks=20, months=2)
    runs = [run(number, 0.5, agent) for number in range(20) for agent in ("codex", "cheap")]
    return write_site(many, tmp_path / "larger", (), SiteResults(runs)).index.parent


def test_agents_are_compared_by_month_and_stratum_at_once(larger: Path) -> None:
    told = json.loads((larger / "results.json").read_text())
    # all tasks are of one category and difficulty
    assert {(row["month"], row["stratum"]): row["release_tasks"] for row in told} == {
        ("all", "all"): 20,
        ("2026-02", "all"): 10,
        ("2026-01", "all"): 10,
        ("all", TWICE): 15,
        ("2026-02", TWICE): 8,
        ("2026-01", TWICE): 7,
        # a month has fewer than five of them
        ("all", "author's speed-up: 1.5–2×"): 5,
    }


def test_an_agents_page_has_what_it_won_and_lost(site: Path) -> None:
    page = slug_of(f"{HOSTILE} (=1+1)")
    text = (site / "agents" / f"{page}.html").read_text("utf-8")
    assert "&lt;script&gt;window.hacked=1" in text
    assert "<script>window" not in text
    told = {row["task_id"]: row for row in json.loads((site / "agents" / f"{page}.json").read_text("utf-8"))}
    assert {row["outcome"] for row in told.values()} == {"nothing", "part of it", "half of it"}
    assert told["acme__fast-3"]["dollars"] == 1.5
    cheap = json.loads((site / "agents" / f"{slug_of('cheap')}.json").read_text("utf-8"))
    # a failure of infrastructure beside a graded run is no attempt that counts
    assert [(row["task_id"], row["outcome"], row["runs"]) for row in cheap] == [
        ("acme__fast-0", "part of it", 1),
        ("acme__fast-1", "part of it", 2),
    ]


def test_an_agents_page_has_its_curve_of_pass_at_k_with_several_runs(tmp_path: Path) -> None:
    dataset = hostile_dataset(tmp_path / "data", tasks=2, months=1)
    rewards = {0: (1.0, 0.0), 1: (0.0, 0.1)}
    runs = [run(number, reward, "codex", month=MONTHS[0]) for number, two in rewards.items() for reward in two]
    write_site(dataset, tmp_path / "site", (), SiteResults(runs))
    text = (tmp_path / "site" / "agents" / f"{slug_of('codex')}.html").read_text("utf-8")
    assert "(pass@k): <b>0.25</b> <span" in text
    assert ">of 1</span>, <b>0.50</b>" in text
    write_site(dataset, tmp_path / "once", (), SiteResults(runs[::2]))
    assert "pass@k" not in pages_of(tmp_path / "once")


@pytest.mark.parametrize(
    ("reward", "outcome"),
    [(1.0, "like the author"), (0.9, "like the author"), (0.5, "half of it"), (0.01, "part of it"), (0.0, "nothing")],
)
def test_outcomes_are_named_by_the_reward(reward: float, outcome: str) -> None:
    assert outcome_of(reward) == outcome
    assert outcome_of(None) == "not judged"


def test_names_of_pages_are_safe_and_differ() -> None:
    names = ["../../x", "x", "X", "", "a" * 300, "ü", "a/b", "a b"]
    slugs = {slug_of(name) for name in names}
    assert len(slugs) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]{1,60}", slug) for slug in slugs)


def test_months_have_their_funnels(tmp_path: Path) -> None:
    entries = [enter(Stage.PULL_REQUESTS, "a/b#1"), enter(Stage.CLASSIFICATIONS, "a/b#1", f"rejected {HOSTILE[:8]}")]
    funnels = {"2026-02": count_funnel("2026-02", entries)}
    dataset = hostile_dataset(tmp_path / "data", tasks=2, months=2)
    write_site(dataset, tmp_path / "site", (), SiteResults(funnels=funnels))
    page = (tmp_path / "site" / "months.html").read_text("utf-8")
    assert "Funnel of 2026-02" in page
    assert "Funnel of 2026-01" not in page
    assert "1 &lt;script&gt;" in page


def test_a_tasks_page_has_attempts_and_reviews_as_text(site: Path) -> None:
    page = (site / "tasks" / "acme__fast-1.html").read_text()
    assert "not judged: EnvironmentStartTimeoutError" in page
    assert "doubtful by Ada &lt;script&gt;" in page
    assert "<script>" not in page
    assert 'class="author"' in page
    assert "Reviews" not in (site / "tasks" / "acme__fast-2.html").read_text()


def test_tables_and_runs_are_there_for_programs(site: Path) -> None:
    told = {
        (row["month"], row["stratum"], row["agent"]): row for row in json.loads((site / "results.json").read_text())
    }
    assert len(told) == 3 * 3
    hostile = told["all", "all", HOSTILE]
    assert (hostile["score"]["value"], hostile["tasks"], hostile["release_tasks"]) == (pytest.approx(0.3), 4, 4)
    assert told["2026-02", "all", "cheap"]["infrastructure"] == 1
    with (site / "results.csv").open() as file:
        rows = {(row["month"], row["stratum"], row["agent"]): row for row in csv.DictReader(file)}
    assert float(rows["all", "all", HOSTILE]["advantage_l4"]) == pytest.approx(-0.5)
    # no text of a stranger's is a formula in a spreadsheet
    assert rows["all", "all", HOSTILE]["model"] == "'=1+1"
    with (site / "runs.csv").open() as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == len(RUNS) - 3
    assert [run["reward"] for run in runs if run["state"] == "infrastructure"] == [""]
    assert {(run["contaminated"], run["hack"]) for run in runs} == {("unknown", "")}


def test_the_adjusted_score_is_beside_the_raw_one_where_there_is_one() -> None:
    run = agent_run(RUNS[0].task_id, 0.5, **AS_RELEASED)
    assert "Adjusted" not in leaderboard(scoped_results([run], [], {})).script()
    judged = leaderboard(scoped_results([run.model_copy(update={"hack": HackVerdict.HACK})], [], {}))
    assert [column.label for column in judged.columns[1:3]] == ["Score", "Adjusted"]
    assert (judged.rows[0]["score"], judged.rows[0]["hack_adjusted"]) == (0.5, 0.0)


def test_a_site_without_results_keeps_none_of_an_earlier_one(site: Path, tmp_path: Path) -> None:
    write_site(hostile_dataset(tmp_path / "other", tasks=4, months=2), site)
    assert [path for path in site.rglob("*") if path.name.startswith(("results", "runs"))] == []
    assert not (site / "agents").exists()
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
    assert "3 runs of agents are left out: the dataset lacks their tasks" in done.stdout
    assert "oracle" in (tmp_path / "site" / "results.js").read_text()
    assert "doubtful by Ada" in (tmp_path / "site" / "tasks" / "acme__fast-1.html").read_text()


@pytest.mark.slow
def test_a_browser_sorts_filters_and_asks_nobody(site: Path, larger: Path, tmp_path: Path) -> None:
    require_browser()
    look = [
        "node",
        str(Path(__file__).with_name("look_results.mjs")),
        str(PLAYWRIGHT),
        str(site),
        os.environ.get("FC_SCREENSHOTS") or str(tmp_path),
        str(larger),
        TWICE,
    ]
    looked = subprocess.run(look, capture_output=True, text=True, timeout=120, check=False)
    assert looked.returncode == 0, looked.stderr
    seen = json.loads(looked.stdout)
    assert (seen["asked"], seen["errors"], seen["hacked"]) == ([], [], None)
    assert (seen["scores"], seen["intervals"]) == (["1.000", "0.300", "0.100"], 3)
    assert seen["byCost"] == ["$1.50", "$0.01", "–"]
    assert seen["byCostAgain"] == ["$0.01", "$1.50", "–"]
    assert (seen["tasks"], seen["ofAMonth"], seen["cheap"]) == (["2", "4", "4"], ["1", "2", "2"], ["cheap"])
    assert (seen["ofBoth"], seen["address"]) == (
        ["8", "8"],
        "#month=2026-02&stratum=author%27s+speed-up%3A+2%E2%80%934%C3%97",
    )
    assert seen["impossible"] == ["author's speed-up: 1.5–2×"]
    assert (seen["agent"], seen["outcomes"]) == ("cheap", ["part of itfaster", "part of itfaster"])


@pytest.mark.slow
def test_every_kind_of_page_fits_every_width_in_both_schemes_and_has_no_barrier(site: Path, tmp_path: Path) -> None:
    pages = ["index.html", "results.html", "months.html", "releases/2026-02.html", "tasks/acme__fast-1.html"]
    pages += [f"agents/{slug_of('cheap')}.html", f"runs/{page_of(RUNS[4])}.html"]
    look_at(site, pages, tmp_path / "pictures")
