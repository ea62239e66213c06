"""History for an image: bundles of the ancestors of a commit, and nothing later."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.blobs import is_filtered
from formulacode_dagster.sources.git.command import GitError, git
from formulacode_dagster.sources.git.missing_files import require_files

COMMIT_REF = "refs/formulacode/commit"
PARTIAL_REF = "refs/formulacode/partial"
"""Name in a bundle that lacks the contents of earlier commits' files."""
GIT_SECONDS = 600
_VERSION = re.compile(r"\d[._-]\d|(^|[^0-9A-Za-z])v?\d+$")


def is_version_tag(tag: str) -> bool:
    """Return True if *tag* names a release: `v1.2`, `h11-0.9`, `2024`. Versioneer and setuptools-scm fail on others."""
    return _VERSION.search(tag) is not None


def write_bundle(mirror: Path, commit: str, into: Path, *, since: str | None = None) -> None:
    """Write a bundle of *commit* and the version tags it reaches to *into*, without what *since* reaches.

    A mirror that was cloned without file contents gives all commits and folders, but only the files of *commit*: its
    history is not fetched for an image. The bundle then carries the name PARTIAL_REF, as it does if files are absent
    that nothing reads. If *since* is *commit* the file is empty. Raises ItemFailure: `mirror` if the mirror lacks the
    commit, `files_missing` if it lacks another file of it, which marks the mirror as broken.
    """
    if since == commit:
        into.write_bytes(b"")
        return
    tags = _reachable_tags(mirror, commit)
    if since is not None:
        tags -= _reachable_tags(mirror, since)
    names = {COMMIT_REF: commit}
    for tag in tags:
        names[tag] = _git(mirror, "rev-parse", "--verify", "--end-of-options", tag).strip()
    objects, is_partial = _objects(mirror, sorted(set(names.values())), commit, since)
    if is_partial:
        names[PARTIAL_REF] = commit
    with into.open("wb") as bundle:
        # the format is that of gitformat-bundle: names, an empty line, a pack
        bundle.write(b"# v2 git bundle\n")
        bundle.writelines(f"{sha} {name}\n".encode() for name, sha in sorted(names.items()))
        bundle.write(b"\n")
        bundle.flush()
        # One thread, because the same history should give the same bytes: they are the key of a cached layer.
        _git(mirror, "pack-objects", "--threads=1", "--quiet", "--stdout", stdin=objects, into=bundle)


def write_commit(mirror: Path, commit: str, into: Path) -> None:
    """Write a pack of *commit* and its files, without its ancestors, to *into*.

    Raises ItemFailure (`mirror`) when the mirror lacks any of it.
    """
    objects = _git(mirror, "rev-list", "--objects", "--no-walk", commit)
    with into.open("wb") as pack:
        _git(mirror, "pack-objects", "--threads=1", "--quiet", "--stdout", stdin=objects, into=pack)


def _objects(mirror: Path, wanted: Sequence[str], commit: str, since: str | None) -> tuple[str, bool]:
    """Return the input of `pack-objects` for *wanted*, and whether contents of earlier files are missing from it."""
    exclude = [] if since is None else [f"^{since}"]
    if not is_filtered(mirror):
        listed = _git(mirror, "rev-list", "--objects", "--missing=print", *wanted, *exclude).splitlines()
        held = [line for line in listed if not line.startswith("?")]
        if len(held) < len(listed):
            # earlier contents may be missing, and of the commit's own files those that nothing reads
            require_files(_name(mirror), mirror, commit)
        return "".join(f"{line}\n" for line in held), len(held) < len(listed)
    listed = _git(mirror, "rev-list", "--objects", "--filter=blob:none", *wanted, *exclude).splitlines()
    before = set() if since is None else {blob for _, blob in tree_of(mirror, since).values()}
    files = [f"{blob} {path}" for path, (_, blob) in tree_of(mirror, commit).items() if blob not in before]
    return "".join(f"{line}\n" for line in dict.fromkeys([*listed, *files]) if line), True


def is_ancestor(mirror: Path, ancestor: str, commit: str) -> bool:
    """Return True if *commit* can reach *ancestor*."""
    try:
        git(mirror, "merge-base", "--is-ancestor", ancestor, commit, seconds=GIT_SECONDS)
    except GitError:
        return False
    return True


def tree_of(mirror: Path, commit: str) -> dict[str, tuple[str, str]]:
    """Mode and blob id of every file at *commit*, by path; submodules are left out. Raises ItemFailure (`mirror`)."""
    entries = {}
    for line in _git(mirror, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        if line:
            meta, _, path = line.partition("\t")
            mode, kind, sha = meta.split()
            if kind == "blob":
                entries[path] = (mode, sha)
    return entries


def reachable_objects(mirror: Path, commit: str) -> set[str]:
    """Ids of every commit, tree and blob in the history of *commit*. Raises ItemFailure (`mirror`)."""
    return set(_git(mirror, "rev-list", "--objects", "--no-object-names", "--missing=allow-any", commit).split())


def _reachable_tags(mirror: Path, commit: str) -> set[str]:
    listed = _git(mirror, "for-each-ref", "--merged", commit, "--format=%(refname)", "refs/tags").split()
    return {name for name in listed if is_version_tag(name.removeprefix("refs/tags/"))}


def _name(mirror: Path) -> str:
    return f"{mirror.parent.name}/{mirror.stem}"


def _git(mirror: Path, *arguments: str, stdin: str | None = None, into: IO[bytes] | None = None) -> str:
    given = None if stdin is None else stdin.encode("utf-8", "surrogateescape")
    try:
        return git(mirror, *arguments, stdin=given, seconds=GIT_SECONDS, into=into).decode(errors="surrogateescape")
    except GitError as error:
        what = f"git {arguments[0]} failed in {mirror}"
        remedy = f"Have the next run clone it again: fc-data mirrors --evict {shlex.quote(_name(mirror))}"
        raise ItemFailure(FailureKind.MIRROR, what, why=error.stderr[-500:], remedy=remedy) from error
