"""GraphQL: nodes, names, pages, errors, prices."""

from __future__ import annotations

import pytest

from sandbox.github import Limits
from sandbox.github.graphql.points import points_of
from sandbox.github.node_ids import Kind, node_id, read_node_id, thread_id, thread_number

REPOSITORY = """query($owner: String!, $name: String!, $follow: Boolean = true) {
  repository(owner: $owner, name: $name, followRenames: $follow) { id databaseId nameWithOwner } }"""


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
    found = caller().data('{ repository(owner: "eve", name: "loom") { isEmpty defaultBranchRef { name } } }')
    assert found["repository"] == {"isEmpty": True, "defaultBranchRef": None}


def test_every_type_resolves_by_its_node_id(small, tell, caller):
    comment = {"author": "eve", "body": "Same here", "created_at": "2025-07-01T00:00:00Z"}
    issue = {"number": 7, "title": "Slow", "created_at": "2025-06-01T00:00:00Z", "comments": [comment]}
    tell({"ada/engine": {"issues": [issue]}})
    inner = caller().data(
        """{ repository(owner: "ada", name: "engine") { id
        issue: issueOrPullRequest(number: 7) { ... on Issue { id comments(first: 1) { nodes { id } } } }
        pullRequest(number: 1) { id } } }"""
    )["repository"]
    ids = {
        "Repository": inner["id"],
        "Issue": inner["issue"]["id"],
        "PullRequest": inner["pullRequest"]["id"],
        "IssueComment": inner["issue"]["comments"]["nodes"][0]["id"],
    }
    for name, identifier in ids.items():
        assert caller().data("query($id: ID!) { node(id: $id) { __typename id } }", id=identifier)["node"] == {
            "__typename": name,
            "id": identifier,
        }


def test_a_node_id_of_another_type_or_beyond_what_is_there_is_none(small, caller):
    repository = caller().data(REPOSITORY, owner="ada", name="engine")["repository"]["databaseId"]
    pull_request = thread_id(repository, 1)
    strangers = [
        node_id(Kind.ISSUE, repository, pull_request),
        node_id(Kind.PULL_REQUEST, repository),
        node_id(Kind.PULL_REQUEST, repository, thread_id(repository, 99)),
        node_id(Kind.COMMENT, repository, pull_request),
        node_id(Kind.COMMENT, repository, pull_request, 0),
        node_id(Kind.REPOSITORY, repository + 1),
    ]
    answer = caller().query("query($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=strangers)
    assert answer["data"] == {"nodes": [None] * len(strangers)}
    assert {error["type"] for error in answer["errors"]} == {"NOT_FOUND"}


def test_a_connection_is_read_page_by_page(small, tell, caller):
    tell({"ada/engine": {"pull_requests": [{"number": 1, "labels": ["a", "b", "c"]}]}})
    query = """query($after: String) { repository(owner: "ada", name: "engine") { pullRequest(number: 1) {
      labels(first: 2, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes { name } } } } }"""

    def page(after: str | None) -> tuple[list[str], bool, str]:
        found = caller().data(query, after=after)["repository"]["pullRequest"]["labels"]
        assert found["totalCount"] == 3
        return [node["name"] for node in found["nodes"]], *found["pageInfo"].values()

    names, more, after = page(None)
    assert (names, more) == (["a", "b"], True)
    assert page(after)[:2] == (["c"], False)
    # an unreadable cursor counts as none, as on GitHub
    assert page("soon")[:2] == page(None)[:2]


def test_changed_files_are_counted_with_renames_deletions_and_binary_files(repository, caller):
    made = repository()
    text = "".join(f"line {index}\n" for index in range(20))
    root = made.commit("Begin", "2026-01-01T00:00:00", files={"old.txt": text, "gone.txt": "x\n", "keep.txt": "a\n"})
    files = {"new.txt": text + "more\n", "keep.txt": "b\n", "image.bin": "\0\1\2"}
    tip = made.commit("Change (#1)", "2026-01-02T00:00:00", root, files=files)
    made.stream[-1] += b"D old.txt\nD gone.txt\n"
    made.write(tip)
    found = caller().data('{ repository(owner: "ada", name: "engine") { pullRequest(number: 1) { changedFiles } } }')
    assert found["repository"]["pullRequest"]["changedFiles"] == 4
    told = caller().get("/repos/ada/engine/pulls/1").json()
    assert (told["changed_files"], told["additions"], told["deletions"]) == (4, 2, 2)
    listed = caller().get("/repos/ada/engine/pulls/1/files").json()
    assert {file["filename"]: file["status"] for file in listed} == {
        "new.txt": "renamed",
        "gone.txt": "removed",
        "keep.txt": "modified",
        "image.bin": "added",
    }


def test_the_timeline_of_a_pull_request(small, tell, caller):
    comment = {"author": "eve", "body": "See #4", "created_at": "2025-12-25T00:00:00Z"}
    written = {"edited_at": "2026-01-05T00:00:00Z", "title": "Never again"}
    tell(
        {
            "ada/engine": {
                "pull_requests": [{"number": 1, "comments": [comment]}, {"number": 4, "titles": [written]}],
            }
        }
    )
    query = """query($types: [PullRequestTimelineItemsItemType!]) {
      repository(owner: "ada", name: "engine") { pullRequest(number: 4) {
      timelineItems(first: 9, itemTypes: $types) { filteredCount nodes { __typename
        ... on CrossReferencedEvent { source { ... on PullRequest { number } } createdAt } } } } } }"""

    def timeline(types=None):
        found = caller().data(query, types=types)["repository"]["pullRequest"]["timelineItems"]
        assert found["filteredCount"] == len(found["nodes"])
        return found["nodes"]

    assert [node["__typename"] for node in timeline()] == ["CrossReferencedEvent", "RenamedTitleEvent"]
    assert [node["__typename"] for node in timeline(["RENAMED_TITLE_EVENT"])] == ["RenamedTitleEvent"]
    assert timeline(["CROSS_REFERENCED_EVENT"]) == [
        {"__typename": "CrossReferencedEvent", "source": {"number": 1}, "createdAt": "2025-12-25T00:00:00Z"}
    ]


@pytest.mark.parametrize(
    ("query", "cost"),
    [
        ("{ viewer { login } rateLimit { cost } }", 1),
        (
            """{ search(query: "is:pr", type: ISSUE, first: 100) { nodes { ... on PullRequest { commits { totalCount }
            labels(first: 30) { nodes { name } } closingIssuesReferences(first: 10) { nodes { number } } } } }
            rateLimit { cost } }""",
            2,
        ),
        # Asked twice by the same name is one connection, by another name another one.
        (
            """{ a: search(query: "is:pr", type: ISSUE, first: 100) { nodes { ...f ...f } }
            b: search(query: "is:pr", type: ISSUE, first: 100) { nodes { ...f } } rateLimit { cost } }
            fragment f on PullRequest { labels(first: 100) { nodes { name } } }""",
            2,
        ),
    ],
)
def test_the_price_follows_the_published_formula(small, caller, query, cost):
    asks = caller(limits=Limits())
    assert asks.data(query)["rateLimit"]["cost"] == cost
    assert asks.books["points"] == {"graphql": cost}
    assert asks.data("{ rateLimit { remaining } }")["rateLimit"] == {"remaining": 5000 - cost - 1}


def test_the_price_of_the_example_of_github_s_documentation():
    """1 + 100 + 100 × 50 requests: docs.github.com, "Rate limits and query limits for the GraphQL API"."""
    from graphql import build_schema, parse

    schema = build_schema(
        """type Query { viewer: User }
        type User { repositories(first: Int): RepositoryConnection }
        type RepositoryConnection { nodes: [Repository] }
        type Repository { issues(first: Int): IssueConnection }
        type IssueConnection { nodes: [Issue] }
        type Issue { labels(first: Int): LabelConnection }
        type LabelConnection { nodes: [Label] }
        type Label { name: String }"""
    )
    (operation,) = parse(
        """{ viewer { repositories(first: 100) { nodes { issues(first: 50) { nodes {
        labels(first: 60) { nodes { name } } } } } } } }"""
    ).definitions
    assert points_of(schema, operation, {}, {}, largest_page=100, most_nodes=500_000) == 51


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ('{ search(query: "is:pr", type: ISSUE) { nodes { __typename } } }', "`first` or `last`"),
        (
            '{ search(query: "is:pr", type: ISSUE, first: 101) { nodes { __typename } } }',
            "exceeds the `first` limit of 100",
        ),
        ('{ search(query: "is:pr", type: ISSUE, first: 1) { stars } }', "Cannot query field 'stars'"),
        ("{ viewer { login }", "Syntax Error"),
        (
            """{ search(query: "is:pr", type: ISSUE, first: 100) { nodes { ... on PullRequest {
            closingIssuesReferences(first: 100) { nodes { comments(first: 100) { nodes { body } } } } } } } }""",
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
    text = "query A { viewer { login } } query B { rateLimit { cost } }"
    assert "operation name" in caller().query(text)["errors"][0]["message"]
    answer = caller().http.post("/graphql", json={"query": text, "operationName": "B"}).json()
    assert answer["data"] == {"rateLimit": {"cost": 1}}


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


def test_a_push_is_seen_without_a_restart(small, repository, caller):
    asks = caller(fresh_seconds=0)
    query = '{ search(query: "repo:ada/engine is:pr", type: ISSUE, first: 9) { issueCount } }'
    assert asks.data(query)["search"]["issueCount"] == 4
    made = repository()
    made.git("update-ref", "refs/heads/main", small["merge"])
    assert asks.data(query)["search"]["issueCount"] == 3


def test_a_repository_that_is_added_is_seen_without_a_restart(small, repository, caller):
    asks = caller(fresh_seconds=0)
    assert "errors" in asks.query(REPOSITORY, owner="ada", name="loom")
    repository("ada/loom").write(None)
    assert asks.data(REPOSITORY, owner="ada", name="loom")["repository"]["nameWithOwner"] == "ada/loom"
