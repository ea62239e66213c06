"""Objects of a repository, read through one long-lived `git cat-file`."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .command import STDERR_KEPT, GitError, environment, program
from .scratch import scratch_repository

LAST_WORDS_SECONDS = 5.0
HASH_BYTES = 20


@dataclass(frozen=True)
class Commit:
    """A parsed commit object; people and message are bytes, since encodings vary."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: bytes
    committed: int
    message: bytes

    @property
    def identity(self) -> tuple[bytes, bytes]:
        """Fields that a rebase keeps: author with date, and message."""
        return self.author, self.message.strip()

    @classmethod
    def read(cls, sha: str, raw: bytes) -> Commit:
        """Parse the content of the object."""
        head, _, message = raw.partition(b"\n\n")
        tree, author, committed = "", b"", 0
        parents = []
        for line in head.split(b"\n"):
            key, _, value = line.partition(b" ")
            if key == b"tree":
                tree = value.decode()
            elif key == b"parent":
                parents.append(value.decode())
            elif key == b"author":
                author = value
            elif key == b"committer":
                committed = int(value.rsplit(b" ", 2)[-2])
        return cls(sha, tree, tuple(parents), author, committed, message)


def tree_entries(raw: bytes) -> Iterator[tuple[bytes, bytes, str]]:
    """Mode, name and id of every entry, from the content of a tree object."""
    start = 0
    while start < len(raw):
        end = raw.index(b"\0", start)
        mode, _, name = raw[start:end].partition(b" ")
        start = end + 1 + HASH_BYTES
        yield mode, name, raw[end + 1 : start].hex()


class ObjectReader:
    """`git cat-file --batch` on one repository; started at first use, shared by threads.

    With *here_only*, objects that a filtered repository lacks are not fetched. Those of more than *most* bytes are not
    read: a small pack may hold an object that fills the memory.
    """

    def __init__(self, directory: Path, *, here_only: bool = False, most: int | None = None) -> None:
        self._directory = directory
        self._most = most
        self._scratch = ExitStack() if here_only else None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def __del__(self) -> None:
        self._end()

    def get(self, name: bytes) -> tuple[str, bytes] | None:
        """Return type and content of the object *name* (without a newline); None if there is none.

        Raises GitError when the object is there and cannot be read.
        """
        with self._lock:
            process = self._process or self._start()
            assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 — pipes were asked for
            try:
                process.stdin.write(name + b"\n")
                process.stdin.flush()
                header = process.stdout.readline()
                fields = header.split()
                if not header.endswith(b"\n"):
                    raise self._died()
                if len(fields) != 3 or not fields[2].isdigit():
                    self._raise_when_damaged()
                    return None
                size = int(fields[2])
                if self._most is not None and size > self._most:
                    self._end()
                    raise GitError(("cat-file",), -1, f"{name.decode(errors='replace')} has {size} bytes")
                content = process.stdout.read(size + 1)
            except BrokenPipeError:
                raise self._died() from None
            if len(content) != size + 1:
                raise self._died()
            return fields[1].decode(), content[:-1]

    def close(self) -> None:
        """End the process; the next `get` starts another."""
        with self._lock:
            self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        directory = self._directory
        if self._scratch is not None:
            directory = self._scratch.enter_context(scratch_repository(directory))
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 — lives as long as the process that writes to it
        self._process = subprocess.Popen(
            [program(), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment() | {"GIT_DIR": str(directory)},
        )
        return self._process

    def _raise_when_damaged(self) -> None:
        # git reports a damaged object as missing, with a complaint on stderr
        complaints = self._complaints()
        if any(line.startswith(("error:", "fatal:")) for line in complaints.splitlines()):
            self._end()
            raise GitError(("cat-file",), -1, complaints)

    def _complaints(self) -> str:
        if self._stderr is None:
            return ""
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", "replace").strip()[-STDERR_KEPT:]

    def _died(self) -> GitError:
        if self._process is not None:
            try:
                self._process.wait(timeout=LAST_WORDS_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        complaints = self._complaints()
        self._end()
        return GitError(("cat-file",), -1, complaints or "git cat-file ended by itself")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
        process.kill()
        process.wait()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None
        if self._scratch is not None:
            self._scratch.close()
