"""Installed dependencies that builds with equal locks share, kept as they were before any repository's code ran.

A build takes a copy, never a link: its code could reach other builds through it. Next to the tier lies bytecode of
modules that builds import, copied for the time of a build: an image has none, since its source could not be verified.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.building.engines.folders import copy_tree, remove_tree, size_of, walk
from formulacode_dagster.building.engines.image_store import TrimmedCache
from formulacode_dagster.building.specs import spec as naming
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.operating.cancellation.programs import run_program

from .interpreters import Interpreter
from .layout import folder_lock, subfolders

SHARED = ("build", "venv", "tests")
BYTECODE = "bytecode"
IMPORTED_BY_BUILDS = ("setuptools", "_distutils_hack", "packaging", "wheel")
COMPILE_SECONDS = 60.0


def tier_name(spec: BuildSpec, interpreter: Interpreter) -> str:
    """Names the tier by all that it is made of."""
    made_of = f"{naming.environment_hash(spec)} {interpreter.path} {interpreter.version}"
    return f"env-{hashlib.sha256(made_of.encode()).hexdigest()[:24]}"


@dataclass(frozen=True)
class KeptTier:
    """The folder of one tier, locked exclusively."""

    folder: Path
    half: Path
    """Temporary folder of an incomplete copy."""

    @property
    def is_there(self) -> bool:
        """Return True if an earlier build has made it."""
        return self.folder.is_dir()

    def lay(self, target: Path) -> None:
        """Copy it into *target*; raises OutsideSystemError when the disk is full."""
        os.utime(self.folder)
        _copy(self.folder, target)

    def keep(self, source: Path, python: Path) -> None:
        """Store the fresh installation in *source*, for *python*; raises OutsideSystemError when the disk is full."""
        remove_tree(self.half)
        self.half.mkdir(parents=True)
        _copy(source, self.half)
        self._compile(python)
        self.folder.parent.mkdir(exist_ok=True)
        self.half.rename(self.folder)

    def lay_bytecode(self, target: Path) -> list[Path]:
        """Copy the bytecode into the environments in *target*; return the copies."""
        laid = []
        for file in walk(self.folder / BYTECODE):
            place = target / file.relative_to(self.folder / BYTECODE)
            if place.parent.parent.is_dir() and not place.exists():
                if not place.parent.exists():
                    place.parent.mkdir()
                    # a build that removes the package removes it too
                    folder = place.parent.parent.stat()
                    os.chown(place.parent, folder.st_uid, folder.st_gid)
                shutil.copy2(file, place)
                laid.append(place)
        return laid

    def _compile(self, python: Path) -> None:
        """Compile copies of modules that builds import, without running them, and keep only the bytecode."""
        copies = self.half / BYTECODE
        for name in IMPORTED_BY_BUILDS:
            for package in self.half.glob(f"*/lib/python3*/site-packages/{name}"):
                without = shutil.ignore_patterns("tests", "__pycache__")
                shutil.copytree(package, copies / package.relative_to(self.half), ignore=without)
        # a non-zero status means files that cannot be compiled, such as Python 2 code: they have no bytecode
        run_program([str(python), "-I", "-m", "compileall", "-qq", str(copies)], timeout=COMPILE_SECONDS)
        for file in walk(copies):
            if file.suffix != ".pyc":
                file.unlink()


class TierCache:
    """The `env` tiers that were built below *root*, by a name for all they were made of."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tiers = root / "tiers"

    @contextmanager
    def locked(self, name: str) -> Iterator[KeptTier]:
        """The tier *name*, once whoever makes it now has ended."""
        with folder_lock(self._root, name):
            yield KeptTier(self._tiers / name, self._root / "building" / name)

    @contextmanager
    def bytecode_in(self, target: Path, name: str) -> Iterator[None]:
        """For the time of a build in *target*, copy the compiled modules of the tier *name*, if it exists."""
        with self.locked(name) as tier:
            laid = tier.lay_bytecode(target)
        try:
            yield
        finally:
            for file in laid:
                file.unlink(missing_ok=True)
            for folder in {file.parent for file in laid}:
                # bytecode that the build itself compiled is left as it is
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()

    def trim(self, budget: int | None, *, dry_run: bool) -> TrimmedCache:
        """Remove tiers, those used least recently first, until they take *budget* bytes at most (None: no limit)."""
        sizes = {folder: size_of(folder) for folder in subfolders(self._tiers)}
        left = before = sum(sizes.values())
        records = 0
        for folder in sorted(sizes, key=lambda folder: (folder.stat().st_mtime, folder.name)):
            if budget is None or left <= budget:
                break
            if not dry_run:
                with folder_lock(self._root, folder.name):
                    remove_tree(folder)
            records, left = records + 1, left - sizes[folder]
        return TrimmedCache(records=records, bytes_before=before, bytes_after=left)


def _copy(source: Path, target: Path) -> None:
    try:
        copy_tree(source, target, SHARED)
    except subprocess.CalledProcessError as error:
        raise OutsideSystemError(
            "disk", f"cannot copy {source} to {target}", why=str(error), remedy="Free some space"
        ) from error
