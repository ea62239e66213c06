"""Walking, measuring, copying and removing folders of this machine that untrusted code has written to."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from formulacode_dagster.operating.cancellation.programs import run_program


def walk(*roots: Path) -> Iterator[Path]:
    """All files and links below *roots*, sorted; folders that are links are not entered."""
    for root in roots:
        for folder, folders, files in os.walk(root):
            folders.sort()
            for name in sorted([*files, *(entry for entry in folders if (Path(folder) / entry).is_symlink())]):
                yield Path(folder) / name


def size_of(*roots: Path) -> int:
    """Bytes on disk of all files below *roots*."""
    return sum(path.lstat().st_blocks * 512 for path in walk(*roots))


def copy_tree(source: Path, target: Path, names: tuple[str, ...]) -> None:
    """Copy folders *names* from *source* to *target*, sharing blocks if the file system can."""
    command = ["cp", "-a", "--reflink=auto", *(str(source / name) for name in names), str(target)]
    run_program(command).check_returncode()


def link_tree(source: Path, target: Path, names: tuple[str, ...]) -> None:
    """Lay folders *names* of *source* into *target*, each file a link to the one it has there."""
    run_program(["cp", "-al", *(str(source / name) for name in names), str(target)]).check_returncode()


def remove_tree(folder: Path) -> None:
    """Remove *folder* though the code that ran in it may have locked parts of it."""
    if not folder.exists():
        return
    # half the processor time of removing thousands of files here; a stop must not end it
    if subprocess.run(["rm", "-rf", "--", str(folder)], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        return
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(place) / name
            if not path.is_symlink():
                path.chmod(stat.S_IRWXU)
    shutil.rmtree(folder)
