"""The pull request of a breakpoint: from the mirror, and from intake."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from formulacode_dagster.measuring.breakpoints.attribution import (
    MeasuredSeries,
    find_and_keep,
    pull_requests_of_mirror,
    with_pull_requests,
)
from formulacode_dagster.measuring.breakpoints.persistence import load_breakpoints
from formulacode_dagster.operating.store.artifacts import MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.source import Source
from formulacode_dagster.sources.dashboards.raw_results import history_of_mirror
from formulacode_dagster.sources.git.history import Mirror
from tests.records import make_merged

SUBJECTS = [
    "begin",
    "Make it faster (#7)",
    "fix a typo",
    "Merge pull request #9 from a/b",
    "Make it slower (#11)",
    "end",
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of SUBJECTS on its default branch, `trunk`, with a tag in it."""
    folder = tmp_path_factory.mktemp("repository")
    git = ["git", "-C", str(folder), "-c", "user.name=GitHub", "-c", "user.email=noreply@github.com"]
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(folder)], check=True)
    for subject in SUBJECTS:
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject], check=True)
    subprocess.run([*git, "tag", "-a", "-m", "one", "v1", "HEAD~1"], check=True)
    return folder / ".git"


@pytest.fixture(scope="module")
def line(repository: Path) -> list[str]:
    told = subprocess.run(
        ["git", "-C", str(repository), "log", "--reverse", "--format=%H"], check=True, capture_output=True
    )
    return told.stdout.decode().split()


def test_the_history_of_a_mirror_has_order_dates_tags_and_branch(repository: Path, line: list[str]) -> None:
    with Mirror("a/b", repository) as mirror:
        history = history_of_mirror(mirror)
    assert sorted(history.numbers, key=history.numbers.__getitem__) == line
    assert set(history.dates) == set(line)
    assert (history.tags, history.branch) == ({line[-2]: ["v1"]}, "trunk")


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [(0, 1, 7), (0, 2, 7), (1, 2, None), (2, 3, 9), (0, 3, None), (3, 4, 11), (4, 4, 11), (4, 3, 9)],
)
def test_a_range_has_the_only_pull_request_in_it(
    before: int, after: int, number: int | None, repository: Path, line: list[str]
) -> None:
    with Mirror("a/b", repository) as mirror:
        oldest_first, merged = pull_requests_of_mirror(mirror)
    assert oldest_first == line
    commits = pl.DataFrame({"before_hash": [line[before]], "after_hash": [line[after]]})
    assert with_pull_requests(commits, oldest_first, merged)["pull_request"].to_list() == [number]


def test_without_a_mirror_the_commit_that_ends_a_range_tells() -> None:
    commits = pl.DataFrame({"before_hash": ["a", "b", None], "after_hash": ["b", "c", None]})
    assert with_pull_requests(commits, [], {"b": 3})["pull_request"].to_list() == [3, None, None]


def test_breakpoints_are_kept_with_what_intake_knows(database: Database, tmp_path: Path) -> None:
    hashes = [f"{number:040x}" for number in range(24)]
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(
            connection,
            [
                make_merged(number=5, repository="Example/Sample", merge_commit_sha=hashes[12]),
                make_merged(number=6, repository_id=8, repository="a/fork", merge_commit_sha=hashes[12]),
            ],
        )
    measured = MeasuredSeries(
        "sample",
        Source.PUBLISHED,
        "example/sample",
        pl.DataFrame(
            {"series": [0] * 24, "revision": np.arange(24), "value": np.where(np.arange(24) < 12, 2.0, 1.0)},
            schema_overrides={"series": pl.UInt32},
        ),
        pl.DataFrame(
            {
                "series": [0],
                "benchmark": ["b"],
                "parameters": [[]],
                "branch": [""],
                "type": ["time"],
                "unit": ["seconds"],
            },
            schema_overrides={"series": pl.UInt32, "parameters": pl.List(pl.String)},
        ),
        pl.DataFrame(
            {"revision": np.arange(24), "hash": hashes, "date": [None] * 24},
            schema_overrides={"date": pl.Datetime("ms", "UTC")},
        ),
    )
    found = find_and_keep(database, measured, tmp_path, mirror=None)
    assert found.commits.select("after_hash", "pull_request").rows() == [(hashes[12], 5)]
    with database.transaction() as connection:
        kept = load_breakpoints(connection, "sample", Source.PUBLISHED)
    assert kept.commits.equals(found.commits)
    assert pl.read_parquet(tmp_path / "published" / "steps_seeded.parquet").equals(found.steps)
