"""A small world for the sandbox GitHub, defined by its facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from .git_world import BareRepository

GitHubFolder = Callable[[Mapping[str, Any]], Path]
BEGIN = "2025-01-01T00:00:00Z"


@pytest.fixture
def github_folder(tmp_path: Path) -> GitHubFolder:
    """`github_folder({"owner/name": facts})`: a folder to serve. Each pull request of the facts has `merged_at`, and
    may have `files`: path → content after its merge; all else is as in `sandbox.json`.
    """

    def make(repositories: Mapping[str, Any]) -> Path:
        folder = tmp_path / "github"
        told = {}
        for name, facts in repositories.items():
            merged = sorted(facts.get("pull_requests", ()), key=lambda one: one["merged_at"])
            _write(folder / f"{name}.git", merged)
            kept = [{key: value for key, value in pull_request.items() if key != "files"} for pull_request in merged]
            told[name] = {**facts, "pull_requests": kept}
        (folder / "sandbox.json").write_text(json.dumps({"repositories": told}))
        return folder

    return make


def _write(path: Path, merged: list[dict[str, Any]]) -> None:
    made = BareRepository(path)
    made.add("Begin", BEGIN, {"README": "here\n"})
    for pull_request in merged:
        files = pull_request.get("files") or {f"{pull_request['number']}.py": f"x = {pull_request['number']}\n"}
        made.add(f"{pull_request['title']} (#{pull_request['number']})", pull_request["merged_at"], files)
    made.write()
