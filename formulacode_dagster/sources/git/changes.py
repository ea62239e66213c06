"""Changes of pull requests as bytes: *base + patch = the tree after the merge*, verified by applying it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.pull_request import Change, ChangedFile, MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind, RejectionReason

from .blobs import is_filtered
from .command import GitError, git
from .faults import Fault, fault_of, refused_object, translate
from .history import Mirror
from .landing import EMPTY_TREE, Merged, compared_trees, landing_of
from .missing_files import files_missing
from .scratch import scratch_repository

MOST_BYTES = 100 << 20
"""Maximum size of a patch, which is held in memory; no one reviews as much."""

_EXACT = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--submodule=short")
_PATCH = (
    *_EXACT,
    "--patch",
    "--binary",
    "--full-index",
    "--no-color",
    "--unified=3",
    "--diff-algorithm=myers",
    "--no-indent-heuristic",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
_FILES = (*_EXACT, "--raw", "--numstat", "--abbrev=40", "-z")


def change_of(mirror: Mirror, facts: MergedPullRequest, *, most_bytes: int = MOST_BYTES) -> tuple[Change, bytes]:
    """The change behind *facts* and its patch.

    Raises Rejection (`no_patch`) if nothing changed, (`patch_too_large`) beyond *most_bytes*; ItemFailure
    `commit_missing` if the merge commit is not in the mirror, `files_missing` if contents are not, `no_base` if it is
    the first of its history, `unsafe_path` if git refuses to write a changed path, `patch_mismatch` if the patch
    applied to its base does not give the tree after the merge; OutsideSystemError if contents cannot be fetched.
    """
    if not facts.merge_commit_sha:
        raise ItemFailure(FailureKind.COMMIT_MISSING, f"GitHub names no merge commit for {facts.item}")
    merge = mirror.commit(facts.merge_commit_sha)
    landing = landing_of(mirror, facts, merge)
    base = landing.base_sha or EMPTY_TREE
    base_tree = mirror.commit(base).tree if landing.base_sha else EMPTY_TREE
    if base_tree == merge.tree:
        raise Rejection(RejectionReason.NO_PATCH, f"{facts.item} leaves the tree of {base[:12]} as it was")
    try:
        files = _read_files(git(mirror.path, *_FILES, base_tree, merge.tree))
        patch = git(mirror.path, *_PATCH, base_tree, merge.tree, most=most_bytes)
        tree = _apply(mirror.path, base_tree, patch)
    except GitError as error:
        if refused := refused_object(error):
            raise files_missing(mirror.repository, mirror.path, [refused], merge.sha) from error
        if fault_of(error) is Fault.BROKEN:
            mirror.require(merge.sha, *filter(None, [landing.base_sha]))
        raise _failure(error, facts, most_bytes) from error
    if tree != merge.tree:
        raise _mismatch(facts, f"it gives the tree {tree}, the merge has {merge.tree}")
    if not landing.base_sha:
        raise ItemFailure(
            FailureKind.NO_BASE, f"{facts.item} is the first commit of its history", why="there is no base to build"
        )
    change = Change(
        month=facts.month,
        repository_id=facts.repository_id,
        number=facts.number,
        merge_kind=landing.kind,
        base_sha=base,
        merge_tree_sha=merge.tree,
        patch_sha256=hashlib.sha256(patch).hexdigest(),
        patch_bytes=len(patch),
        files=files,
    )
    return change, patch


def prepare(mirror: Mirror, pull_requests: Sequence[Merged]) -> None:
    """Fetch in one request what the changes of *pull_requests* need; nothing to do in a complete mirror.

    Without it every change works too, at the price of a round trip each.
    """
    if not is_filtered(mirror.path):
        return
    here = [facts for facts in pull_requests if mirror.has(facts.merge_commit_sha)]
    try:
        mirror.fetch_between(trees for facts in here for trees in compared_trees(mirror, facts))
    except ItemFailure as failure:
        # the host lacks a file of one: the others need not fail with it
        if failure.kind is not FailureKind.FILES_MISSING:
            raise


def _apply(repository: Path, base_tree: str, patch: bytes) -> str:
    """The tree that *patch* makes of *base_tree*, in a scratch repository that reads objects from *repository*."""
    with scratch_repository(repository) as scratch:
        git(scratch, "read-tree", base_tree)
        git(scratch, "apply", "--cached", "--whitespace=nowarn", "-", stdin=patch)
        # a filtered mirror may lack blobs outside the patch
        return git(scratch, "write-tree", "--missing-ok").decode().strip()


def _failure(error: GitError, facts: MergedPullRequest, most_bytes: int) -> Exception:
    if error.too_long:
        return Rejection(RejectionReason.PATCH_TOO_LARGE, f"the patch of {facts.item} is over {most_bytes >> 20} MiB")
    if error.arguments[0] == "apply" and "invalid path" in error.stderr:
        return ItemFailure(
            FailureKind.UNSAFE_PATH, f"{facts.item} has a path that git refuses to write", why=error.stderr
        )
    if error.arguments[0] == "apply" and fault_of(error) is Fault.OTHER:
        return _mismatch(facts, error.stderr)
    return translate(error, "read the change of", facts.item)


def _mismatch(facts: MergedPullRequest, why: str) -> ItemFailure:
    return ItemFailure(FailureKind.PATCH_MISMATCH, f"the patch of {facts.item} does not apply to its base", why=why)


def _read_files(raw: bytes) -> tuple[ChangedFile, ...]:
    """The entries of `--raw --numstat -z`: first all of the one, then all of the other."""
    fields = raw.split(b"\0")
    statuses: dict[bytes, str] = {}
    counts: dict[bytes, tuple[bytes, bytes]] = {}
    index = 0
    while index < len(fields) - 1:
        if fields[index].startswith(b":"):
            statuses[fields[index + 1]] = fields[index].split()[4][:1].decode()
            index += 2
        else:
            added, deleted, path = fields[index].split(b"\t", 2)
            counts[path] = (added, deleted)
            index += 1
    return tuple(_file(path, status, counts.get(path, (b"0", b"0"))) for path, status in sorted(statuses.items()))


def _file(path: bytes, status: str, counts: tuple[bytes, bytes]) -> ChangedFile:
    binary = counts == (b"-", b"-")
    return ChangedFile(
        # neither JSON nor Postgres takes invalid UTF-8; the patch keeps the exact bytes
        path=path.decode("utf-8", "backslashreplace"),
        status=status,
        additions=0 if binary else int(counts[0]),
        deletions=0 if binary else int(counts[1]),
        binary=binary,
    )
