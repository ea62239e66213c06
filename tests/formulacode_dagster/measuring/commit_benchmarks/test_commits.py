"""Commits selected by a list of names and ranges."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.measuring.commit_benchmarks.commits import as_pull_request, evenly_spread, find_commits
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.git.mirror import MirrorCache
from tests.support.git_world import BareRepository

NAME = "acme/tiny"


@pytest.fixture
def origin(tmp_path):
    repository = BareRepository(tmp_path / "origin" / f"{NAME}.git")
    first = repository.commit("First", "2026-01-01")
    side = repository.commit("On a branch", "2026-01-02", first)
    merge = repository.commit("Merge", "2026-01-04", first, side)
    last = repository.commit("Last", "2026-01-05", merge)
    repository.ref("refs/tags/v1", first)
    shas = repository.write()
    return repository, [shas[mark] for mark in (first, side, merge, last)]


@pytest.fixture
def cache(tmp_path, origin):
    return MirrorCache(tmp_path / "mirrors", (tmp_path / "origin").as_uri())


def test_names_and_ranges_along_first_parents_are_commits_oldest_first(cache, origin):
    _, (first, side, merge, last) = origin
    assert find_commits(cache, NAME, ["v1..main"]).commits == (merge, last)
    assert find_commits(cache, NAME, [f"main,{first[:12]}", side, "main"]).commits == (first, side, last)
    assert find_commits(cache, NAME, ["v1..", "v1"], steps=2).commits == (first, last)


def test_what_came_after_the_last_fetch_is_fetched_for_its_name(cache, origin):
    repository, _ = origin
    find_commits(cache, NAME, ["main"])
    repository.ref("refs/tags/v2", repository.commit("New", "2026-01-06", 4))
    sha = list(repository.write().values())[-1]
    assert find_commits(cache, NAME, ["v2"]).commits == (sha,)


@pytest.mark.parametrize("names", [[], ["nothing"], ["main..v1"], ["--all"]])
def test_what_names_no_commit_is_an_error(cache, names):
    with pytest.raises(ConfigurationError):
        find_commits(cache, NAME, names)


def test_steps_are_spread_with_both_ends_among_them():
    assert evenly_spread("abcdefg", 3) == ("a", "d", "g")
    assert evenly_spread("abc", 9) == tuple("abc")
    assert evenly_spread("abc", 1) == ("c",)


def test_a_commit_is_built_as_of_its_day_or_another(cache, origin):
    _, (first, *_) = origin
    mirror = find_commits(cache, NAME, ["v1"]).mirror
    pr = as_pull_request(mirror, first, repository_id=7)
    assert (pr.change.base_sha, pr.facts.merge_commit_sha, pr.change.files) == (first, first, ())
    assert pr.facts.merged_at == datetime(2026, 1, 1, tzinfo=UTC)
    later = datetime(2026, 3, 1, tzinfo=UTC)
    assert as_pull_request(mirror, first, repository_id=7, as_of=later).facts.month == "2026-03"
