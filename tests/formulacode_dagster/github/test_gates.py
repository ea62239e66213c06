from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.github import gates
from formulacode_dagster.models.pull_request import Change, IntakeCount, MergedPullRequest, MergeKind, PullRequest
from formulacode_dagster.models.repository import RepositoryState
from tests.formulacode_dagster.github.conftest import repository

MONTH = "2026-02"


def pull_request(change: dict | None = None, **facts) -> PullRequest:
    return PullRequest(
        facts=MergedPullRequest(
            **{
                "month": MONTH,
                "repository_id": 1,
                "repository": "demo/project",
                "number": 7,
                "title": "",
                "created_at": datetime(2025, 1, 1, tzinfo=UTC),
                "merged_at": datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC),
                "base_ref": "main",
                "head_sha": "a" * 40,
                "merge_commit_sha": "b" * 40,
            }
            | facts
        ),
        change=Change(
            **{
                "month": MONTH,
                "repository_id": 1,
                "number": 7,
                "merge_kind": MergeKind.SQUASH,
                "base_sha": "c" * 40,
                "merge_tree_sha": "d" * 40,
                "patch_sha256": "",
                "patch_bytes": 0,
                "files": (),
            }
            | (change or {})
        ),
    )


def count(**known) -> IntakeCount:
    return IntakeCount(
        **{"month": MONTH, "repository_id": 1, "repository": "demo/project", "reported": 3, "stored": 3} | known
    )


def test_a_month_with_an_active_repository_is_not_empty():
    verdict = gates.repositories_not_empty(MONTH, [repository()])
    assert verdict.passed
    assert verdict.blocking


@pytest.mark.parametrize("rows", [[], [repository(state=RepositoryState.ARCHIVED)]])
def test_a_month_without_an_active_repository_is_empty(rows):
    assert not gates.repositories_not_empty(MONTH, rows).passed


def test_every_repository_resolves():
    verdict = gates.every_repository_resolves(MONTH, [repository(), repository(id=2, full_name="x/y")])
    assert verdict.passed
    assert not verdict.blocking


def test_a_vanished_repository_is_named():
    verdict = gates.every_repository_resolves(MONTH, [repository(id=0, state=RepositoryState.VANISHED)])
    assert verdict.offenders == ("demo/project",)
    assert not verdict.passed


def test_a_repository_stored_under_two_names_is_found():
    verdict = gates.every_repository_resolves(MONTH, [repository(), repository(full_name="old/name")])
    assert verdict.offenders == ("demo/project", "old/name")


def test_counts_that_match_pass():
    verdict = gates.counts_match(MONTH, [count(), count(repository_id=2, reported=0, stored=0)])
    assert verdict.passed
    assert verdict.blocking
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
    verdict = gates.counts_match(MONTH, rows)
    assert not verdict.passed
    assert words in verdict.offenders[0]


def test_valid_pull_requests_pass():
    verdict = gates.window_and_shas_valid(MONTH, [pull_request(), pull_request({"number": 8}, number=8)])
    assert verdict.passed
    assert verdict.blocking


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
    verdict = gates.window_and_shas_valid(MONTH, [row])
    assert not verdict.passed
    assert words in verdict.offenders[0]


def test_a_pull_request_stored_twice_closes_the_gate():
    assert not gates.window_and_shas_valid(MONTH, [pull_request(), pull_request()]).passed
