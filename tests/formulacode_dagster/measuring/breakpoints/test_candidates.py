"""Commits of a dashboard that are candidates of a month."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from formulacode_dagster.measuring.breakpoints.candidates import (
    CandidateExclusion,
    choose_candidates,
    enter_candidates_of,
    replace_candidates,
)
from formulacode_dagster.measuring.breakpoints.choices import Method
from formulacode_dagster.measuring.breakpoints.persistence import (
    NAMED_COMMITS,
    NAMED_STEPS,
    Breakpoints,
    save_breakpoints,
)
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import is_stand_in, stand_in_number
from formulacode_dagster.operating.store.artifacts import DASHBOARD_CANDIDATES
from formulacode_dagster.operating.store.bulk import upsert
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.operating.store.series.tables import DASHBOARDS
from formulacode_dagster.sources.git.history import Mirror
from formulacode_dagster.sources.git.mirror import MirrorCache
from tests.support.command_line import FcData
from tests.support.git_world import GITHUB, BareRepository

STEP = {"before_revision": 1, "after_revision": 2, "improved": 2, "regressed": 1, "steps": 3, "median_ratio": 0.5}


def steps(*between: tuple[str | None, str | None], **fields: object) -> pl.DataFrame:
    rows = [{**STEP, "before_hash": before, "after_hash": after, **fields} for before, after in between]
    return pl.DataFrame(rows, schema=NAMED_COMMITS)


@pytest.fixture
def history(tmp_path: Path) -> tuple[Mirror, dict[str, str]]:
    repository = BareRepository(tmp_path / "history.git")
    begin = repository.add("Begin", "2014-05-01")
    early = repository.add("Early", "2014-06-01")
    squash = repository.add("Cache lookups (#7)\n\nThey were slow.", "2026-01-31T23:59:59Z", author=GITHUB)
    direct = repository.add("Count once\n\nNot twice.", "2026-02-01T00:00:00Z")
    side = repository.commit("On a branch", "2026-02-01", direct)
    merge = repository.commit("Merge pull request #9 from a/b\n\nSort less", "2026-02-02", direct, side, author=GITHUB)
    shas = repository.write(merge)
    names = ("begin", "early", "squash", "direct", "side", "merge")
    return Mirror("acme/tiny", repository.path), dict(
        zip(names, (shas[mark] for mark in (begin, early, squash, direct, side, merge)), strict=True)
    )


def chosen(mirror: Mirror, commits: pl.DataFrame, widest: int = 1):
    found_by = ("board", Source.RESULTS, Method.ASV)
    return choose_candidates(commits, mirror, repository_id=7, found_by=found_by, widest=widest)


def test_a_commit_is_a_candidate_of_its_month_under_its_pull_request(history):
    mirror, sha = history
    between = [(sha["early"], sha["squash"]), (sha["squash"], sha["direct"]), (sha["direct"], sha["merge"])]
    rows = chosen(mirror, steps(*between)).candidates
    assert [(row.month, row.number, row.title, row.body) for row in rows] == [
        ("2026-01", 7, "Cache lookups", "They were slow."),
        ("2026-02", stand_in_number(sha["direct"]), "Count once", "Not twice."),
        ("2026-02", 9, "Sort less", ""),
    ]
    assert [is_stand_in(row.number) for row in rows] == [False, True, False]
    assert {(row.dashboard, row.series, row.method, row.improved) for row in rows} == {("board", "results", "asv", 2)}
    facts = rows[1].facts
    assert (facts.merge_commit_sha, facts.head_sha, facts.source) == (sha["direct"], "", "dashboard")


def test_every_step_that_makes_none_is_counted_by_its_reason(history):
    mirror, sha = history
    commits = pl.concat(
        [
            steps((sha["early"], sha["merge"])),
            steps((sha["squash"], sha["direct"]), improved=1),
            steps((sha["direct"], "e" * 40), (None, sha["direct"]), (sha["merge"], sha["direct"])),
            steps((sha["begin"], sha["early"])),
        ]
    )
    told = chosen(mirror, commits)
    assert told.candidates == ()
    assert told.left_out == Counter(
        {
            CandidateExclusion.WIDE: 1,
            CandidateExclusion.NOT_FASTER: 1,
            CandidateExclusion.NOT_ON_THE_BRANCH: 3,
            CandidateExclusion.TOO_EARLY: 1,
        }
    )


def test_of_a_wide_step_each_commit_is_one_if_that_is_asked_for(history):
    mirror, sha = history
    rows = chosen(mirror, steps((sha["early"], sha["merge"])), widest=3).candidates
    assert {row.sha for row in rows} == {sha["squash"], sha["direct"], sha["merge"]}
    assert {row.commits for row in rows} == {3}


def test_candidates_of_a_dashboard_replace_its_own_and_no_others(history, database: Database):
    mirror, sha = history
    rows = chosen(mirror, steps((sha["squash"], sha["direct"]), (sha["direct"], sha["merge"]))).candidates
    with database.transaction() as connection:
        other = rows[0].model_copy(update={"dashboard": "other", "number": 1})
        replace_candidates(connection, "other", [other])
        replace_candidates(connection, "board", rows)
        replace_candidates(connection, "board", rows[1:])
        assert DASHBOARD_CANDIDATES.read_all(connection) == [other, rows[1]]


def test_a_dashboard_that_was_never_read_has_none(database: Database, tmp_path: Path):
    with pytest.raises(ConfigurationError, match="nothing published was read"):
        enter_candidates_of(database, MirrorCache(tmp_path, "file:///nowhere"), "board")


def test_the_command_of_the_documentation_names_candidates_by_month(
    history, database: Database, database_url: str, call_fc_data: FcData, tmp_path: Path
):
    mirror, sha = history
    (tmp_path / "origin/acme").mkdir(parents=True)
    mirror.path.rename(tmp_path / "origin/acme/tiny.git")
    with database.transaction() as connection:
        site = {column.name: 0 if column.name.endswith(("expected", "read")) else "" for column in DASHBOARDS.columns}
        named = {"dashboard": "numpy", "source": "published", "repository": "acme/tiny", "benchmarks": []}
        upsert(connection, DASHBOARDS, [{**site, **named, "read_at": datetime(2026, 1, 1, tzinfo=UTC)}])
        kept = Breakpoints(
            pl.DataFrame(schema=NAMED_STEPS), steps((sha["direct"], sha["merge"]), (sha["early"], sha["merge"]))
        )
        save_breakpoints(connection, "numpy", Source.PUBLISHED, Method.SEEDED, kept)
    settings = {"FC_DATABASE_URL": database_url, "GITHUB_CLONE_URL": (tmp_path / "origin").as_uri()}
    ran = call_fc_data("dashboards", "candidates", "numpy", **settings)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "acme/tiny#9 Sort less" in ran.stdout
    assert "1 candidates; steps left out: 1 wide" in ran.stdout
    with database.transaction() as connection:
        assert [row.sha for row in DASHBOARD_CANDIDATES.read(connection, "2026-02")] == [sha["merge"]]
