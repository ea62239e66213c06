"""Folders of the process engine, and the layout of a built one."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from formulacode_dagster.building.engines.files import RECORD_HASHES
from formulacode_dagster.building.engines.folders import walk
from formulacode_dagster.building.engines.view import CommandView, hand_over, installation_of
from formulacode_dagster.building.specs import recipes
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.image import Tier, Toolchain

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_INSTALLED = ("build", "instrument", "tests")
"""Folders in which nothing is written after the installation of the locks."""
_WRITABLE = ("venv", "repository", "crates", "home", "tmp", "scratch")
_NOT_CONTENT = frozenset({"direct_url.json", "uv_cache.json", "REQUESTED"})
_RECORD_BYTES = 16 * 1024 * 1024
"""A longer RECORD is no installer's, and its lines are not read."""


class BuildManifest(Frozen):
    """The record of a finished folder; a folder without it is unfinished."""

    tag: str
    digest: str
    size_bytes: int
    seconds: float
    tiers: tuple[Tier, ...]
    toolchain: Toolchain


class Layout:
    """The places inside a built folder, and inside a session's copy of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.venv = folder / "venv"
        """The virtual environment: the lock's packages and the built one."""
        self.build_venv = folder / "build"
        """The build environment, if it differs from the runtime one; else an empty folder."""
        self.python = self.venv / "bin" / "python"
        """Interpreter of the environment."""
        self.repository = folder / "repository"
        """The checkout at the base commit."""
        self.instrument = folder / "instrument"
        """The measuring tools."""
        self.tests = folder / "tests"
        """Test requirements that are not in the lock."""
        self.task = folder / "task"
        """The build's input, see `context`."""
        self.manifest = folder / "manifest.json"
        """Written last."""
        self.installed = folder / "installed_files.json"
        """The installed files as they were finished, see `sharing`."""
        self.unchecked = folder / "unchecked"
        """One file for each session whose end has not checked the shared files yet, see `sharing`."""
        self.log = folder / "build.log"
        """The build's whole log."""

    def make(self) -> None:
        """Make the folders that the scripts expect."""
        for folder in (self.task, *self.writable):
            folder.mkdir(parents=True, exist_ok=True)

    def environment(self, uv: str, interpreter: str) -> dict[str, str]:
        """The variables of every build step: a clean slate, and the places."""
        return {
            "PATH": SYSTEM_PATH,
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "LANG": "C.UTF-8",
            "FC_UV": uv,
            "FC_PYTHON": interpreter,
            "FC_VENV": str(self.venv),
            "FC_BUILD_VENV": str(self.build_venv),
            "FC_CRATES": str(self.folder / "crates"),
            "FC_REPOSITORY": str(self.repository),
            "FC_INSTRUMENT": str(self.instrument),
            "FC_TESTS": str(self.tests),
            "FC_TASK": str(self.task),
            "FC_SCRATCH": str(self.folder / "scratch"),
        }

    @property
    def writable(self) -> tuple[Path, ...]:
        """Folders that code writes to; the others hold its input, and records that we write and believe."""
        return tuple(self.folder / name for name in (*_WRITABLE, *_INSTALLED))

    def hand_over(self, protected: Collection[int] = ()) -> None:
        """Give input and writable folders to the user of untrusted code, which does not get at the others, nor at the
        *protected* inodes in them.
        """
        self.folder.chmod(0o755)
        hand_over(self.task, *self.writable, protected=protected)

    def hash_records(self) -> None:
        """Do as the script `hash-records`, which could not write among the input once it is handed over."""
        lines = []
        for path in sorted(self.venv.glob("lib/python*/site-packages/*.dist-info/RECORD")):
            if stat.S_ISREG(path.lstat().st_mode):
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                lines.append(f"{digest}  {path.relative_to(self.venv)}\n")
        (self.folder / RECORD_HASHES).write_text("".join(lines))

    def view(self, uv: str, interpreter: Path, *, more: tuple[Path, ...] = (), installs: bool = False) -> CommandView:
        """The files of code in this folder: the folder, what it is run with, and *more*.

        Only code that *installs* the locks can write to the folders of build and test requirements and of the tools.
        """
        tools = (Path(uv), recipes.script("install-package").parent, *installation_of(interpreter))
        names = (*_WRITABLE, *_INSTALLED) if installs else _WRITABLE
        return CommandView(tuple(self.folder / name for name in names), (self.folder, *tools, *more))

    def read_manifest(self) -> BuildManifest | None:
        """The manifest, when the folder is finished."""
        try:
            return BuildManifest.model_validate_json(self.manifest.read_bytes())
        except (OSError, ValueError):
            return None

    def digest(self) -> str:
        """SHA-256 over names, modes and contents of all installed files, and the commit."""
        digest = hashlib.sha256((self.task / "base-sha").read_bytes())
        for path in walk(self.venv / "lib", self.instrument, self.tests):
            if path.name in _NOT_CONTENT or "__pycache__" in path.parts:
                continue
            name = path.relative_to(self.folder).as_posix()
            digest.update(json.dumps([name, _digest(path)]).encode())
        return f"sha256:{digest.hexdigest()}"


def folder_lock(root: Path, name: str, *, blocking: bool = True) -> FileLock:
    """Held by whoever builds, copies or removes the image in the folder *name* below *root*."""
    locks = root / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    return FileLock(locks / name, blocking=blocking)


def subfolders(folder: Path) -> list[Path]:
    """The folders in *folder*, sorted; none when it is not there."""
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def half_built(root: Path) -> Iterator[Path]:
    """Abandoned build folders; each is locked until the next is taken."""
    for folder in subfolders(root / "building"):
        with suppress(Timeout), folder_lock(root, folder.name, blocking=False):
            yield folder


def _digest(path: Path) -> str:
    """SHA-256 of a file, a RECORD without the lines about files that are left out, or of a link's target."""
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        return hashlib.sha256(str(path.readlink()).encode()).hexdigest()
    if not stat.S_ISREG(facts.st_mode):
        # a pipe would never end
        return ""
    if path.name == "RECORD" and facts.st_size <= _RECORD_BYTES:
        lines = path.read_bytes().decode(errors="replace").splitlines()
        kept = [line for line in lines if line.partition(",")[0].rpartition("/")[2] not in _NOT_CONTENT]
        return hashlib.sha256("\n".join(kept).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def online_variables(source: Mapping[str, str]) -> dict[str, str]:
    """Variables of *source* that a package installer needs to reach its index; the rest of the host's environment is
    left out.
    """
    prefixes = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX", "UV_FIND_LINKS", "UV_HTTP", "UV_NATIVE_TLS")
    names = {"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
    return {name: value for name, value in source.items() if name.upper() in names or name.startswith(prefixes)}
