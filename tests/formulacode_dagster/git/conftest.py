from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from formulacode_dagster.git.mirror import Mirror, MirrorCache
from formulacode_dagster.models.pull_request import MergedPullRequest

NAME = "demo/project"
START = datetime(2026, 2, 1, 12, tzinfo=UTC)


class Origin:
    """A real repository with a work tree, and the bare one that is cloned."""

    def __init__(self, folder: Path) -> None:
        self.host = folder / "host"
        self.bare = self.host / f"{NAME}.git"
        self.work = folder / "work"
        self.moment = START
        self.bare.parent.mkdir(parents=True)
        self._run(None, "init", "--quiet", "--bare", str(self.bare))
        self._run(None, "init", "--quiet", str(self.work))
        self.git("remote", "add", "origin", str(self.bare))
        self.write({"a.py": "one\ntwo\nthree\n", "b.py": "b\n", "docs/c.txt": "c\n"})
        self.commit("Start")
        self.publish()

    @property
    def url(self) -> str:
        return f"file://{self.host}"

    def _run(self, cwd: Path | None, *arguments: str, author: str = "Ann <ann@example.org>") -> str:
        name, _, mail = author.partition(" <")
        stamp = self.moment.isoformat()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": mail.rstrip(">"),
            "GIT_COMMITTER_NAME": "Web",
            "GIT_COMMITTER_EMAIL": "web@example.org",
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_DATE": stamp,
        }
        settings = ["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"]
        return subprocess.run(
            ["git", *settings, *arguments], cwd=cwd, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    def git(self, *arguments: str, author: str = "Ann <ann@example.org>") -> str:
        return self._run(self.work, *arguments, author=author)

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str, *, hours: float = 1, author: str = "Ann <ann@example.org>") -> str:
        self.moment += timedelta(hours=hours)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message, author=author)
        return self.sha()

    def sha(self, name: str = "HEAD") -> str:
        return self.git("rev-parse", name)

    def branch(self, name: str, start: str = "main") -> None:
        self.git("checkout", "--quiet", "-B", name, start)

    def publish(self, *, number: int | None = None, head: str = "") -> None:
        specs = ["+refs/heads/main:refs/heads/main"]
        if number is not None:
            specs.append(f"+{head}:refs/pull/{number}/head")
        self.git("push", "--quiet", "origin", *specs)

    def facts(self, merge: str, **known: object) -> MergedPullRequest:
        return MergedPullRequest(
            **{
                "month": "2026-02",
                "repository_id": 1,
                "repository": NAME,
                "number": 7,
                "title": "Merge pull request #1 from nowhere (#2)",
                "created_at": START,
                "merged_at": self.moment,
                "base_ref": "main",
                "head_sha": "0" * 40,
                "merge_commit_sha": merge,
                "commit_count": 1,
                "changed_files": 1,
            }
            | known
        )


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


@pytest.fixture
def cache(tmp_path: Path, origin: Origin) -> MirrorCache:
    return MirrorCache(tmp_path / "mirrors", origin.url)


@pytest.fixture
def mirror_of(cache: MirrorCache, origin: Origin):
    opened: list[Mirror] = []

    def ensure(*commits: str) -> Mirror:
        origin.publish()
        opened.append(cache.ensure(NAME, commits=commits))
        return opened[-1]

    yield ensure
    for mirror in opened:
        mirror.close()
