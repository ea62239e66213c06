"""Answers of the sandbox Hub, in the shapes the client reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.responses import JSONResponse

from .repository import Commit, Refs, StoredFile


def refusal(status: int, code: str, message: str) -> JSONResponse:
    """An error as the Hub words it: the client reads the headers."""
    headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}
    return JSONResponse({"error": message}, status_code=status, headers=headers)


def repository_facts(repo_id: str, sha: str, commit: Commit) -> dict[str, Any]:
    """Content for `dataset_info`."""
    return {
        "_id": sha[:24],
        "id": repo_id,
        "author": repo_id.partition("/")[0],
        "sha": sha,
        "lastModified": timestamp(commit),
        "private": False,
        "gated": False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": [],
        "siblings": [{"rfilename": path} for path in sorted(commit.files)],
    }


def tree(commit: Commit, folder: str, *, recursive: bool) -> list[dict[str, Any]]:
    """Files and folders below *folder*."""
    prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
    below = {path.removeprefix(prefix): content for path, content in commit.files.items() if path.startswith(prefix)}
    folders = {"/".join(path.split("/")[:depth]) for path in below for depth in range(1, path.count("/") + 1)}
    entries = [{"type": "directory", "path": prefix + path, "oid": "0" * 40, "size": 0} for path in folders]
    entries += [file_facts(prefix + path, content) for path, content in below.items()]
    wanted = [entry for entry in entries if recursive or "/" not in str(entry["path"]).removeprefix(prefix)]
    return sorted(wanted, key=lambda entry: str(entry["path"]))


def file_facts(path: str, file: StoredFile) -> dict[str, Any]:
    """One file of a tree."""
    facts: dict[str, Any] = {"type": "file", "path": path, "oid": file.blob_id, "size": file.size}
    if file.is_lfs:
        facts["lfs"] = {"oid": file.sha256, "size": file.size, "pointerSize": 130}
    return facts


def refs_facts(refs: Refs) -> dict[str, Any]:
    """Branches and tags."""

    def listed(kind: str, named: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
        return [{"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": sha} for name, sha in named]

    return {
        "branches": listed("heads", refs.branches.items()),
        "tags": listed("tags", refs.tags.items()),
        "converts": [],
        "pullRequests": [],
    }


def commit_facts(sha: str, commit: Commit) -> dict[str, Any]:
    """One commit of a history."""
    return {
        "id": sha,
        "title": commit.title,
        "message": commit.message,
        "date": timestamp(commit),
        "authors": [{"user": commit.author}],
    }


def timestamp(commit: Commit) -> str:
    """In the Hub's format, to the millisecond."""
    return f"{commit.date:%Y-%m-%dT%H:%M:%S}.{commit.date.microsecond // 1000:03d}Z"
