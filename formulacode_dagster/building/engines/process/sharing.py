"""Files shared between a session and its image: installed files are linked, as uv links its cache, and not copied.

On a disk with slow file creation, a quarter of the demo's samples were copies. An installer or a bytecode compiler
replaces a file, which makes it the session's own. Files that honest code may write in place, the checkout and the
package itself, are copied. Other writes in place are detected by size, time and mode: when the session closes and, if
its process was killed before, when the next one opens.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
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
    """Size, time and mode, which reveal a write."""

    mode: int
    size: int
    mtime_ns: int


class InstalledFiles(RootModel[dict[str, FileState]]):
    """Files of a finished image that sessions link to, by path below its folder."""


@dataclass(frozen=True)
class SharedFiles:
    """Files that a session's folder has in common with others, as they were when the image was finished."""

    states: Mapping[str, FileState]
    inodes: Mapping[str, int]

    def written_in(self, folder: Path) -> list[str]:
        """Return files that *folder* still shares and that have changed."""
        return [
            path
            for path, state in self.states.items()
            if (now := _look(folder / path)) and now.st_ino == self.inodes[path] and _state(now) != state
        ]


NOTHING_SHARED = SharedFiles({}, {})


def note_installed(image: Layout) -> None:
    """Record for `share` the files installed in *image*, which must not change any more."""
    files = walk(*(image.folder / name for name in LINKED))
    states = {str(path.relative_to(image.folder)): _state(path.lstat()) for path in files}
    image.installed.write_text(InstalledFiles(states).model_dump_json())


def share(image: Layout, folder: Path) -> SharedFiles:
    """Copy the content of *image* into *folder*, linked if possible; return the shared files.

    One that was built before there were links is copied, and so is one whose file system has none. Raises ItemFailure
    (`image_gone`) when a file was written after the image was finished, which it is no longer then;
    subprocess.CalledProcessError and OSError when *folder* cannot be filled.
    """
    if not _lay(image.folder, folder, link=image.installed.exists()):
        return NOTHING_SHARED
    states = InstalledFiles.model_validate_json(image.installed.read_bytes()).root
    found = {path: now for path in states if (now := _look(folder / path))}
    if written := [path for path, state in states.items() if path not in found or _state(found[path]) != state]:
        image.manifest.unlink(missing_ok=True)
        raise ItemFailure(
            FailureKind.IMAGE_GONE,
            f"{written[0]} of {image.folder} is not what was built, nor are {len(written) - 1} other files",
            remedy="Build it again",
        )
    _own_package(image, Layout(folder))
    return SharedFiles(states, {path: now.st_ino for path, now in found.items()})


def share_again(session: Layout, shared: SharedFiles, folder: Path) -> SharedFiles:
    """Copy the current content of *session*, which has *shared* files with its image, into *folder*; return the shared
    files.

    Raises subprocess.CalledProcessError and OSError when *folder* cannot be filled.
    """
    if not _lay(session.folder, folder, link=bool(shared.states)):
        return NOTHING_SHARED
    _own_package(session, Layout(folder))
    return shared


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
            own = copy.venv / path.relative_to(venv)
            own.unlink()
            shutil.copy2(path, own)
            if os.getuid() == 0:
                shutil.chown(own, path.stat().st_uid, path.stat().st_gid)


def _recorded(record: Path, venv: Path) -> set[Path]:
    """Return the files in *venv* that *record* names; none if code in a session removed or broke it."""
    try:
        lines = record.read_text(errors="replace").splitlines() if record.is_file() else []
        named = {(record.parents[1] / line[0]).resolve() for line in csv.reader(lines) if line}
        return {path for path in named if path.is_relative_to(venv) and path.is_file()}
    # its content may be no table, no path, or a path with a cycle
    except (csv.Error, ValueError, OSError, RuntimeError):
        return set()


def _state(facts: stat_result) -> FileState:
    return FileState(facts.st_mode, facts.st_size, facts.st_mtime_ns)


def _look(path: Path) -> stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None
