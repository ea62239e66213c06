"""REST endpoints."""

from __future__ import annotations

import pytest

from sandbox.github import Limits


def test_a_former_name_answers_301_and_the_id_answers_for_good(small, tell, caller):
    tell({"ada/engine": {"former_names": ["ada/machine"], "id": 77}})
    moved = caller().get("/repos/ada/machine")
    assert (moved.status_code, moved.headers["location"]) == (301, "http://testserver/repositories/77")
    deep = caller().get("/repos/ada/machine/pulls/1/files", per_page=2)
    assert deep.headers["location"] == "http://testserver/repositories/77/pulls/1/files?per_page=2"
    followed = caller().http.get("/repos/ada/machine/pulls/1", follow_redirects=True)
    assert (followed.status_code, followed.json()["title"]) == (200, "Make it fast")
    assert caller().get("/repositories/77").json()["full_name"] == "ada/engine"
    assert caller().get("/repositories/78").status_code == 404


def test_a_repository_as_json(small, tell, caller):
    tell({"ada/engine": {"stars": 5, "language": "C", "description": "Spins", "is_archived": True}})
    found = caller().get("/repos/Ada/Engine").json()
    expected = {
        "full_name": "ada/engine",
        "stargazers_count": 5,
        "language": "C",
        "description": "Spins",
        "archived": True,
        "fork": False,
        "default_branch": "main",
        "open_issues_count": 1,
        "pushed_at": "2026-01-31T23:59:59Z",
    }
    assert {name: found[name] for name in expected} == expected


def test_a_pull_request_as_json_and_diff(small, caller):
    found = caller().get("/repos/ada/engine/pulls/1").json()
    assert (found["merged"], found["merged_at"], found["state"]) == (True, "2026-01-01T00:00:00Z", "closed")
    assert (found["commits"], found["changed_files"], found["additions"]) == (2, 2, 2)
    assert (found["merge_commit_sha"], found["head"]["sha"]) == (small["merge"], small["second"])
    # As on GitHub, this is where the branch forks, not what the merge was put on.
    assert found["base"]["sha"] == small["root"] != small["between"]
    diff = caller().get("/repos/ada/engine/pulls/1", accept="application/vnd.github.diff")
    assert diff.headers["content-type"].startswith("application/vnd.github.diff")
    assert diff.text.startswith("diff --git a/file2.txt b/file2.txt")
    assert "+Try again" in diff.text
    assert caller().get("/repos/ada/engine/pulls/99").status_code == 404


def test_a_squash_whose_branch_is_gone_still_has_a_diff(small, caller):
    assert "+Cache it (#2)" in caller().get("/repos/ada/engine/pulls/2", accept="application/vnd.github.diff").text


def test_the_files_of_a_pull_request_with_patches_and_pages(small, caller):
    first = caller().get("/repos/ada/engine/pulls/1/files", per_page=1)
    (file,) = first.json()
    assert (file["filename"], file["status"], file["additions"]) == ("file2.txt", "added", 1)
    assert file["patch"] == "@@ -0,0 +1 @@\n+Try"
    assert first.links["next"]["url"] == "http://testserver/repos/ada/engine/pulls/1/files?per_page=1&page=2"
    second = caller().http.get(first.links["next"]["url"])
    assert [file["filename"] for file in second.json()] == ["file3.txt"]
    assert set(second.links) == {"prev", "first"}


@pytest.mark.slow
def test_a_diff_of_too_many_files_is_refused_and_lists_end_at_3000(repository, caller):
    made = repository()
    root = made.commit("Begin", "2026-01-01T00:00:00")
    files = {f"d{index // 100}/f{index}.txt": f"{index}\n" for index in range(3010)}
    made.write(made.commit("Many (#1)", "2026-01-02T00:00:00", root, files=files))
    refused = caller().get("/repos/ada/engine/pulls/1", accept="application/vnd.github.diff")
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (406, "too_large")
    assert caller().get("/repos/ada/engine/pulls/1").json()["changed_files"] == 3010
    # a page holds a hundred, however many are asked for
    first = caller().get("/repos/ada/engine/pulls/1/files", per_page=500)
    assert (len(first.json()), "next" in first.links) == (100, True)
    last = caller().get("/repos/ada/engine/pulls/1/files", per_page=100, page=30)
    assert len(last.json()) == 100
    assert "next" not in last.links


def test_lists_of_pull_requests(small, caller):
    def numbers(**parameters):
        return [pull["number"] for pull in caller().get("/repos/ada/engine/pulls", **parameters).json()]

    assert numbers() == [3]
    assert numbers(state="closed") == [2, 4, 1]
    assert numbers(state="all") == [3, 2, 4, 1]
    assert numbers(state="all", per_page=2, page=2) == [4, 1]


def test_the_timeline_of_an_issue(small, tell, caller):
    comment = {"author": "eve", "body": "Same here", "created_at": "2025-07-01T00:00:00Z"}
    issue = {"number": 7, "title": "Slow", "created_at": "2025-06-01T00:00:00Z", "comments": [comment]}
    tell({"ada/engine": {"issues": [issue]}})
    events = caller().get("/repos/ada/engine/issues/7/timeline").json()
    assert [event["event"] for event in events] == ["commented", "cross-referenced", "referenced", "closed"]
    assert (events[0]["body"], events[0]["user"]["login"]) == ("Same here", "eve")
    source = events[1]["source"]["issue"]
    assert (source["number"], source["state"]) == (2, "closed")
    assert source["pull_request"]["merged_at"] == "2026-01-31T23:59:59Z"
    assert [event["commit_id"] for event in events[2:]] == [small["squash"]] * 2


@pytest.fixture
def suites(repository, tell):
    """Five repositories with benchmark configurations of different sizes and places."""
    paths = {
        "ada/root": {"asv.conf.json": "{}"},
        "ada/deep": {"benchmarks/asv.conf.json": '{"project": "deep"}'},
        "bob/fork": {"asv.conf.json": "{}"},
        "bob/other": {"asv.conf.json.in": "{}", "asv.conf.jsonc": "{}", "conf.json": "{}"},
        "eve/large": {"asv.conf.json": " " * 400_000},
    }
    for name, files in paths.items():
        made = repository(name)
        made.write(made.commit("Begin", "2026-01-01T00:00:00", files=files))
    tell({"bob/fork": {"is_fork": True}, "ada/deep": {"former_names": ["ada/old"]}})


def found(caller, q: str, **settings) -> list[str]:
    answer = caller(**settings).get("/search/code", q=q, per_page=100)
    assert answer.status_code == 200, answer.text
    return sorted(f"{item['repository']['full_name']}/{item['path']}" for item in answer.json()["items"])


@pytest.mark.slow
def test_code_search_finds_names_in_default_branches(suites, caller):
    root, deep = "ada/root/asv.conf.json", "ada/deep/benchmarks/asv.conf.json"
    # A name is compared word by word, so that a longer one is found too.
    assert found(caller, "filename:asv.conf.json") == sorted([root, deep, "bob/other/asv.conf.json.in"])
    assert found(caller, "filename:asv.conf.json fork:only") == ["bob/fork/asv.conf.json"]
    assert found(caller, "filename:asv.conf.json fork:true path:/ size:0..2") == [
        root,
        "bob/fork/asv.conf.json",
        "bob/other/asv.conf.json.in",
    ]
    assert found(caller, "filename:asv.conf.json -path:/") == [deep]
    assert found(caller, "filename:asv.conf.json size:3..100") == [deep]
    assert found(caller, "filename:asv.conf.json size:>=3") == [deep]
    assert found(caller, "filename:asv.conf.jsonc") == ["bob/other/asv.conf.jsonc"]


def test_code_search_items_name_their_repository(suites, caller):
    (item,) = caller().get("/search/code", q="filename:asv.conf.json -path:/").json()["items"]
    assert (item["name"], item["path"]) == ("asv.conf.json", "benchmarks/asv.conf.json")
    repository = caller().get("/repos/ada/deep").json()
    assert item["repository"] == {name: repository[name] for name in item["repository"]}
    assert {"id", "node_id", "full_name", "fork"} <= set(item["repository"])


def test_code_search_stops_at_its_cap_and_tells_the_whole_count(suites, caller):
    answer = caller(limits=Limits(search_cap=2)).get("/search/code", q="filename:asv.conf.json", per_page=1).json()
    assert (answer["total_count"], len(answer["items"]), answer["incomplete_results"]) == (3, 1, False)
    beyond = caller(limits=Limits(search_cap=2)).get("/search/code", q="filename:asv.conf.json", per_page=1, page=3)
    assert beyond.status_code == 422


@pytest.mark.parametrize("q", ["", "size:3..5", "filename:x size:small"])
def test_code_search_needs_something_to_look_for(suites, caller, q):
    assert caller().get("/search/code", q=q).status_code == 422


def test_a_repository_that_is_gone_is_still_in_the_index(suites, tell, caller):
    tell({"ada/root": {"is_gone": True}})
    assert "ada/root/asv.conf.json" in found(caller, "filename:asv.conf.json")
    assert caller().get("/repos/ada/root").status_code == 404


def test_code_search_with_unsupported_terms_is_a_sandbox_error(suites, caller):
    with pytest.raises(NotImplementedError, match="language:python"):
        caller().get("/search/code", q="filename:asv.conf.json language:python")
