"""GraphQL: nodes, names, pages, errors, prices."""

from __future__ import annotations

import pytest

from sandbox.github import Limits
from sandbox.github.node_ids import Kind, node_id, read_node_id, thread_id, thread_number

REPOSITORY = """query($owner: String!, $name: String!, $follow: Boolean = true) {
  repository(owner: $owner, name: $name, followRenames: $follow) { id databaseId nameWithOwner } }"""


def pages(caller, query: str, path: list[str], **variables) -> list:
    nodes, after = [], None
    while True:
        found = caller.data(query, after=after, **variables)
        for name in path:
            found = found[name]
        nodes += found["nodes"]
        if not found["pageInfo"]["hasNextPage"]:
            assert len(nodes) == found["totalCount"]
            return nodes
        after = found["pageInfo"]["endCursor"]


def test_node_ids_are_stable_opaque_and_reversible():
    assert node_id(Kind.REPOSITORY, 820804619) == "R_kgDOMOx8Cw"
    found = read_node_id(node_id(Kind.PULL_REQUEST, 5, 2**32 - 1))
    assert found is not None
    assert (found.kind, found.numbers) == (Kind.PULL_REQUEST, (5, 2**32 - 1))
    assert [read_node_id(text) for text in ("", "R_", "R_kgDO", "X_kgDOMOx8Cw", "R_%%%", "kgDOMOx8Cw")] == [None] * 6
    assert all(thread_number(7, thread_id(7, number)) == number for number in (1, 100, 99_999))


def test_a_renamed_repository_is_found_by_every_name_unless_told_otherwise(small, tell, caller):
    tell({"ada/engine": {"former_names": ["bob/engine", "ada/machine"]}})
    by_name = [
        caller().data(REPOSITORY, owner=owner, name=name)["repository"]
        for owner, name in (("ada", "engine"), ("bob", "engine"), ("Ada", "MACHINE"))
    ]
    assert by_name[0] == by_name[1] == by_name[2]
    assert by_name[0]["nameWithOwner"] == "ada/engine"
    answer = caller().query(REPOSITORY, owner="ada", name="machine", follow=False)
    assert answer["data"] == {"repository": None}
    assert answer["errors"][0]["type"] == "NOT_FOUND"


def test_the_id_survives_a_rename(small, tell, caller, folder):
    before = caller().data(REPOSITORY, owner="ada", name="engine")["repository"]["id"]
    (folder / "ada" / "engine.git").rename(folder / "ada" / "loom.git")
    tell({"ada/loom": {"former_names": ["ada/engine"]}})
    assert caller().data(REPOSITORY, owner="ada", name="engine")["repository"] == {
        "id": before,
        "databaseId": caller().get("/repos/ada/loom").json()["id"],
        "nameWithOwner": "ada/loom",
    }


def test_what_is_missing_is_null_with_an_error_at_its_path_beside_the_data(small, caller):
    known = caller().data(REPOSITORY, owner="ada", name="engine")["repository"]["id"]
    answer = caller().query("query($ids: [ID!]!) { nodes(ids: $ids) { id } rateLimit { cost } }", ids=["R_x", known])
    assert answer["data"] == {"nodes": [None, {"id": known}], "rateLimit": {"cost": 1}}
    assert [(error["type"], error["path"]) for error in answer["errors"]] == [("NOT_FOUND", ["nodes", 0])]
    answer = caller().query('{ repository(owner: "ada", name: "engine") { id pullRequest(number: 99) { id } } }')
    assert answer["data"]["repository"] == {"id": known, "pullRequest": None}
    assert answer["errors"][0]["path"] == ["repository", "pullRequest"]


def test_gone_and_private_repositories(small, repository, tell, caller):
    from sandbox.github import Account

    repository("eve/loom").write(None)
    tell({"ada/engine": {"is_gone": True}, "eve/loom": {"is_private": True}})
    tokens = {"one": Account(login="ada"), "two": Account(login="bob", scopes=())}
    assert caller().query(REPOSITORY, owner="ada", name="engine")["errors"][0]["type"] == "NOT_FOUND"
    assert caller().get("/repos/ada/engine").status_code == 404
    assert caller(tokens=tokens).data(REPOSITORY, owner="eve", name="loom")["repository"]["nameWithOwner"] == "eve/loom"
    hidden = caller("two", tokens=tokens)
    assert hidden.query(REPOSITORY, owner="eve", name="loom")["errors"][0]["type"] == "NOT_FOUND"
    assert hidden.get("/repos/eve/loom").status_code == 404


def test_an_empty_repository_says_so(repository, caller):
    repository("eve/loom").write(None)
    found = caller().data('{ repository(owner: "eve", name: "loom") { isEmpty defaultBranchRef { name } pushedAt } }')
    assert found["repository"] == {"isEmpty": True, "defaultBranchRef": None, "pushedAt": None}


def test_every_type_resolves_by_its_node_id(small, tell, caller):
    tell({"ada/engine": {"issues": [{"number": 7, "title": "Slow", "created_at": "2025-06-01T00:00:00Z"}]}})
    found = caller().data(
        """{ viewer { id } repository(owner: "ada", name: "engine") { id issue(number: 7) { id }
        pullRequest(number: 1) { id mergeCommit { id tree { id } } } object(expression: "HEAD:file1.txt") { id } } }"""
    )
    inner = found["repository"]
    ids = {
        "User": found["viewer"]["id"],
        "Repository": inner["id"],
        "Issue": inner["issue"]["id"],
        "PullRequest": inner["pullRequest"]["id"],
        "Commit": inner["pullRequest"]["mergeCommit"]["id"],
        "Tree": inner["pullRequest"]["mergeCommit"]["tree"]["id"],
        "Blob": inner["object"]["id"],
    }
    for name, one in ids.items():
        assert caller().data("query($id: ID!) { node(id: $id) { __typename id } }", id=one)["node"] == {
            "__typename": name,
            "id": one,
        }


def test_files_come_in_pages_of_a_hundred_and_are_counted_whole(repository, caller):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    files = {f"f{index:03d}.txt": f"{index}\n" for index in range(230)}
    made.write(made.commit("Many (#1)", "2026-01-02T00:00:00", root, files=files))
    query = """query($after: String) { repository(owner: "ada", name: "engine") { pullRequest(number: 1) { changedFiles
      additions files(first: 100, after: $after) { totalCount pageInfo { hasNextPage endCursor }
      nodes { path changeType additions } } } } }"""
    found = caller().data(query)["repository"]["pullRequest"]
    assert (found["changedFiles"], found["additions"], len(found["files"]["nodes"])) == (230, 230, 100)
    nodes = pages(caller(), query, ["repository", "pullRequest", "files"])
    assert [node["path"] for node in nodes] == sorted(files)


def test_a_diff_is_measured_with_renames_deletions_and_binary_files(repository, caller):
    made = repository()
    text = "".join(f"line {index}\n" for index in range(20))
    root = made.commit("Begin", "2026-01-01T00:00:00", files={"old.txt": text, "gone.txt": "x\n", "keep.txt": "a\n"})
    files = {"new.txt": text + "more\n", "keep.txt": "b\n", "image.bin": "\0\1\2"}
    tip = made.commit("Change (#1)", "2026-01-02T00:00:00", root, files=files)
    made.stream[-1] += b"D old.txt\nD gone.txt\n"
    made.write(tip)
    found = caller().data(
        """{ repository(owner: "ada", name: "engine") { pullRequest(number: 1) { changedFiles additions deletions
        files(first: 9) { nodes { path changeType } } } } }"""
    )["repository"]["pullRequest"]
    assert (found["changedFiles"], found["additions"], found["deletions"]) == (4, 2, 2)
    assert {node["path"]: node["changeType"] for node in found["files"]["nodes"]} == {
        "new.txt": "RENAMED",
        "gone.txt": "DELETED",
        "keep.txt": "MODIFIED",
        "image.bin": "ADDED",
    }


def test_pull_requests_are_listed_by_state_order_and_page(small, caller):
    query = """query($after: String, $states: [PullRequestState!]) { repository(owner: "ada", name: "engine") {
      pullRequests(first: 1, after: $after, states: $states, orderBy: {field: CREATED_AT, direction: DESC}) {
      totalCount pageInfo { hasNextPage endCursor } nodes { number } } } }"""
    path = ["repository", "pullRequests"]
    assert [node["number"] for node in pages(caller(), query, path)] == [3, 2, 4, 1]
    assert [node["number"] for node in pages(caller(), query, path, states=["MERGED"])] == [2, 1]
    last = caller().data('{ repository(owner: "ada", name: "engine") { pullRequests(last: 2) { nodes { number } } } }')
    assert [node["number"] for node in last["repository"]["pullRequests"]["nodes"]] == [2, 3]


def test_files_at_a_commit_are_read_by_expression(small, caller):
    found = caller().data(
        """{ repository(owner: "ada", name: "engine") {
        file: object(expression: "main:file1.txt") { ... on Blob { text byteSize isBinary } }
        top: object(expression: "HEAD") { ... on Commit { oid messageHeadline tree { entries { name type } }
          associatedPullRequests(first: 3) { nodes { number } } } }
        none: object(expression: "HEAD:nowhere") { id } } }"""
    )["repository"]
    assert found["file"] == {"text": "Begin\n", "byteSize": 6, "isBinary": False}
    assert found["none"] is None
    assert found["top"]["oid"] == small["squash"]
    assert found["top"]["associatedPullRequests"]["nodes"] == [{"number": 2}]
    assert {"name": "file1.txt", "type": "blob"} in found["top"]["tree"]["entries"]


def test_the_timeline_of_a_pull_request(small, tell, caller):
    comment = {"author": "eve", "body": "See #4", "created_at": "2025-12-25T00:00:00Z"}
    tell({"ada/engine": {"pull_requests": [{"number": 1, "comments": [comment]}]}})
    query = """query($number: Int!, $types: [PullRequestTimelineItemsItemType!]) {
      repository(owner: "ada", name: "engine") { pullRequest(number: $number) {
      timelineItems(first: 9, itemTypes: $types) { totalCount nodes { __typename
        ... on CrossReferencedEvent { source { ... on PullRequest { number } } referencedAt } } } } } }"""

    def timeline(number, types=None):
        found = caller().data(query, number=number, types=types)["repository"]["pullRequest"]["timelineItems"]
        return found["nodes"]

    assert [node["__typename"] for node in timeline(1)] == [
        "IssueComment",
        "ReferencedEvent",
        "MergedEvent",
        "ClosedEvent",
    ]
    assert [node["__typename"] for node in timeline(1, ["MERGED_EVENT"])] == ["MergedEvent"]
    assert timeline(4, ["CROSS_REFERENCED_EVENT"]) == [
        {"__typename": "CrossReferencedEvent", "source": {"number": 1}, "referencedAt": "2025-12-25T00:00:00Z"}
    ]


@pytest.mark.parametrize(
    ("query", "cost"),
    [
        ("{ viewer { login } rateLimit { cost nodeCount } }", 1),
        # The example of GitHub's documentation: 1 + 100 + 100 × 50 requests.
        (
            """{ search(query: "x", type: REPOSITORY, first: 100) { nodes { ... on Repository { name
            issues(first: 50) { nodes { title labels(first: 60) { nodes { name } } } } } } } rateLimit { cost } }""",
            51,
        ),
        (
            """{ search(query: "x", type: ISSUE, first: 100) { nodes { ... on PullRequest { commits { totalCount }
            labels(first: 30) { nodes { name } } closingIssuesReferences(first: 10) { nodes { number } } } } }
            rateLimit { cost } }""",
            2,
        ),
        # Asked twice by the same name is one connection, by another name another one.
        (
            """{ a: search(query: "x", type: ISSUE, first: 100) { nodes { ...f ...f } }
            b: search(query: "x", type: ISSUE, first: 100) { nodes { ...f } } rateLimit { cost } }
            fragment f on PullRequest { labels(first: 100) { nodes { name } } }""",
            2,
        ),
    ],
)
def test_the_price_follows_the_published_formula(small, caller, query, cost):
    asks = caller(limits=Limits())
    assert asks.data(query)["rateLimit"]["cost"] == cost
    assert asks.books["points"] == {"graphql": cost}
    assert asks.data("{ rateLimit { used remaining limit } }")["rateLimit"] == {
        "used": cost + 1,
        "remaining": 5000 - cost - 1,
        "limit": 5000,
    }


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ('{ search(query: "x", type: ISSUE) { nodes { __typename } } }', "`first` or `last`"),
        (
            '{ search(query: "x", type: ISSUE, first: 101) { nodes { __typename } } }',
            "exceeds the `first` limit of 100",
        ),
        ('{ search(query: "x", type: ISSUE, first: 1) { stars } }', "Cannot query field 'stars'"),
        ("{ viewer { login }", "Syntax Error"),
        (
            """{ search(query: "x", type: REPOSITORY, first: 100) { nodes { ... on Repository {
            issues(first: 100) { nodes { labels(first: 100) { nodes { name } } } } } } } }""",
            "exceeds the maximum limit of 500,000",
        ),
    ],
)
def test_a_query_against_the_rules_is_refused_whole_with_status_200(small, caller, query, words):
    asks = caller()
    answer = asks.query(query)
    assert "data" not in answer
    assert words in answer["errors"][0]["message"]
    assert asks.books["points"] == {}


def test_a_body_that_is_no_query_is_refused(small, caller):
    assert caller().http.post("/graphql", content=b"{").status_code == 400
    assert "query attribute" in caller().http.post("/graphql", json={}).json()["errors"][0]["message"]


def test_two_operations_need_a_name(small, caller):
    text = "query A { viewer { login } } query B { viewer { id } }"
    assert "operation name" in caller().query(text)["errors"][0]["message"]
    answer = caller().http.post("/graphql", json={"query": text, "operationName": "B"}).json()
    assert list(answer["data"]["viewer"]) == ["id"]


def test_a_page_that_is_too_heavy_is_a_502(small, caller):
    asks = caller(limits=Limits(heaviest_answer=50))
    answer = asks.http.post(
        "/graphql",
        json={
            "query": '{ search(query: "is:pr", type: ISSUE, first: 9) { nodes { ... on PullRequest { title body } } } }'
        },
    )
    assert answer.status_code == 502
    assert asks.http.post("/graphql", json={"query": "{ viewer { login } }"}).status_code == 200


def test_a_push_is_seen_without_a_restart(small, repository, caller, monkeypatch):
    from sandbox.github import library

    monkeypatch.setattr(library, "FRESH_SECONDS", 0)
    asks = caller()
    query = """{ repository(owner: "ada", name: "engine") {
      defaultBranchRef { target { oid } } pullRequests { totalCount } } }"""
    assert asks.data(query)["repository"]["pullRequests"]["totalCount"] == 4
    made = repository()
    made.git("update-ref", "refs/heads/main", small["merge"])
    assert asks.data(query)["repository"] == {
        "defaultBranchRef": {"target": {"oid": small["merge"]}},
        "pullRequests": {"totalCount": 3},
    }


def test_a_repository_that_is_added_is_seen_without_a_restart(small, repository, caller, monkeypatch):
    from sandbox.github import library

    monkeypatch.setattr(library, "FRESH_SECONDS", 0)
    asks = caller()
    assert "errors" in asks.query(REPOSITORY, owner="ada", name="loom")
    repository("ada/loom").write(None)
    assert asks.data(REPOSITORY, owner="ada", name="loom")["repository"]["nameWithOwner"] == "ada/loom"
