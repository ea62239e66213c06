"""One repository's history on this machine, read without a checkout."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .blobs import fetch_missing, is_filtered
from .command import GitError, git
from .damage import BROKEN_MARK
from .faults import Fault, fault_of, refused_object, translate
from .missing_files import files_missing, require_files
from .objects import Commit, ObjectReader, tree_entries
from .use import Hold

_NOTHING_MATCHED = 1


class Mirror:
    """A bare repository; safe to share between threads. Close it, or use it as a context manager.

    With *hold* it is not evicted before it is closed or garbage collected.

    Any sign of damage raises ItemFailure `mirror_broken`, and the next `MirrorCache.ensure` rebuilds the mirror. Paths
    are text; bytes that are not UTF-8 become surrogates, as with `os.fsdecode`.
    """

    def __init__(self, repository: str, path: Path, hold: Hold | None = None) -> None:
        self.repository = repository
        self.path = path
        self._hold = hold
        self._objects = ObjectReader(path)
        # A filtered mirror would ask the host for a commit it lacks, with all the history behind it.
        self._here = ObjectReader(path, here_only=True) if is_filtered(path) else self._objects
        self._commits: dict[str, Commit] = {}

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the reading process, and let the mirror be evicted from now on."""
        self._objects.close()
        self._here.close()
        if self._hold is not None:
            self._hold.release()

    def commit(self, sha: str) -> Commit:
        """The commit *sha*; raises ItemFailure `commit_missing`."""
        cached = self._commits.get(sha)
        if cached is not None:
            return cached
        commit = self._read(self._here, sha.encode())
        if commit is None or commit[0] != "commit":
            raise ItemFailure(
                FailureKind.COMMIT_MISSING,
                f"commit {sha} is not in the mirror of {self.repository}",
                remedy="It was not fetched, or the server does not have it any more",
            )
        return self._commits.setdefault(sha, Commit.read(sha, commit[1]))

    def has(self, sha: str) -> bool:
        """Return True if the mirror has the commit *sha*."""
        try:
            self.commit(sha)
        except ItemFailure as failure:
            if failure.kind == FailureKind.COMMIT_MISSING:
                return False
            raise
        return True

    def read(self, commit: str, path: str) -> bytes | None:
        """Return the content of the file *path* at *commit* (of a link, its target); None if there is no such file."""
        tree = self.commit(commit).tree
        raw = _bytes(path)
        if b"\n" in raw:
            line = self._git("ls-tree", "-z", tree, "--", path)
            blob = self._get(line.split()[2]) if line else None
        else:
            blob = self._get(tree.encode() + b":" + raw)
        if blob is None and self._lists(tree, raw):
            raise self._failure(GitError(("cat-file",), -1, f"missing blob object of {path} at {commit}"))
        return blob[1] if blob is not None and blob[0] == "blob" else None

    def list(self, commit: str, folder: str = "") -> list[str]:
        """Paths of all files at *commit* below *folder*, sorted; submodules are not files."""
        below = [f"{folder.strip('/')}/"] if folder.strip("./") else []
        out = self._git("ls-tree", "-r", "-z", self.commit(commit).tree, "--", *below)
        entries = (entry.partition(b"\t") for entry in out.split(b"\0") if entry)
        return sorted(os.fsdecode(path) for facts, _, path in entries if b" commit " not in facts)

    def words_at(self, commit: str, words: Collection[str]) -> frozenset[str]:
        """Return those of *words* that occur as whole words in a text file at *commit*."""
        self.complete(commit)
        wanted = [part for word in sorted(words) for part in ("-e", word)]
        if not wanted:
            return frozenset()
        options = ("-I", "-h", "-o", "-w", "-F", "--no-color", *wanted)
        try:
            out = git(self.path, "grep", *options, self.commit(commit).tree)
        except GitError as error:
            # files that nothing reads may be absent
            if error.code != _NOTHING_MATCHED or (error.stderr and not self.require(commit)):
                raise self._failure(error) from error
            return frozenset()
        return frozenset(out.decode(errors="replace").split())

    def submodules(self, commit: str) -> dict[str, str]:
        """Path of each submodule at *commit* → the commit it is at."""
        out = self._git("ls-tree", "-r", "-z", self.commit(commit).tree)
        entries = (entry.partition(b"\t") for entry in out.split(b"\0") if entry)
        links = ((os.fsdecode(path), facts.split()) for facts, _, path in entries)
        return {path: facts[2].decode() for path, facts in links if facts[1] == b"commit"}

    def later(self, commit: str, *patterns: str) -> tuple[str, ...]:
        """Commits of the default branch after *commit* that change a file of these glob *patterns*, oldest first."""
        self.commit(commit)
        specs = [f":(glob){pattern}" for pattern in patterns]
        options = ("--first-parent", "--reverse")
        return tuple(self._git("rev-list", *options, f"{commit}..HEAD", "--", *specs, globs=True).decode().split())

    def earlier(self, commit: str, *patterns: str, most: int) -> tuple[str, ...]:
        """The last *most* commits of *commit*'s first-parent history that change a file of these, newest first."""
        self.commit(commit)
        specs = [f":(glob){pattern}" for pattern in patterns]
        options = ("--first-parent", f"--max-count={most}")
        return tuple(self._git("rev-list", *options, commit, "--", *specs, globs=True).decode().split())

    def resolve(self, revision: str) -> str:
        """The commit that *revision* names: a hash, a part of one, a branch, a tag.

        Raises ItemFailure `commit_missing` if it names none.
        """
        try:
            named = git(self.path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        except GitError as error:
            if error.code == _NOTHING_MATCHED and not error.stderr:
                raise ItemFailure(
                    FailureKind.COMMIT_MISSING,
                    f"{revision} names no commit in the mirror of {self.repository}",
                    remedy="Name a hash, a branch or a tag that its host has",
                ) from error
            raise self._failure(error) from error
        # git older than 2.43 repeats the end-of-options marker
        return named.decode().split()[-1]

    def between(self, first: str, last: str) -> tuple[str, ...]:
        """Return the commits of *last*'s first-parent history that *first* lacks, oldest first; asv's `first..last`."""
        for sha in (first, last):
            self.commit(sha)
        return tuple(self._git("rev-list", "--first-parent", "--reverse", f"{first}..{last}").decode().split())

    def anchor(self, base_sha: str, before: datetime) -> str:
        """The last commit of *base_sha*'s first-parent history committed before *before*; the first one if none was.

        Raises ItemFailure `commit_missing`.
        """
        self.commit(base_sha)
        until = int(before.astimezone(UTC).timestamp()) - 1
        commits = self._git("rev-list", "--first-parent", "-1", f"--until={until}", base_sha).split()
        if commits:
            return commits[0].decode()
        return self._git("rev-list", "--first-parent", "--max-parents=0", base_sha).split()[-1].decode()

    def own_commits(self, head: str, landed: str) -> tuple[Commit, ...]:
        """Return the commits of *head* that *landed* lacks, without merges: the commits of the branch."""
        out = self._git("rev-list", "--no-merges", head, f"^{landed}")
        return tuple(self.commit(sha.decode()) for sha in out.split())

    def distance(self, base: str, tip: str) -> int:
        """Return the number of commits that *tip* has and *base* lacks."""
        return int(self._git("rev-list", "--count", tip, f"^{base}"))

    def files_between(self, base: str, tip: str) -> int:
        """Return the number of files that differ, counting a rename once, as GitHub does."""
        return len(self._git("diff-tree", "-r", "-M", "--name-only", "-z", base, tip).split(b"\0")) - 1

    def fetch_between(self, trees: Iterable[tuple[str, str]]) -> None:
        """Fetch in one go the files in which each pair of *trees* differs; nothing to do in a mirror that is whole."""
        if not is_filtered(self.path):
            return
        pairs = "".join(f"{before} {after}\n" for before, after in trees)
        out = self._git("diff-tree", "--stdin", "-r", stdin=pairs.encode())
        entries = (line[1:].split(b" ", 4) for line in out.splitlines() if line.startswith(b":"))
        sides = (side for entry in entries for side in zip(entry[:2], entry[2:4], strict=True))
        self._fetch_blobs({sha.decode() for mode, sha in sides if mode != b"160000"})

    def complete(self, *commits: str, folder: str = "") -> None:
        """Fetch in one go every file at *commits* below *folder* that a filtered mirror lacks."""
        trees = [self.commit(commit).tree for commit in commits]
        if not is_filtered(self.path):
            return
        below = [f"{folder.strip('/')}/"] if folder.strip("./") else []
        listed = (self._git("ls-tree", "-r", "-z", tree, "--", *below) for tree in trees)
        entries = (entry.split(maxsplit=3) for out in listed for entry in out.split(b"\0") if entry)
        commit = commits[0] if len(commits) == 1 else ""
        self._fetch_blobs({entry[2].decode() for entry in entries if entry[1] == b"blob"}, commit)

    def require(self, *commits: str) -> tuple[str, ...]:
        """Return the files of *commits* that a mirror lacks and nothing reads; raises as `require_files`."""
        for commit in commits:
            self.commit(commit)
        return require_files(self.repository, self.path, *commits)

    def _lists(self, tree: str, path: bytes) -> bool:
        """Return True if *tree* has a file *path*: a file without its content is damage, not an absent file."""
        folder, _, name = path.rpartition(b"/")
        listing = self._get(tree.encode() + b":" + folder)
        if listing is None or listing[0] != "tree":
            return False
        return any(mode != b"160000" and entry == name for mode, entry, _ in tree_entries(listing[1]))

    def _fetch_blobs(self, wanted: set[str], commit: str = "") -> None:
        try:
            fetch_missing(self.path, wanted)
        except GitError as error:
            if refused := refused_object(error):
                raise files_missing(self.repository, self.path, [refused], commit) from error
            raise translate(error, "fetch files of", self.repository) from error

    def _get(self, name: bytes) -> tuple[str, bytes] | None:
        return self._read(self._objects, name)

    def _read(self, objects: ObjectReader, name: bytes) -> tuple[str, bytes] | None:
        try:
            return objects.get(name)
        except GitError as error:
            raise self._failure(error) from error

    def _git(self, *arguments: str, stdin: bytes | None = None, globs: bool = False) -> bytes:
        try:
            return git(self.path, *arguments, stdin=stdin, extra={"GIT_LITERAL_PATHSPECS": "0"} if globs else None)
        except GitError as error:
            raise self._failure(error) from error

    def _failure(self, error: GitError) -> Exception:
        if fault_of(error) is Fault.BROKEN and self.path.exists():
            (self.path / BROKEN_MARK).touch()
        return translate(error, "read", self.repository)


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
