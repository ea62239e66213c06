from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError, RemoteEntryNotFoundError, RepositoryNotFoundError

from formulacode_dagster.releasing.dataset.hub_client import hub_api
from sandbox.hub import app
from sandbox.server import serving

DATA = b"PAR1" + bytes(range(256)) * 9000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(app(tmp_path_factory.mktemp("hub"))) as url:
        yield url


@pytest.fixture
def api(url: str) -> HfApi:
    return hub_api(url, "any token")


@pytest.fixture
def name(api: HfApi) -> str:
    name = f"acme/{uuid4().hex}"
    api.create_repo(name, repo_type="dataset")
    return name


def _commit(api: HfApi, name: str, files: dict[str, bytes], parent: str | None = None) -> str:
    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    made = api.create_commit(name, operations, commit_message="x", repo_type="dataset", parent_commit=parent)
    return str(made.oid)


def _read(api: HfApi, name: str, path: str, revision: str, folder: Path) -> bytes:
    return Path(api.hf_hub_download(name, path, repo_type="dataset", revision=revision, cache_dir=folder)).read_bytes()


def test_what_is_committed_is_listed_and_downloaded(api: HfApi, name: str, tmp_path: Path) -> None:
    sha = _commit(api, name, {"data/a.parquet": DATA, "README.md": b"---\na: 1\n---\nhello\n", "empty.txt": b""})
    files = api.list_repo_files(name, repo_type="dataset")
    assert set(files) == {".gitattributes", "README.md", "data/a.parquet", "empty.txt"}
    tree = {entry.path: entry for entry in api.list_repo_tree(name, repo_type="dataset", recursive=True)}
    assert set(tree) == {*files, "data"}
    assert _read(api, name, "data/a.parquet", sha, tmp_path) == DATA
    assert _read(api, name, "README.md", "main", tmp_path) == b"---\na: 1\n---\nhello\n"
    assert _read(api, name, "empty.txt", "main", tmp_path) == b""


def test_a_parquet_file_is_uploaded_aside_once(api: HfApi, name: str, url: str) -> None:
    _commit(api, name, {"data/a.parquet": DATA + b"1"})
    puts = httpx.get(f"{url}/_sandbox/calls").json()["by_method"]["PUT"]
    _commit(api, name, {"data/b.parquet": DATA + b"1"})
    assert httpx.get(f"{url}/_sandbox/calls").json()["by_method"]["PUT"] == puts
    found = api.get_paths_info(name, ["data/b.parquet"], repo_type="dataset")[0]
    assert found.lfs.sha256 == hashlib.sha256(DATA + b"1").hexdigest()  # type: ignore[union-attr]


def test_a_tag_keeps_its_commit_when_the_branch_moves_on(api: HfApi, name: str, tmp_path: Path) -> None:
    sha = _commit(api, name, {"a.txt": b"one"})
    api.create_tag(name, tag="v@1", revision=sha, repo_type="dataset")
    later = _commit(api, name, {"a.txt": b"two"})
    refs = api.list_repo_refs(name, repo_type="dataset")
    assert [(ref.name, ref.target_commit) for ref in refs.tags] == [("v@1", sha)]
    assert [(ref.name, ref.target_commit) for ref in refs.branches] == [("main", later)]
    assert _read(api, name, "a.txt", "v@1", tmp_path) == b"one"
    assert [commit.commit_id for commit in api.list_repo_commits(name, repo_type="dataset")][:2] == [later, sha]


def test_a_tag_is_not_given_twice(api: HfApi, name: str) -> None:
    api.create_tag(name, tag="v1", repo_type="dataset")
    _commit(api, name, {"a.txt": b"one"})
    with pytest.raises(HfHubHTTPError, match="409"):
        api.create_tag(name, tag="v1", repo_type="dataset")
    assert [ref.name for ref in api.list_repo_refs(name, repo_type="dataset").tags] == ["v1"]


def test_a_commit_on_a_parent_that_is_no_longer_the_head_is_refused(api: HfApi, name: str) -> None:
    first = _commit(api, name, {"a.txt": b"one"})
    _commit(api, name, {"a.txt": b"two"}, parent=first)
    with pytest.raises(HfHubHTTPError, match="412"):
        _commit(api, name, {"a.txt": b"three"}, parent=first)


def test_files_and_folders_are_deleted(api: HfApi, name: str) -> None:
    _commit(api, name, {"a.txt": b"1", "d/b.txt": b"2", "d/c.txt": b"3"})
    api.create_commit(
        name,
        [CommitOperationDelete("a.txt"), CommitOperationDelete("d/")],
        commit_message="x",
        repo_type="dataset",
    )
    assert api.list_repo_files(name, repo_type="dataset") == [".gitattributes"]


def test_what_is_not_there_is_refused_as_the_hub_does(api: HfApi, name: str, tmp_path: Path) -> None:
    with pytest.raises(RemoteEntryNotFoundError):
        _read(api, name, "nothing", "main", tmp_path)
    with pytest.raises(RepositoryNotFoundError):
        api.list_repo_refs("acme/nothing", repo_type="dataset")
    with pytest.raises(HfHubHTTPError, match="Revision Not Found"):
        api.list_repo_tree(name, repo_type="dataset", revision="nothing").__next__()


def test_creating_twice_is_a_conflict_unless_allowed(api: HfApi, name: str) -> None:
    api.create_repo(name, repo_type="dataset", exist_ok=True)
    with pytest.raises(HfHubHTTPError, match="409"):
        api.create_repo(name, repo_type="dataset")


def test_a_card_that_is_no_yaml_is_refused(api: HfApi, name: str) -> None:
    with pytest.raises(ValueError, match="Invalid metadata"):
        _commit(api, name, {"README.md": b"---\na: [1\n---\n"})


def test_an_upload_that_is_not_what_it_says_is_not_kept(url: str) -> None:
    claimed = hashlib.sha256(b"this").hexdigest()
    assert httpx.put(f"{url}/_lfs/{claimed}", content=b"that").status_code == 400
    objects = {"objects": [{"oid": claimed, "size": 4}]}
    answer = httpx.post(
        f"{url}/datasets/acme/none.git/info/lfs/objects/batch", json=objects, headers={"Authorization": "Bearer x"}
    )
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["../escape", "/etc/passwd", "a/../../b", ""])
def test_a_path_outside_the_repository_is_refused(api: HfApi, name: str, url: str, path: str) -> None:
    lines = (
        '{"key": "header", "value": {"summary": "x"}}\n'
        f'{{"key": "file", "value": {{"path": "{path}", "content": "eA==", "encoding": "base64"}}}}\n'
    )
    answer = httpx.post(f"{url}/api/datasets/{name}/commit/main", content=lines, headers={"Authorization": "Bearer x"})
    assert answer.status_code == 400


def test_with_tokens_any_other_is_refused(tmp_path: Path) -> None:
    with serving(app(tmp_path, tokens=frozenset({"good"}))) as url:
        assert hub_api(url, "good").whoami()["name"] == "sandbox"
        for headers in ({}, {"Authorization": "Bearer bad"}, {"Authorization": "Basic good"}):
            assert httpx.get(f"{url}/api/whoami-v2", headers=headers).status_code == 401
            assert httpx.post(f"{url}/api/repos/create", headers=headers, json={}).status_code == 401
