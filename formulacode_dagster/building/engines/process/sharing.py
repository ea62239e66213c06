"""Files shared between a session and its image: installed files are linked, as uv links its cache, and not copied.

On a disk with slow file creation, a quarter of the demo's samples were copies. An installer or a bytecode compiler
replaces a file, which makes it the session's own. Files that honest code may write in place, the checkout and the
package itself, are copied.

Where code runs as another user than root, the shared files are root's, and no other user can write to them. Elsewhere
writes in place are detected when the session closes and, if its process was killed before, when the next one opens: by
size, time and mode, and by content. Code can set the time of a file back, but not that of its inode, so only files
whose inode has changed are read: other sessions link to them, or a write was hidden.
"""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import stat_result
from pathlib import Path
from typing import NamedTuple

from pydantic import RootModel

from formulacode_dagster.building.engines.folders import copy_tree, link_tree, remove_tree, walk
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .layout import Layout

LINKED = ("venv", "build", "instrument", "tests", "crates")
COPIED = ("repository", "task")


class FileState(NamedTuple):
    """Mode, size and time, which reveal a write by honest code, and the content."""

    mode: int
    size: int
    mtime_ns: int
    sha256: str

    def looks_like(self, facts: stat_result) -> bool:
        """Return True unless *facts* reveal a write."""
        return self[:3] == (facts.st_mode, facts.st_size, facts.st_mtime_ns)


class InstalledFiles(RootModel[dict[str, FileState]]):
    """Files of a finished image that sessions link to, by path below its folder."""


@dataclass(frozen=True)
class SharedFiles:
    """Files that a session's folder has in common with others, as they were when the image was finished."""

    image: Path
    states: Mapping[str, FileState]
    inodes: Mapping[str, int]
    inode_times: Mapping[str, int] = field(default_factory=dict)
    """When each inode had changed last as the session began, by path."""
    mark: Path | None = None
    """A file that is there until the end of the session has checked the shared files."""
    are_protected: bool = False
    """True if code of a session cannot write to them."""

    @property
    def protected_inodes(self) -> Collection[int]:
        """Return the inodes that must keep their owner."""
        return frozenset(self.inodes.values()) if self.are_protected else ()

    def begun_in(self, folder: Path) -> SharedFiles:
        """Return them with the times of their inodes, once *folder* has all of its links and its owner."""
        if self.are_protected:
            return self
        return replace(self, inode_times={path: now.st_ctime_ns for path, _, now in self._found(folder)})

    def written_in(self, folder: Path) -> list[str]:
        """Return shared files that have changed since *folder* began to share them."""
        written = [
            path
            for path, place, now in (() if self.are_protected else self._found(folder))
            if not self.states[path].looks_like(now)
            or (now.st_ctime_ns != self.inode_times.get(path) and _sha256(place) != self.states[path].sha256)
        ]
        if self.mark is not None:
            self.mark.unlink(missing_ok=True)
        return written

    def _found(self, folder: Path) -> Iterator[tuple[str, str, stat_result]]:
        """Yield path and place of each file, in the image if code has moved it away in *folder*."""
        for path, inode in self.inodes.items():
            for place in (f"{folder}/{path}", f"{self.image}/{path}"):
                now = _look(place)
                if now and now.st_ino == inode:
                    yield path, place, now
                    break


NOTHING_SHARED = SharedFiles(Path(), {}, {})


def note_installed(image: Layout, *, protect: bool = False) -> None:
    """Record for `share` the files installed in *image*, which must not change any more.

    With *protect*, as root, they become root's: code of a session, which runs as another user, can only read them.
    """
    files = list(walk(*(image.folder / name for name in LINKED)))
    for path in files if protect else ():
        _protect(path)
    states = {str(path.relative_to(image.folder)): _state(path) for path in files}
    image.installed.write_text(InstalledFiles(states).model_dump_json())


def share(image: Layout, folder: Path, *, confined: bool = False) -> SharedFiles:
    """Copy the content of *image* into *folder*, linked if possible; return the shared files, which *confined* code
    cannot write to if they are root's.

    One that was built before there were links is copied, and so is one whose file system has none. Raises ItemFailure
    (`image_gone`) when a file was written after the image was finished, which it is no longer then;
    subprocess.CalledProcessError and OSError when *folder* cannot be filled.
    """
    if not _lay(image.folder, folder, link=image.installed.exists()):
        return NOTHING_SHARED
    states = InstalledFiles.model_validate_json(image.installed.read_bytes()).root
    found = {path: now for path in states if (now := _look(f"{folder}/{path}"))}
    written = [path for path, state in states.items() if path not in found or not state.looks_like(found[path])]
    image.unchecked.mkdir(exist_ok=True)
    # sessions that are open, or that were killed
    unchecked = [mark.name for mark in image.unchecked.iterdir()]
    if unchecked and not written:
        written = [path for path, state in states.items() if _sha256(f"{folder}/{path}") != state.sha256]
    if written:
        image.manifest.unlink(missing_ok=True)
        raise ItemFailure(
            FailureKind.IMAGE_GONE,
            f"{written[0]} of {image.folder} is not what was built, nor are {len(written) - 1} other files",
            remedy="Build it again",
        )
    for name in unchecked:
        if not folder.with_name(name).exists():
            (image.unchecked / name).unlink(missing_ok=True)
    _own_package(image, Layout(folder))
    inodes = {path: now.st_ino for path, now in found.items()}
    if confined and all(map(_is_protected, found.values())):
        return SharedFiles(image.folder, states, inodes, are_protected=True)
    mark = image.unchecked / folder.name
    mark.touch()
    return SharedFiles(image.folder, states, inodes, mark=mark)


def share_again(session: Layout, shared: SharedFiles, folder: Path) -> SharedFiles:
    """Copy the current content of *session*, which has *shared* files with its image, into *folder*; return the shared
    files. What *session* has changed or added is copied, as nothing would detect a write to it.

    Raises subprocess.CalledProcessError and OSError when *folder* cannot be filled.
    """
    if not _lay(session.folder, folder, link=bool(shared.states)):
        return NOTHING_SHARED
    of_image = set(shared.inodes.values())
    for path in walk(*(folder / name for name in LINKED)):
        facts, original = path.lstat(), session.folder / path.relative_to(folder)
        if stat.S_ISREG(facts.st_mode) and facts.st_ino not in of_image and os.access(original, os.R_OK):
            _copy_over(original, path)
    return replace(shared, mark=None)


def _lay(source: Path, target: Path, *, link: bool) -> bool:
    """Lay the folders in *source* into *target*; whether that was done with links, which *link* asks for."""
    # images built before test requirements had a folder lack it
    links, copies = (tuple(name for name in names if (source / name).exists()) for names in (LINKED, COPIED))
    if link:
        try:
            link_tree(source, target, links)
        except subprocess.CalledProcessError:
            link = False
            for name in links:
                remove_tree(target / name)
    copy_tree(source, target, copies if link else (*links, *copies))
    return link


def _own_package(source: Layout, copy: Layout) -> None:
    """Copy what the build installed from the checkout: code that stores data next to itself writes there."""
    venv = source.venv.resolve()
    for mark in venv.glob("lib/python3*/site-packages/*.dist-info/direct_url.json"):
        for path in _recorded(mark.with_name("RECORD"), venv):
            _copy_over(path, copy.venv / path.relative_to(venv))


def _copy_over(path: Path, link: Path) -> None:
    """Put a copy of *path*, with its owner, in place of *link*."""
    link.unlink()
    shutil.copy2(path, link, follow_symlinks=False)
    if os.getuid() == 0:
        facts = path.lstat()
        os.chown(link, facts.st_uid, facts.st_gid, follow_symlinks=False)


def _recorded(record: Path, venv: Path) -> set[Path]:
    """Return the files in *venv* that *record* names; none if code in a session removed or broke it."""
    try:
        lines = record.read_text(errors="replace").splitlines() if record.is_file() else []
        named = {(record.parents[1] / line[0]).resolve() for line in csv.reader(lines) if line}
        return {path for path in named if path.is_relative_to(venv) and path.is_file()}
    # its content may be no table, no path, or a path with a cycle
    except (csv.Error, ValueError, OSError, RuntimeError):
        return set()


def _state(path: Path) -> FileState:
    facts = path.lstat()
    return FileState(facts.st_mode, facts.st_size, facts.st_mtime_ns, _sha256(path))


def _sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of a link's target; `` if it cannot be read."""
    path = Path(path)
    try:
        if path.is_symlink():
            return hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _look(path: str) -> stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _protect(path: Path) -> None:
    """Give *path* to root, readable by all users if its owner could read it, and writable by no other."""
    mode = path.lstat().st_mode
    os.chown(path, 0, 0, follow_symlinks=False)
    if stat.S_ISREG(mode):
        for_owner = mode & stat.S_IRWXU
        for_others = (mode & (stat.S_IRUSR | stat.S_IXUSR)) >> 3
        path.chmod(for_owner | for_others | for_others >> 3)


def _is_protected(facts: stat_result) -> bool:
    return facts.st_uid == 0 and (stat.S_ISLNK(facts.st_mode) or not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
