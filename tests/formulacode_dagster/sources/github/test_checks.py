from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.intake import SearchGap
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import IntakeCount, PullRequest
from formulacode_dagster.models.repository import RepositoryState
from formulacode_dagster.sources.github import checks as verdicts
from tests.records import make_merged, make_pull_request
from tests.support.github import repository

MONTH = "2026-02"


def pull_request(change: dict | None = None, **facts) -> PullRequest:
    given = {
        "month": MONTH,
        "repository_id": 1,
        "repository": "demo/project",
        "number": 7,
        "merged_at": datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC),
        "merge_commit_sha": "b" * 40,
    }
    # the change keeps its month and number where the facts are given others
    kept = {"month": MONTH, "number": 7, "base_sha": "c" * 40}
    return make_pull_request(make_merged(**given | facts), **kept | (change or {}))


def count(**known) -> IntakeCount:
    return IntakeCount(
        **{"month": MONTH, "repository_id": 1, "repository": "demo/project", "reported": 3, "stored": 3} | known
    )


def test_a_month_with_a_tracked_repository_is_not_empty():
    verdict = verdicts.not_empty([repository()], {"demo/project"})
    assert verdict.passed


@pytest.mark.parametrize("rows", [[], [repository()]])
def test_a_month_without_a_tracked_repository_is_empty(rows):
    verdict = verdicts.not_empty(rows, {"discovery"})
    assert not verdict.passed
    assert verdict.figures == {"repositories": len(rows), "tracked": 0}


def test_every_repository_resolves():
    verdict = verdicts.every_repository_resolves([repository(), repository(id=2, full_name="x/y")])
    assert verdict.passed


def test_a_vanished_repository_is_named():
    verdict = verdicts.every_repository_resolves([repository(id=0, state=RepositoryState.VANISHED)])
    assert verdict.offenders == ("demo/project",)
    assert not verdict.passed


def test_a_repository_stored_under_two_names_is_found():
    verdict = verdicts.every_repository_resolves([repository(), repository(full_name="old/name")])
    assert verdict.offenders == ("demo/project", "old/name")


def gap(counted, found, **more):
    return SearchGap(month=MONTH, query=f"size:{counted}", counted=counted, found=found, **more)


def test_searches_may_lack_one_percent_and_are_reported():
    assert verdicts.searches_complete([]).passed
    verdict = verdicts.searches_complete([gap(500, 495), gap(200, 199)])
    assert (verdict.passed, verdict.figures) == (True, {"searches": 2, "missing": 6})
    assert verdict.summary == "2 searches stayed short, of 6 files in all"


def test_a_search_that_showed_half_of_what_it_counts_is_named():
    verdict = verdicts.searches_complete([gap(500, 250), gap(500, 499)])
    assert verdict.offenders == ("size:500: 250 of 500 files",)


def test_a_search_that_timed_out_is_named_despite_its_count():
    verdict = verdicts.searches_complete([gap(500, 500, ran_out=True)])
    assert not verdict.passed
    assert verdict.offenders == ("size:500: 500 of 500 files, GitHub ran out of time",)


def window(item: str = "demo/project", state: ItemState = ItemState.DONE, reason: str = "") -> LedgerEntry:
    return LedgerEntry(stage=Stage.PULL_REQUESTS, month=MONTH, item=item, state=state, reason=reason, detail="why")


def counts_match(rows=(), *, tracked=None, stored=None, windows=None):
    tracked = [repository()] if tracked is None else tracked
    stored = {1: 3} if stored is None else stored
    return verdicts.counts_match(MONTH, tracked, list(rows), stored, [window()] if windows is None else windows)


def test_counts_that_match_pass():
    verdict = counts_match(
        [count(), count(repository_id=2, repository="demo/idle", reported=0, stored=0)],
        tracked=[repository(), repository(id=2, full_name="demo/idle")],
        windows=[window(), window("demo/idle")],
    )
    assert verdict.passed
    assert verdict.figures["reported"] == 3


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([count(stored=2)], "2 of 3"),
        ([count(stored=4)], "4 of 3"),
        ([count(month="2026-01")], "counted for 2026-01"),
        ([count(), count()], "counted 2 times"),
    ],
)
def test_counts_that_do_not_match_fail(rows, words):
    verdict = counts_match(rows)
    assert not verdict.passed
    assert words in verdict.offenders[0]


def test_rows_that_were_lost_since_they_were_counted_shut_the_gate():
    verdict = counts_match([count()], stored={1: 2})
    assert verdict.offenders == ("demo/project: 3 of 3, 2 in the table",)
    assert not counts_match([count()], stored={}).passed


@pytest.mark.parametrize("windows", [[], [window()]])
def test_a_tracked_repository_without_count_or_failure_closes_the_gate(windows):
    verdict = counts_match([], windows=windows)
    assert not verdict.passed
    assert verdict.offenders == ("demo/project: neither counted nor failed",)
    assert "1 repositories could not be taken in" in verdict.summary


@pytest.mark.parametrize("rows", [[], [count()]])
def test_a_failed_repository_counts_as_missing_within_the_budget(rows):
    verdict = counts_match(rows, windows=[window(state=ItemState.FAILED, reason="incomplete")])
    assert verdict.passed
    assert verdict.figures["missing"] == 1
    assert "1 repositories could not be taken in" in verdict.summary


def test_a_repository_that_failed_hides_nothing_of_the_others():
    verdict = counts_match([count(stored=2)], windows=[window(), window("old/name", ItemState.FAILED, "incomplete")])
    assert verdict.offenders == ("demo/project: 2 of 3, 3 in the table",)


@pytest.mark.parametrize(
    ("state", "reason"),
    [(ItemState.FAILED, "vanished"), (ItemState.REJECTED, "archived"), (ItemState.SKIPPED, "not_asked")],
)
def test_a_repository_in_a_state_of_its_own_leaves_the_gate_open(state, reason):
    assert counts_match([], windows=[window(state=state, reason=reason)]).passed


def test_counts_of_untracked_repositories_are_ignored():
    assert counts_match([count(), count(repository_id=9, repository="x/y", stored=1)]).passed


def test_merges_that_search_lacks_are_named():
    assert verdicts.search_shows_all([count()]).passed
    verdict = verdicts.search_shows_all([count(), count(repository="x/y", unsearched=(2, 5))])
    assert not verdict.passed
    assert verdict.offenders == ("x/y#2", "x/y#5")


def test_valid_pull_requests_pass():
    verdict = verdicts.window_and_shas_valid(MONTH, [pull_request(), pull_request({"number": 8}, number=8)])
    assert verdict.passed


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (pull_request(merged_at=datetime(2026, 3, 1, tzinfo=UTC)), "merged at 2026-03-01"),
        (pull_request(merged_at=datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)), "merged at 2026-01-31"),
        (pull_request(month="2026-01"), "stored for 2026-01"),
        (pull_request(merge_commit_sha="b" * 39), "merge_commit_sha"),
        (pull_request(head_sha="B" * 40), "head_sha"),
        (pull_request({"base_sha": ""}), "base_sha"),
        (pull_request({"merge_tree_sha": "main"}), "merge_tree_sha"),
        (pull_request({"base_sha": "b" * 40}), "base and merge commit are the same"),
        (pull_request({"number": 8}), "holds the change of #8"),
    ],
)
def test_each_fault_of_a_pull_request_closes_the_gate(row, words):
    verdict = verdicts.window_and_shas_valid(MONTH, [row])
    assert not verdict.passed
    assert words in verdict.offenders[0]


def test_a_pull_request_stored_twice_closes_the_gate():
    assert not verdicts.window_and_shas_valid(MONTH, [pull_request(), pull_request()]).passed
