"""Merges shown by a default branch; the asset's test compares it with GitHub."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formulacode_dagster.models.month import Month
from formulacode_dagster.sources.git.mirror import UPDATED, MirrorCache
from formulacode_dagster.sources.intake.pull_requests.witness import shown_merges
from tests.support.git_world import ADA, GITHUB, BareRepository
from tests.support.github import repository

FEBRUARY = Month.parse("2026-02")
NAME = "demo/project"


@pytest.fixture
def world(tmp_path: Path) -> BareRepository:
    made = BareRepository(tmp_path / f"served/{NAME}.git")
    made.commit("Begin", "2025-12-01T00:00:00Z")
    return made


def shown(world: BareRepository) -> list[int]:
    world.write()
    cache = MirrorCache(world.path.parents[2] / "mirrors", world.path.parents[1].as_uri())
    found = shown_merges(cache, repository(full_name=NAME, month="2026-02"), FEBRUARY)
    return [merge.number for merge in found]


def test_squashes_and_merges_of_the_month_are_shown_and_no_others(world: BareRepository) -> None:
    tip = world.commit("Early (#1)", "2026-01-31T23:59:30Z", 1, committer=GITHUB)
    tip = world.commit("Squashed (#2)", "2026-02-10T00:00:00Z", tip, committer=GITHUB)
    branch = world.commit("On a branch (#77)", "2026-02-11T00:00:00Z", tip)
    tip = world.commit("Merge pull request #3 from ada/x", "2026-02-12T00:00:00Z", tip, branch)
    world.commit("Late (#4)", "2026-03-01T00:00:10Z", tip, committer=GITHUB)
    assert shown(world) == [2, 3]


def test_a_number_in_a_message_is_an_issue_if_github_commits_merges(world: BareRepository) -> None:
    tip = world.commit("Squashed (#2)", "2026-02-10T00:00:00Z", 1, committer=GITHUB)
    world.commit("Mend the build (#5)", "2026-02-11T00:00:00Z", tip, committer=ADA)
    assert shown(world) == [2]


def test_without_github_commits_a_number_in_a_message_is_the_evidence(world: BareRepository) -> None:
    world.commit("Land it by hand (#5)", "2026-02-11T00:00:00Z", 1, committer=ADA)
    assert shown(world) == [5]


def test_a_mirror_that_ends_before_the_month_is_fetched_again(world: BareRepository) -> None:
    assert shown(world) == []
    (fetched,) = (world.path.parents[2] / "mirrors").rglob(UPDATED)
    os.utime(fetched, (0, FEBRUARY.start.timestamp()))
    world.commit("Squashed (#2)", "2026-02-10T00:00:00Z", 1, committer=GITHUB)
    assert shown(world) == [2]
