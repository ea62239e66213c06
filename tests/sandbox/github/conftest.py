"""Small bare repositories with fixed authors and dates, and a client of the app over them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from sandbox.github import Limits, app

TOKEN = "one"
GITHUB = "GitHub <noreply@github.com>"
ADA = "Ada Byron <12+ada@users.noreply.github.com>"


def seconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp())


@dataclass
class Repository:
    """A bare repository that grows commit by commit; commits are named by marks until it is written."""

    path: Path
    stream: list[bytes] = field(default_factory=list)
    count: int = 0

    def commit(
        self,
        message: str,
        moment: str,
        *parents: int,
        files: dict[str, str] | None = None,
        author: str = ADA,
        committer: str | None = None,
        authored: str = "",
    ) -> int:
        """A commit with *files* (by default one that is named after it) on top of its first parent's."""
        self.count += 1
        data = message.encode()
        lines = [
            b"commit refs/heads/side",
            f"mark :{self.count}".encode(),
            f"author {author} {seconds(authored or moment)} +0000".encode(),
            f"committer {committer or author} {seconds(moment)} +0000".encode(),
            b"data %d\n%s" % (len(data), data),
        ]
        lines += [f"{'from' if index == 0 else 'merge'} :{parent}".encode() for index, parent in enumerate(parents)]
        if not parents:
            self.stream.append(b"reset refs/heads/side\n")
        for name, text in ({f"file{self.count}.txt": f"{message}\n"} if files is None else files).items():
            body = text.encode()
            lines.append(f"M 100644 inline {name}".encode() + b"\ndata %d\n%s" % (len(body), body))
        self.stream.append(b"\n".join(lines) + b"\n")
        return self.count

    def ref(self, name: str, mark: int) -> None:
        """Point a ref at a commit."""
        self.stream.append(f"reset {name}\nfrom :{mark}\n\n".encode())

    def write(self, main: int | None) -> dict[int, str]:
        """Write it all, with `main` at *main*; hashes by mark."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.path))
        if main is None:
            return {}
        self.ref("refs/heads/main", main)
        marks = self.path / "marks"
        self.git("fast-import", "--quiet", "--force", f"--export-marks={marks}", stdin=b"".join(self.stream))
        self.git("update-ref", "-d", "refs/heads/side")
        rows = (line.split() for line in marks.read_text().splitlines())
        return {int(mark.removeprefix(":")): sha for mark, sha in rows}

    def git(self, *arguments: str, stdin: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path.parent if arguments[0] == "init" else self.path), *arguments],
            input=stdin,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., Repository]:
    """A repository of the served folder, by name."""
    return lambda name="ada/engine": Repository(tmp_path / "served" / f"{name}.git")


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


@dataclass
class Caller:
    """Asks the app, with a token."""

    http: TestClient

    def query(self, text: str, **variables: Any) -> dict[str, Any]:
        """The whole answer of a GraphQL query."""
        answer = self.http.post("/graphql", json={"query": text, "variables": variables})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def data(self, text: str, **variables: Any) -> dict[str, Any]:
        """The data of a GraphQL query that must succeed."""
        answer = self.query(text, **variables)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def get(self, path: str, accept: str = "application/json", **parameters: Any) -> Any:
        return self.http.get(path, params=parameters or None, headers={"accept": accept}, follow_redirects=False)

    @property
    def books(self) -> dict[str, Any]:
        return self.http.get("/_sandbox/calls").json()


@pytest.fixture
def caller(folder: Path) -> Callable[..., Caller]:
    """A caller of the app over the folder; keywords go to the app."""

    def make(token: str | None = TOKEN, **settings: Any) -> Caller:
        settings.setdefault("limits", Limits.none())
        headers = {"authorization": f"bearer {token}"} if token else {}
        return Caller(TestClient(app(folder, **settings), headers=headers))

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
