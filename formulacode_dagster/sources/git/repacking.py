"""Repacks mirrors with many packs or loose objects, each while it is unused.

Every fetch leaves a pack, and git looks through all of them for each object. Nothing is dropped: commits that no branch
reaches any more stay, since a pull request may need them. Packs shared with another repository by hard links stay too.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from .command import GitError, git
from .damage import BROKEN_MARK, visible_damage
from .eviction import locked, mirror_path, repositories
from .faults import Fault, fault_of
from .use import MirrorUse

MOST_PACKS = 50
MOST_LOOSE = 6700
"""Files of single objects; both bounds are those of git's own `gc`."""
REPACK_SECONDS = 1800.0
"""Shorter than a process that needs the mirror waits for it."""
_MEMORY = "64m"
_BOUNDED = {
    "core.deltaBaseCacheLimit": _MEMORY,
    "core.packedGitLimit": "256m",
    "core.bigFileThreshold": _MEMORY,
    "pack.deltaCacheSize": _MEMORY,
    # those of a filtered mirror cannot be written
    "repack.writeBitmaps": "false",
}
_LEFT_BY_KILLED = (".tmp-*", "tmp_*")


@dataclass(frozen=True)
class Repacked:
    """A mirror that was repacked or should be; in a dry run `bytes_after` is its current size."""

    repository: str
    packs: int
    loose: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class RepackReport:
    """Result for the mirrors below one folder; with `dry_run`, the plan."""

    where: str
    dry_run: bool
    repacked: tuple[Repacked, ...]
    in_use: tuple[str, ...]
    """Over the bounds as well, and left for another day."""
    failed: tuple[tuple[str, str], ...]
    """Name, and why it stays as it was."""

    @property
    def freed(self) -> int:
        """Bytes."""
        return sum(mirror.bytes_before - mirror.bytes_after for mirror in self.repacked)

    def gone(self) -> Iterator[tuple[str, str, int]]:
        """Name, reason and bytes freed of each mirror."""
        for mirror in self.repacked:
            why = f"{mirror.packs} packs, {mirror.loose} loose objects"
            yield f"{mirror.repository}, into one pack", why, mirror.bytes_before - mirror.bytes_after

    @property
    def summary(self) -> str:
        """One line for a person."""
        before, after = (sum(mirror.bytes_before for mirror in self.repacked) - freed for freed in (0, self.freed))
        parts = [
            f"to repack: mirrors {len(self.repacked)}, {before / 1e6:.1f} MB"
            if self.dry_run
            else f"repacked: mirrors {len(self.repacked)}, from {before / 1e6:.1f} to {after / 1e6:.1f} MB"
        ]
        if self.in_use:
            parts.append(f"in use: {', '.join(self.in_use)}")
        parts += [f"{repository} stays as it is: {why}" for repository, why in self.failed]
        return f"{self.where}: {'; '.join(parts)}"


def repack_mirrors(root: Path, *, dry_run: bool) -> RepackReport:
    """Repack each unused mirror below *root* that exceeds the bounds. Raises OSError."""
    done: list[Repacked] = []
    in_use: list[str] = []
    failed: list[tuple[str, str]] = []
    for repository in repositories(root):
        mirror = mirror_path(root, repository)
        try:
            if not _is_over(*_counts(mirror)):
                continue
            with locked(root, repository, 0), MirrorUse(mirror).nobody() as unused:
                if unused:
                    done.append(_repack(repository, mirror, dry_run=dry_run))
                else:
                    in_use.append(repository)
        except Timeout:
            in_use.append(repository)
        except FileNotFoundError:
            # evicted a moment ago
            continue
        except GitError as error:
            if fault_of(error) is Fault.BROKEN:
                (mirror / BROKEN_MARK).touch()
            failed.append((repository, error.stderr.strip().splitlines()[-1] if error.stderr else str(error)))
    return RepackReport(str(root), dry_run, tuple(done), tuple(in_use), tuple(failed))


def _repack(repository: str, mirror: Path, *, dry_run: bool) -> Repacked:
    """The caller ensures that the mirror is unused. Raises GitError."""
    packs, loose = _counts(mirror)
    before = MirrorUse(mirror).size()
    if dry_run:
        return Repacked(repository, packs, loose, before, before)
    _clear(mirror)
    if damage := visible_damage(mirror):
        raise GitError(("repack",), -1, f"it is rebuilt when it is used: {damage}")
    if shutil.disk_usage(mirror).free < before:
        raise GitError(("repack",), -1, "the disk has no room for a second copy")
    shared = [f"--keep-pack={pack.name}" for pack in _packs(mirror) if pack.stat().st_nlink > 1]
    options = [option for name, value in _BOUNDED.items() for option in ("-c", f"{name}={value}")]
    everything = ("-a", "-d", "--keep-unreachable", "--quiet")
    bounded = ("--threads=1", f"--window-memory={_MEMORY}")
    try:
        git(mirror, *options, "repack", *everything, *bounded, *shared, seconds=REPACK_SECONDS)
    except BaseException:
        _clear(mirror)
        raise
    git(mirror, "pack-refs", "--all", "--prune")
    return Repacked(repository, packs, loose, before, MirrorUse(mirror).size())


def _is_over(packs: int, loose: int) -> bool:
    return packs > MOST_PACKS or loose > MOST_LOOSE


def _counts(mirror: Path) -> tuple[int, int]:
    """Packs, and files of single objects, that are not shared with another repository."""
    single = (file for file in (mirror / "objects").glob("[0-9a-f][0-9a-f]/*"))
    packs, loose = (sum(1 for file in files if file.stat().st_nlink == 1) for files in (_packs(mirror), single))
    return packs, loose


def _packs(mirror: Path) -> list[Path]:
    return list((mirror / "objects" / "pack").glob("pack-*.pack"))


def _clear(mirror: Path) -> None:
    """Remove leftovers of a killed git; no process writes to the mirror meanwhile."""
    for pattern in _LEFT_BY_KILLED:
        for left in (mirror / "objects" / "pack").glob(pattern):
            left.unlink(missing_ok=True)
