"""Git repositories of a test: bare ones, written at once by `git fast-import`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ADA = "Ada Byron <12+ada@users.noreply.github.com>"
GITHUB = "GitHub <noreply@github.com>"
MOMENT = "2026-02-03T04:05:06Z"
FILE, PROGRAM, LINK, MODULE = "100644", "100755", "120000", "160000"

Moment = str | float | datetime
"""In UTC unless it says otherwise; a number is seconds since 1970."""
Content = str | bytes | tuple[str, bytes]
"""Content of a file; or its mode and content: a link its target, a submodule its commit."""
Files = Mapping[str, Content] | Mapping[bytes, Content]


def git_bytes(folder: Path, *arguments: str, stdin: bytes | None = None, **environment: str) -> bytes:
    """Output of git in *folder*, without this machine's configuration."""
    known = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=known | environment, input=stdin, capture_output=True, check=True
    ).stdout


def git(folder: Path, *arguments: str, stdin: bytes | None = None, **environment: str) -> str:
    """The same as text, without space around it."""
    return git_bytes(folder, *arguments, stdin=stdin, **environment).decode("utf-8", "replace").strip()


def seconds(moment: Moment) -> int:
    """*moment* as git stores it."""
    if isinstance(moment, int | float):
        return int(moment)
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


@dataclass
class BareRepository:
    """A bare repository that grows commit by commit; commits are named by marks until it is written."""

    path: Path
    stream: list[bytes] = field(default_factory=list)
    count: int = 0

    def commit(
        self,
        message: str,
        moment: Moment = MOMENT,
        *parents: int | str,
        files: Files | None = None,
        author: str = ADA,
        committer: str = "",
        authored: Moment | None = None,
        whole: bool = False,
    ) -> int:
        """A commit on top of *parents*, which are marks, or hashes of what was written before; returns its mark.

        Its *files* (by default one that is named after it) come on top of its first parent's, or are all if *whole*.
        """
        self.count += 1
        self.stream += [
            b"" if parents else b"reset refs/heads/main\n",
            b"commit refs/heads/main\nmark :%d\n" % self.count,
            f"author {author} {seconds(moment if authored is None else authored)} +0000\n".encode(),
            f"committer {committer or author} {seconds(moment)} +0000\n".encode(),
            _data(message.encode()),
        ]
        for index, parent in enumerate(parents):
            name = f":{parent}" if isinstance(parent, int) else parent
            self.stream.append(f"{'merge' if index else 'from'} {name}\n".encode())
        if whole:
            self.stream.append(b"deleteall\n")
        for path, entry in ({f"file{self.count}.txt": f"{message}\n"} if files is None else files).items():
            self.stream.append(_change(path, entry))
        return self.count

    def add(self, message: str, moment: Moment = MOMENT, files: Files | None = None, author: str = ADA) -> int:
        """A commit on top of the one before; returns its mark."""
        return self.commit(message, moment, *([self.count] if self.count else []), files=files, author=author)

    def ref(self, name: str, mark: int) -> None:
        """Point a ref at a commit."""
        self.stream.append(f"reset {name}\nfrom :{mark}\n\n".encode())

    def write(self, main: int | None = None) -> dict[int, str]:
        """Write it all, with `main` at *main*, by default the last commit; hashes by mark."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            git(self.path.parent, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(self.path))
        if not self.count:
            return {}
        self.ref("refs/heads/main", main or self.count)
        marks = self.path / "marks"
        # a pack, so that a large world is few files
        options = ("--quiet", "--force", f"--export-marks={marks}")
        self.git("-c", "fastimport.unpackLimit=0", "fast-import", *options, stdin=b"".join(self.stream))
        rows = [line.split() for line in marks.read_text().splitlines()]
        marks.unlink()
        return {int(mark.removeprefix(":")): sha for mark, sha in rows}

    def git(self, *arguments: str, stdin: bytes | None = None, **environment: str) -> str:
        return git(self.path, *arguments, stdin=stdin, **environment)


def patch_between(folder: Path, before: Files, after: Files, *, renames: str = "--no-renames") -> bytes:
    """Git's patch that leads from the files *before* to the files *after*; a repository is made in *folder*."""
    repository = BareRepository(folder)
    first = repository.commit("Before", files=before)
    second = repository.commit("After", MOMENT, first, files=after, whole=True)
    shas = repository.write()
    return git_bytes(folder, "diff", renames, "--binary", shas[first], shas[second])


def lose_object(repository: Path, sha: str) -> None:
    """Remove one object from the bare *repository*, which is unpacked."""
    for pack in (repository / "objects" / "pack").glob("*.pack"):
        content = pack.read_bytes()
        for file in list(pack.parent.glob(f"{pack.stem}.*")):
            file.unlink()
        git(repository, "unpack-objects", "-q", stdin=content)
    (repository / "objects" / sha[:2] / sha[2:]).unlink()


def _change(path: str | bytes, entry: Content) -> bytes:
    mode, content = entry if isinstance(entry, tuple) else (FILE, entry)
    content = content.encode() if isinstance(content, str) else content
    # quoted byte by byte, so that any name will do
    quoted = b'"%b"' % b"".join(b"\\%03o" % byte for byte in os.fsencode(path))
    if mode == MODULE:
        return b"M %b %b %b\n" % (mode.encode(), content, quoted)
    return b"M %b inline %b\n%b" % (mode.encode(), quoted, _data(content))


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)
