"""Small bare repositories with fixed authors and dates, and a client of the app over them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from sandbox.github import app
from sandbox.github.served_folder import FRESH_SECONDS, ServedFolder
from tests.support.caller import Caller
from tests.support.git_world import GITHUB, BareRepository
from tests.support.github import UNLIMITED

TOKEN = "one"


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., BareRepository]:
    """A repository of the served folder, by name."""
    return lambda name="ada/engine": BareRepository(tmp_path / "served" / f"{name}.git")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that is served."""
    path = tmp_path / "served"
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture
def tell(folder: Path) -> Callable[[dict[str, Any]], None]:
    """Write the side file: facts by repository name."""
    return lambda facts: (folder / "sandbox.json").write_text(json.dumps({"repositories": facts})) and None


@pytest.fixture
def caller(folder: Path) -> Callable[..., Caller]:
    """A caller of the app over the folder; keywords go to the app."""

    def make(token: str | None = TOKEN, *, fresh_seconds: float = FRESH_SECONDS, **settings: Any) -> Caller:
        settings.setdefault("limits", UNLIMITED)
        headers = {"authorization": f"bearer {token}"} if token else {}
        return Caller(TestClient(app(ServedFolder(folder, fresh_seconds), **settings), headers=headers))

    return make


@pytest.fixture
def small(repository) -> dict[str, str]:
    """`ada/engine`: a merge (#1, two commits), a squash (#2), a pushed commit, an open (#3) and a closed one (#4)."""
    made = repository()
    root = made.commit("Begin", "2025-12-01T10:00:00")
    first = made.commit("Try", "2025-12-20T10:00:00", root, author="Bob <bob@example.org>")
    second = made.commit("Try again", "2025-12-21T10:00:00", first)
    between = made.commit("Pushed (see #1)", "2025-12-30T10:00:00", root)
    merge = made.commit(
        "Merge pull request #1 from bob/fast\n\nMake it fast\n\nIt was slow.",
        "2026-01-01T00:00:00",
        between,
        second,
        files={"file2.txt": "Try\n", "file3.txt": "Try again\n"},
        committer=GITHUB,
    )
    squash = made.commit("Cache it (#2)\n\nFixes #7", "2026-01-31T23:59:59", merge, committer=GITHUB)
    opened = made.commit("Perhaps", "2026-02-01T00:00:00", merge)
    closed = made.commit("Never", "2026-01-03T00:00:00", root)
    made.ref("refs/pull/1/head", second)
    made.ref("refs/pull/3/head", opened)
    made.ref("refs/pull/3/merge", opened)
    made.ref("refs/pull/4/head", closed)
    shas = made.write(squash)
    names = {
        "root": root,
        "first": first,
        "second": second,
        "between": between,
        "merge": merge,
        "squash": squash,
        "open": opened,
    }
    return {name: shas[mark] for name, mark in names.items()}
