"""Writes a history into a new bare git repository. Its SHAs depend only on the history.

Neither git's configuration nor its version, nor locale, time zone or umask of this machine have a part in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.sources.git.command import GitError, git

from .definitions import Person
from .edits import Tree
from .history import History

SECONDS = 60
_SERVE_LIKE_GITHUB = "[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n"


def write_repository(folder: Path, history: History, *, default_branch: str) -> dict[int, str]:
    """Make *folder* a bare repository of *history*; return the SHA behind each mark.

    Raises ConfigurationError when this machine has no git, OutsideSystemError when git fails.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    arguments = ["--quiet", "--bare", "--template=", "--object-format=sha1", f"--initial-branch={default_branch}"]
    _git("init", *arguments, str(folder))
    with (folder / "config").open("a", encoding="ascii") as config:
        config.write(_SERVE_LIKE_GITHUB)
    marks = folder / "marks"
    options = ["--quiet", "--done", "--date-format=raw", f"--export-marks={marks}"]
    stream = b"".join(_stream(history, default_branch))
    _git("-c", "fastimport.unpackLimit=0", "fast-import", *options, repository=folder, stdin=stream)
    lines = marks.read_text(encoding="ascii").splitlines()
    marks.unlink()
    return {int(mark.removeprefix(":")): sha for mark, sha in (line.split() for line in lines)}


def _stream(history: History, default_branch: str) -> Iterator[bytes]:
    by_mark = {commit.mark: commit for commit in history.commits}
    for commit in history.commits:
        # A single ref: each commit names its parents, and the refs are set at the end.
        yield f"commit refs/heads/{default_branch}\nmark :{commit.mark}\n".encode()
        yield _signature("author", commit.author, commit.authored)
        yield _signature("committer", commit.committer, commit.committed)
        yield _data(commit.message.encode())
        if commit.parents:
            first, *others = commit.parents
            yield f"from :{first}\n".encode()
            yield from (f"merge :{other}\n".encode() for other in others)
            yield from _changes(by_mark[first].tree, commit.tree)
        else:
            yield from _changes({}, commit.tree)
    yield _ref(f"refs/heads/{default_branch}", history.tip)
    for landed in history.landed:
        yield _ref(f"refs/pull/{landed.pull_request.number}/head", landed.head)
    yield b"done\n"


def _ref(name: str, mark: int) -> bytes:
    return f"reset {name}\nfrom :{mark}\n\n".encode()


def _changes(before: Tree, after: Tree) -> Iterator[bytes]:
    for path in sorted(before.keys() - after.keys()):
        yield f"D {path}\n".encode()
    for path in sorted(after):
        if before.get(path) != after[path]:
            yield f"M 100644 inline {path}\n".encode() + _data(after[path])


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _signature(role: str, person: Person, moment: datetime) -> bytes:
    return f"{role} {person.name} <{person.email}> {int(moment.timestamp())} {moment:%z}\n".encode()


def _git(*arguments: str, repository: Path | None = None, stdin: bytes | None = None) -> None:
    try:
        git(repository, *arguments, stdin=stdin, extra={"GIT_DEFAULT_REF_FORMAT": "files"}, seconds=SECONDS)
    except GitError as error:
        raise OutsideSystemError(
            "git", f"git {arguments[0]} failed while the samples were written", why=error.stderr
        ) from error
