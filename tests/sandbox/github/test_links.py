"""Links between issues and pull requests, in one repository and across; and who wrote what, when."""

from __future__ import annotations

import pytest

TIMELINE = """fragment end on ReferencedSubject { __typename
  ... on Issue { number repository { nameWithOwner } } ... on PullRequest { number repository { nameWithOwner } } }
query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
  issueOrPullRequest(number: $number) {
    ... on Issue { timelineItems(first: 20) { nodes { ...item } } }
    ... on PullRequest { timelineItems(first: 20) { nodes { ...entry } } } } } }
fragment item on IssueTimelineItems { __typename
  ... on CrossReferencedEvent { createdAt source { ...end } }
  ... on ConnectedEvent { createdAt source { ...end } subject { ...end } } }
fragment entry on PullRequestTimelineItems { __typename
  ... on CrossReferencedEvent { source { ...end } }
  ... on ConnectedEvent { subject { ...end } } }"""


@pytest.fixture
def two(small, repository, tell):
    """`ada/engine` and `ada/loom`, once `ada/web`, whose texts refer to each other."""
    other = repository("ada/loom")
    root = other.commit("Begin", "2025-12-01T00:00:00")
    other.write(other.commit("Follow ada/engine#7", "2025-12-02T00:00:00", root))
    written = {"author": "eve", "created_at": "2025-12-20T00:00:00Z"}
    tell(
        {
            "ada/engine": {
                "issues": [
                    {"number": 7, "title": "Slow", "body": "As ada/web#5", "created_at": "2025-06-01T00:00:00Z"},
                    {"number": 8, "title": "Odd", "created_at": "2025-06-02T00:00:00Z"},
                ],
                "pull_requests": [
                    {
                        "number": 1,
                        "body": "Resolves https://github.com/ada/loom/issues/5 and mentions #8",
                        "edits": [{"edited_at": "2026-01-05T00:00:00Z", "body": "Fixes ada/loom#5"}],
                        "comments": [
                            {**written, "body": "Hm.", "edits": [{"edited_at": "2026-01-04T00:00:00Z", "body": "#7"}]}
                        ],
                    },
                    {"number": 2, "closes": [8], "created_at": "2026-01-10T00:00:00Z"},
                ],
            },
            "ada/loom": {
                "former_names": ["ada/web"],
                "issues": [{"number": 5, "title": "There", "created_at": "2025-05-01T00:00:00Z"}],
            },
        }
    )


@pytest.fixture
def timeline(two, caller):
    def ask(owner: str, name: str, number: int) -> list[dict]:
        found = caller().data(TIMELINE, owner=owner, name=name, number=number)
        return found["repository"]["issueOrPullRequest"]["timelineItems"]["nodes"]

    return ask


def test_a_mention_in_another_repository_is_a_reference_across(timeline):
    there = timeline("ada", "loom", 5)
    assert [event["__typename"] for event in there] == ["CrossReferencedEvent"] * 2
    assert [event["source"]["number"] for event in there] == [7, 1]
    assert {event["source"]["repository"]["nameWithOwner"] for event in there} == {"ada/engine"}


def test_messages_of_commits_here_and_elsewhere_refer_to_an_issue(two, caller):
    events = caller().get("/repos/ada/engine/issues/7/timeline").json()
    commits = [event["commit_url"] for event in events if event["event"] == "referenced"]
    assert [url.partition("/repos/")[2].partition("/commits/")[0] for url in commits] == ["ada/loom", "ada/engine"]


def test_a_mention_counts_from_the_edit_that_brought_it(timeline):
    mentions = [event for event in timeline("ada", "engine", 7) if event["__typename"] == "CrossReferencedEvent"]
    assert [(mention["source"]["number"], mention["createdAt"]) for mention in mentions] == [
        (1, "2026-01-04T00:00:00Z"),
        (2, "2026-01-10T00:00:00Z"),
    ]


def test_a_link_set_by_hand_shows_on_both_sides(timeline):
    issue = [event for event in timeline("ada", "engine", 8) if event["__typename"] == "ConnectedEvent"]
    assert [(event["source"]["number"], event["subject"]["number"]) for event in issue] == [(8, 2)]
    assert issue[0]["createdAt"] == "2026-01-10T00:00:00Z"
    pull = [event for event in timeline("ada", "engine", 2) if event["__typename"] == "ConnectedEvent"]
    assert [event["subject"]["number"] for event in pull] == [8]


def test_closing_references_lead_to_other_repositories(two, caller):
    found = caller().data(
        """{ repository(owner: "ada", name: "engine") { pullRequest(number: 1) { closingIssuesReferences(first: 5) {
        totalCount nodes { number repository { nameWithOwner } } } } } }"""
    )["repository"]["pullRequest"]["closingIssuesReferences"]
    assert found == {"totalCount": 1, "nodes": [{"number": 5, "repository": {"nameWithOwner": "ada/loom"}}]}


def test_pull_requests_and_comments_show_all_versions_of_their_texts(two, caller):
    edits = "body lastEditedAt userContentEdits(first: 5) { totalCount nodes { editedAt diff } }"
    query = """{ repository(owner: "ada", name: "engine") { pullRequest(number: 1) { %s
    comments(first: 5) { nodes { id createdAt %s } } } } }"""
    found = caller().data(query % (edits, edits))["repository"]["pullRequest"]
    assert (found["body"], found["lastEditedAt"]) == ("Fixes ada/loom#5", "2026-01-05T00:00:00Z")
    assert [edit["editedAt"] for edit in found["userContentEdits"]["nodes"]] == [
        "2026-01-05T00:00:00Z",
        "2025-12-20T10:00:00Z",
    ]
    comment = found["comments"]["nodes"][0]
    assert (comment["createdAt"], comment["lastEditedAt"]) == ("2025-12-20T00:00:00Z", "2026-01-04T00:00:00Z")
    assert [edit["diff"] for edit in comment["userContentEdits"]["nodes"]] == ["#7", "Hm."]
    again = caller().data("query($id: ID!) { node(id: $id) { ... on IssueComment { body } } }", id=comment["id"])
    assert again["node"] == {"body": "#7"}


def test_a_deleted_version_keeps_its_place_without_its_text(small, tell, caller):
    gone = {"edited_at": "2026-01-01T00:00:00Z", "body": "secret", "deleted_at": "2026-01-02T00:00:00Z"}
    issue = {"number": 7, "title": "Slow", "created_at": "2025-06-01T00:00:00Z"}
    issue["edits"] = [gone, {"edited_at": "2026-01-03T00:00:00Z", "body": "clean"}]
    tell({"ada/engine": {"issues": [issue]}})
    found = caller().data(
        """{ repository(owner: "ada", name: "engine") { issueOrPullRequest(number: 7) {
        ... on Issue { userContentEdits(first: 5) { nodes { editedAt diff } } } } } }"""
    )["repository"]["issueOrPullRequest"]["userContentEdits"]["nodes"]
    assert found[1] == {"editedAt": "2026-01-01T00:00:00Z", "diff": None}
    assert [edit["diff"] for edit in found] == ["clean", None, ""]


def test_the_rest_timeline_tells_the_same(two, caller):
    events = caller().get("/repos/ada/engine/issues/8/timeline").json()
    assert [event["event"] for event in events] == ["cross-referenced", "connected", "closed"]
    assert events[0]["source"]["issue"]["number"] == 1
    there = caller().get("/repos/ada/web/issues/5/timeline")
    assert there.status_code == 301
    across = caller().get("/repos/ada/loom/issues/5/timeline").json()
    assert [event["source"]["issue"]["repository"]["full_name"] for event in across] == ["ada/engine", "ada/engine"]
    commits = caller().get("/repos/ada/engine/issues/7/timeline").json()
    referenced = next(commit for commit in commits if commit["event"] == "referenced")
    assert "/repos/ada/loom/commits/" in referenced["commit_url"]


def test_what_a_private_repository_says_is_not_seen_by_others(small, repository, tell, caller):
    from sandbox.github import Account

    other = repository("ada/secret")
    other.write(other.commit("See ada/engine#7", "2025-12-02T00:00:00"))
    issue = {"number": 7, "title": "Slow", "created_at": "2025-06-01T00:00:00Z"}
    tell({"ada/engine": {"issues": [issue]}, "ada/secret": {"is_private": True}})
    tokens = {"all": Account(login="ada"), "public": Account(login="bob", scopes=("public_repo",))}
    seen = {
        token: [
            event["event"] for event in caller(token, tokens=tokens).get("/repos/ada/engine/issues/7/timeline").json()
        ]
        for token in tokens
    }
    assert [events.count("referenced") for events in seen.values()] == [2, 1]


def test_a_changed_title_is_told_with_the_one_before(two, tell, caller):
    written = {"edited_at": "2026-01-05T00:00:00Z", "title": "Slower", "author": "eve"}
    issue = {"number": 7, "title": "Slow", "created_at": "2025-06-01T00:00:00Z", "titles": [written]}
    tell({"ada/engine": {"issues": [issue]}})
    found = caller().data(
        """{ repository(owner: "ada", name: "engine") { issueOrPullRequest(number: 7) { ... on Issue { title
        timelineItems(first: 5, itemTypes: [RENAMED_TITLE_EVENT]) { nodes { ... on RenamedTitleEvent {
        previousTitle createdAt } } } } } } }"""
    )["repository"]["issueOrPullRequest"]
    assert found["timelineItems"]["nodes"] == [{"previousTitle": "Slow", "createdAt": written["edited_at"]}]
    assert found["title"] == "Slower"
    (renamed,) = [
        event for event in caller().get("/repos/ada/engine/issues/7/timeline").json() if event["event"] == "renamed"
    ]
    assert renamed["rename"] == {"from": "Slow", "to": "Slower"}
    assert renamed["actor"]["login"] == "eve"


def test_a_transferred_issue_answers_from_where_it_is_now(two, tell, caller):
    moved = {"number": 5, "title": "There", "created_at": "2025-05-01T00:00:00Z"}
    tell({"ada/engine": {"transferred": {"9": "ada/loom#5"}}, "ada/loom": {"issues": [moved]}})
    found = caller().data(
        """{ repository(owner: "ada", name: "engine") { issueOrPullRequest(number: 9) {
        ... on Issue { number repository { nameWithOwner } } } } }"""
    )["repository"]["issueOrPullRequest"]
    assert found == {"number": 5, "repository": {"nameWithOwner": "ada/loom"}}
