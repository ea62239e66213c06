"""Pull requests derived only from the history."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.sources.offline.side_file import RepositoryFacts
from sandbox.github.threads import State
from sandbox.github.tracker import Tracker, read_tracker

GITHUB = "GitHub <noreply@github.com>"


def read(made) -> Tracker:
    return read_tracker(made.path, "ada/engine", 7, RepositoryFacts())


def at(moment: str) -> datetime:
    return datetime.fromisoformat(moment).replace(tzinfo=UTC)


def merged(tracker: Tracker) -> list[int]:
    return [number for number, pull in tracker.pull_requests.items() if pull.state is State.MERGED]


def test_a_merge_commit_gives_title_author_head_base_and_commits(repository, small):
    one = read(repository()).pull_requests[1]
    assert (one.title, one.body, one.author) == ("Make it fast", "It was slow.", "bob")
    assert (one.merge_sha, one.base_sha, one.head_sha) == (small["merge"], small["between"], small["second"])
    assert (one.fork_sha, one.commit_count) == (small["root"], 2)
    assert (one.created_at, one.merged_at) == (at("2025-12-20T10:00:00"), at("2026-01-01T00:00:00"))


def test_a_squash_commit_loses_its_mark_and_its_head_is_gone(repository, small):
    one = read(repository()).pull_requests[2]
    assert (one.title, one.commit_count) == ("Cache it", 1)
    assert (one.merge_sha, one.base_sha) == (small["squash"], small["merge"])
    assert one.author == "ada"
    assert one.head_sha not in small.values()


def test_heads_without_a_merge_are_open_or_closed(repository, small):
    tracker = read(repository())
    assert tracker.pull_requests[3].state is State.OPEN
    assert tracker.pull_requests[4].state is State.CLOSED
    assert merged(tracker) == [1, 2]


def test_a_squash_takes_head_and_commit_count_from_its_pull_ref(repository):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    one = made.commit("One", "2026-01-02T00:00:00", root)
    two = made.commit("Two", "2026-01-03T00:00:00", one)
    moved = made.commit("Elsewhere", "2026-01-04T00:00:00", root)
    squash = made.commit("Both (#5)", "2026-01-05T00:00:00", moved, committer=GITHUB)
    made.ref("refs/pull/5/head", two)
    shas = made.write(squash)
    found = read(made).pull_requests[5]
    assert (found.head_sha, found.commit_count, found.fork_sha) == (shas[two], 2, shas[root])
    assert found.created_at == at("2026-01-02T00:00:00")


@pytest.mark.parametrize(
    "subject", ['Revert "Cache it (#2)"', "Fix what (#9) broke", "See #9", "Mention (#9) and more text"]
)
def test_only_a_trailing_mark_counts(repository, subject):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    made.write(made.commit(subject, "2026-01-02T00:00:00", root, committer=GITHUB))
    assert merged(read(made)) == []


def test_of_two_marks_the_last_one_counts(repository):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    made.write(made.commit('Revert "Cache it (#2)" (#8)', "2026-01-02T00:00:00", root, committer=GITHUB))
    assert merged(read(made)) == [8]


def test_marks_inside_a_merged_branch_are_not_merges_of_the_default_branch(repository):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    inner = made.commit("From the fork's own tracker (#3)", "2026-01-02T00:00:00", root, committer=GITHUB)
    made.write(
        made.commit("Merge pull request #12 from bob/fork\n\nAll", "2026-01-03T00:00:00", root, inner, committer=GITHUB)
    )
    assert merged(read(made)) == [12]


def test_a_merge_without_words_is_known_by_its_head(repository):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    head = made.commit("Sharpen the saw", "2026-01-02T00:00:00", root)
    other = made.commit("Oil the chain", "2026-01-02T00:00:00", root)
    merge = made.commit("Merge branches", "2026-01-03T00:00:00", root, head, other)
    made.ref("refs/pull/6/head", head)
    made.ref("refs/pull/7/head", other)
    shas = made.write(merge)
    found = read(made).pull_requests
    assert [found[number].title for number in (6, 7)] == ["Sharpen the saw", "Oil the chain"]
    assert {found[number].merge_sha for number in (6, 7)} == {shas[merge]}


def test_of_merges_with_one_number_the_one_with_a_head_or_the_older_counts(repository):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    stranger = made.commit("Strange", "2026-01-02T00:00:00", root)
    mine = made.commit("Mine", "2026-01-02T00:00:00", root)
    wrong = made.commit("Merge pull request #4 from x/wrong\n\nWrong", "2026-01-03T00:00:00", root, stranger)
    right = made.commit("Merge pull request #4 from x/right\n\nRight", "2026-01-04T00:00:00", wrong, mine)
    older = made.commit("Older (#5)", "2026-01-05T00:00:00", right, committer=GITHUB)
    newer = made.commit("Newer (#5)", "2026-01-06T00:00:00", older, committer=GITHUB)
    made.ref("refs/pull/4/head", mine)
    made.write(newer)
    found = read(made).pull_requests
    assert (found[4].title, found[5].title) == ("Right", "Older")


def test_where_pull_refs_are_kept_a_pushed_mark_without_one_is_an_issue(repository):
    made = repository()
    tip = made.commit("Begin", "2026-01-01T00:00:00")
    for number in (1, 2, 3):
        head = made.commit(f"Work {number}", f"2026-01-0{number}T01:00:00", tip)
        tip = made.commit(f"Work {number} (#{number})", f"2026-01-0{number}T02:00:00", tip, committer=GITHUB)
        made.ref(f"refs/pull/{number}/head", head)
    tip = made.commit("Old tracker (#1596)", "2026-01-05T00:00:00", tip)
    made.write(tip)
    assert merged(read(made)) == [1, 2, 3]


def test_where_no_pull_refs_are_kept_a_pushed_mark_is_a_pull_request(repository):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    made.write(made.commit("Pushed by hand (#4)", "2026-01-05T00:00:00", root))
    assert merged(read(made)) == [4]


def test_an_empty_repository_has_nothing(repository):
    made = repository()
    made.write(None)
    tracker = read(made)
    assert (tracker.tip, tracker.threads(), tracker.last_commit) == ("", [], None)
