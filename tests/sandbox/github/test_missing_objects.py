"""A served folder that lacks contents: everything that can be answered is."""

from __future__ import annotations

import pytest

from tests.support.git_world import lose_object

DIFF = "application/vnd.github.diff"
SIZES = """{ repository(owner: "ada", name: "engine") {
  pullRequests(first: 10, states: MERGED, orderBy: {field: UPDATED_AT, direction: DESC}) {
    nodes { number title changedFiles } } } }"""


@pytest.fixture
def lose(folder, small, repository):
    """Remove one object, named by a revision of the merge of #1, from `ada/engine`."""

    def remove(name: str) -> None:
        bare = repository()
        sha = bare.git("rev-parse", f"{small['merge']}{name}")
        lose_object(bare.path, sha)

    return remove


def test_a_pull_request_whose_contents_are_missing_is_listed_without_their_lines(lose, caller):
    lose(":file3.txt")
    asked = caller()
    found = asked.get("/repos/ada/engine/pulls/1").json()
    assert (found["title"], found["changed_files"], found["additions"]) == ("Make it fast", 2, 1)
    first, second = asked.get("/repos/ada/engine/pulls/1/files").json()
    assert (first["filename"], first["additions"], "patch" in first) == ("file2.txt", 1, True)
    assert (second["filename"], second["status"], second["additions"], "patch" in second) == (
        "file3.txt",
        "added",
        0,
        False,
    )
    diff = asked.get("/repos/ada/engine/pulls/1", accept=DIFF)
    assert diff.status_code == 200
    assert "+Try\n" in diff.text
    assert "Binary files a/file3.txt and b/file3.txt differ" in diff.text


def test_a_month_with_missing_contents_is_counted_by_graphql_as_before(lose, caller):
    before = caller().data(SIZES)
    lose(":file3.txt")
    assert caller().data(SIZES) == before


def test_a_pull_request_whose_folder_is_missing_is_answered_and_the_others_are_as_before(lose, caller):
    whole = caller().get("/repos/ada/engine/pulls/4").json()
    lose("^{tree}")
    asked = caller()
    found = asked.get("/repos/ada/engine/pulls/1")
    assert (found.status_code, found.json()["title"], found.json()["changed_files"]) == (200, "Make it fast", 0)
    assert asked.get("/repos/ada/engine/pulls/1/files").json() == []
    assert asked.get("/repos/ada/engine/pulls/1", accept=DIFF).status_code == 200
    assert asked.get("/repos/ada/engine/pulls/4").json() == whole
    assert asked.data(SIZES)["repository"]["pullRequests"]["nodes"]
