"""Overrides and additions of the side file."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from sandbox.github import app

PULL = """query($number: Int!) { repository(owner: "ada", name: "engine") { pullRequest(number: $number) {
  title body author { login } createdAt mergedAt baseRefName headRefOid mergeCommit { oid } changedFiles
  commits { totalCount }
  labels(first: 5) { nodes { name } } comments(first: 5) { totalCount nodes { body author { login } createdAt } }
  closingIssuesReferences(first: 5) { nodes { number } } } } }"""


def pull(caller, number: int):
    return caller().data(PULL, number=number)["repository"]["pullRequest"]


def test_facts_override_what_was_derived(small, tell, caller):
    tell(
        {
            "ada/engine": {
                "pull_requests": [
                    {
                        "number": 2,
                        "title": "Another title",
                        "body": "Another body",
                        "author": "ghost",
                        "labels": ["performance", "C"],
                        "created_at": "2025-08-01T00:00:00Z",
                        "merged_at": "2026-01-20T12:00:00+02:00",
                        "base_ref": "stable",
                        "comments": [{"author": "bob", "body": "Well.", "created_at": "2026-01-02T00:00:00Z"}],
                    }
                ]
            }
        }
    )
    found = pull(caller, 2)
    assert (found["title"], found["body"], found["author"]) == ("Another title", "Another body", None)
    assert (found["createdAt"], found["mergedAt"]) == ("2025-08-01T00:00:00Z", "2026-01-20T10:00:00Z")
    assert found["baseRefName"] == "stable"
    assert [label["name"] for label in found["labels"]["nodes"]] == ["performance", "C"]
    assert found["comments"]["nodes"] == [
        {"body": "Well.", "author": {"login": "bob"}, "createdAt": "2026-01-02T00:00:00Z"}
    ]


def test_a_rebase_merge_has_no_mark_and_is_told_by_the_side_file(repository, tell, caller):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    one = made.commit("One", "2026-01-02T00:00:00", root)
    two = made.commit("Two", "2026-01-03T00:00:00", one, files={"a.txt": "a\n", "b.txt": "b\n"})
    after = made.commit("After", "2026-01-04T00:00:00", two)
    shas = made.write(after)
    facts = {"number": 9, "merge_kind": "rebase", "merge_commit_sha": shas[two], "commit_count": 2, "title": "Rebased"}
    tell({"ada/engine": {"pull_requests": [facts]}})
    found = pull(caller, 9)
    assert found["mergeCommit"]["oid"] == shas[two]
    assert caller().get("/repos/ada/engine/pulls/9").json()["base"]["sha"] == shas[root]
    assert (found["commits"]["totalCount"], found["changedFiles"]) == (2, 3)
    assert found["mergedAt"] == "2026-01-03T00:00:00Z"


def test_issues_come_from_the_side_file_and_are_closed_by_the_merge(small, tell, caller):
    tell({"ada/engine": {"issues": [{"number": 7, "title": "Slow", "created_at": "2025-06-01T00:00:00Z"}]}})
    assert pull(caller, 2)["closingIssuesReferences"]["nodes"] == [{"number": 7}]
    events = caller().get("/repos/ada/engine/issues/7/timeline").json()
    assert [event["event"] for event in events] == ["cross-referenced", "referenced", "closed"]
    assert events[0]["source"]["issue"]["number"] == 2
    assert (events[2]["created_at"], events[2]["commit_id"]) == ("2026-01-31T23:59:59Z", small["squash"])


def test_an_edited_issue_shows_its_newest_body_and_all_versions(small, tell, caller):
    edits = [{"edited_at": "2026-02-02T00:00:00Z", "body": "Use a dict."}]
    issue = {"number": 7, "title": "Slow", "body": "Why?", "created_at": "2025-06-01T00:00:00Z", "edits": edits}
    tell({"ada/engine": {"issues": [issue]}})
    found = caller().data(
        """{ repository(owner: "ada", name: "engine") { issueOrPullRequest(number: 7) {
        ... on Issue { body lastEditedAt userContentEdits(first: 5) { totalCount nodes { editedAt diff } } } } } }"""
    )["repository"]["issueOrPullRequest"]
    assert (found["body"], found["lastEditedAt"]) == ("Use a dict.", "2026-02-02T00:00:00Z")
    assert found["userContentEdits"]["nodes"] == [
        {"editedAt": "2026-02-02T00:00:00Z", "diff": "Use a dict."},
        {"editedAt": "2025-06-01T00:00:00Z", "diff": "Why?"},
    ]


def test_a_pull_request_without_a_commit_is_refused(small, tell, caller):
    tell({"ada/engine": {"pull_requests": [{"number": 50, "merge_commit_sha": "0" * 40}]}})
    with pytest.raises(ConfigurationError, match="ada/engine#50"):
        caller().query('{ repository(owner: "ada", name: "engine") { pullRequest(number: 50) { title } } }')


def test_a_side_file_about_a_repository_that_is_not_there_is_refused(small, tell, folder):
    tell({"ada/loom": {}})
    with pytest.raises(ConfigurationError, match="ada/loom"):
        app(folder)


def test_a_malformed_side_file_is_refused(small, folder):
    (folder / "sandbox.json").write_text('{"repositories": {"ada/engine": {"starz": 3}}}')
    with pytest.raises(ConfigurationError, match="malformed"):
        app(folder)


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="not a folder"):
        app(tmp_path / "nowhere")
