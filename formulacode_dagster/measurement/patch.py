"""What a patch changes, by file and side, and putting it into a session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from formulacode_dagster.engines.protocol import Session
from formulacode_dagster.git.diff import FileDiff, split_patch
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.suites.remote import describe

APPLY_SECONDS = 120.0


@dataclass(frozen=True)
class FileChange:
    """The lines of one file that a patch removes from the base, and those it adds."""

    base_path: str | None
    oracle_path: str | None
    base_lines: frozenset[int]
    oracle_lines: frozenset[int]
    beside_insertions: frozenset[int]
    """Lines of the base around those that are added alone: what stands for them where there is only the base."""

    @property
    def path(self) -> str:
        """The path after the change, or before it when the file was deleted."""
        return self.oracle_path or self.base_path or ""


def changed_files(patch: bytes) -> tuple[FileChange, ...]:
    """Read *patch*, a git diff in any encoding; raises ItemFailure (kind `malformed_patch`) when it is none."""
    files = split_patch(patch)
    cut = next((file.path for file in files if not all(hunk.is_whole for hunk in file.hunks())), None)
    if cut is not None or (patch.strip() and not files):
        why = "no file of it is named" if cut is None else f"a hunk of {cut} is cut short"
        raise ItemFailure(FailureKind.MALFORMED_PATCH, "the patch cannot be read", why=why)
    return tuple(map(_file_change, files))


def apply_patch(session: Session, patch: bytes) -> None:
    """Apply *patch* to the checkout of *session*; raises ItemFailure (kind `oracle_does_not_apply`)."""
    # The ceiling keeps git from taking a repository around the session's folder for the patch's own.
    applied = session.run(
        ["git", "-c", "safe.directory=*", "apply", "--whitespace=nowarn", "-"],
        timeout=APPLY_SECONDS,
        cwd=session.repository,
        environment={"GIT_CEILING_DIRECTORIES": str(PurePosixPath(session.repository).parent)},
        stdin=patch,
    )
    if not applied.ok:
        raise ItemFailure(
            FailureKind.ORACLE_DOES_NOT_APPLY,
            "the author's patch does not apply to the image's checkout",
            why=describe(applied).replace("\n", "; "),
            remedy="Check that the image holds the base commit",
            log_tail=describe(applied),
        )


def _file_change(file: FileDiff) -> FileChange:
    base_lines: set[int] = set()
    oracle_lines: set[int] = set()
    beside: set[int] = set()
    for hunk in file.hunks():
        old, new, before, replacing = hunk.old_start, hunk.new_start, hunk.old_start, False
        for line in hunk.lines:
            if line.startswith("+"):
                oracle_lines.add(new)
                new += 1
                if not replacing:
                    beside |= {before, before + 1}
                continue
            before, replacing = old, line.startswith("-")
            if replacing:
                base_lines.add(old)
            old, new = old + 1, new + (not replacing)
    lines = map(frozenset, (base_lines, oracle_lines, beside))
    return FileChange(file.old_path, file.new_path, *lines)
