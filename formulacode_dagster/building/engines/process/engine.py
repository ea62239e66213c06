"""Builds and measures in folders of this machine, for a laptop without Docker.

An image is a folder with a relocatable virtual environment, the checkout and the instrument. A session is a folder like
it: the package is installed plainly, so nothing in it points back, and a rebuild changes only the session's.

If the kernel allows it (`confines` reports it), code of a repository or a source distribution has no other files than
its folder, its interpreter and the system's programs and libraries, sees no other process, and is not root's. Otherwise
it runs as the user of this process, in a user namespace if possible: that is for the samples, see `select`. There is no
network while the package is built nor in a session if the kernel allows it (`isolates_network`), and there are limits
on memory, processor time, file size and processes.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import IO

from filelock import FileLock

from formulacode_dagster.building.engines.files import Area, ImageConfig, ImageFile
from formulacode_dagster.building.engines.folders import remove_tree, walk
from formulacode_dagster.building.engines.processes import Bounds, can_confine, run_bounded
from formulacode_dagster.building.engines.protocol import BuildOutcome, Session
from formulacode_dagster.building.specs import spec as naming
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuildSpec, BuiltImage, EngineName, ResourceLimits
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.files.atomic import disk_errors, private_folder

from .build import ProcessBuild, ProcessBuildSettings
from .interpreters import Interpreter, installed_interpreters
from .layout import BuildManifest, Layout, folder_lock, half_built, subfolders
from .session import ProcessSession, abandoned_sessions, new_session_folder
from .tier_cache import TierCache, tier_name


class ProcessEngine:
    """Implements `engine.Engine` with folders below *root*."""

    name = EngineName.PROCESS

    def __init__(
        self,
        root: Path,
        limits: ResourceLimits | None = None,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Keep everything below *root*; *environment* (default: this process's) says how the index is reached."""
        self._root = root.resolve()
        self._images, self._sessions = self._root / "images", self._root / "sessions"
        self._limits = limits or ResourceLimits()
        self._environment = dict(os.environ if environment is None else environment)

    @cached_property
    def isolates_network(self) -> bool:
        """True if this machine allows removing the network from a process."""
        bounds = Bounds(self._limits, isolate_network=True)
        return run_bounded(["/bin/true"], timeout=20, bounds=bounds, environment={}, cwd=Path("/")).ok

    @cached_property
    def confines(self) -> bool:
        """True if this machine allows giving a process its own files, processes and user."""
        return can_confine()

    @cached_property
    def store(self) -> str:
        """Name of the machine, and the folder."""
        return f"{socket.gethostname()}:{self._images}"

    def interpreters(self) -> frozenset[str]:
        """Installed interpreters that the instrument runs on."""
        return frozenset(self._installed) & frozenset(naming.INSTRUMENT_VERSIONS)

    def build(
        self,
        spec: BuildSpec,
        origins: Origins,
        *,
        force: bool = False,
        rebuild: bool = False,
        progress: ProgressReporter | None = None,
    ) -> BuildOutcome:
        """Build *spec* in its own folder; see `Engine.build`. Two builds of one tag wait for each other."""
        tag = naming.task_tag(spec)
        final = Layout(self._images / _folder_name(naming.rebuild_tag(tag) if rebuild else tag))
        self._check_disk()
        with self._lock(tag):
            manifest = final.read_manifest()
            if manifest is not None and not (force or rebuild):
                # housekeeping recognizes by its age that it is in use
                final.manifest.touch()
                return _outcome(final, manifest)
            interpreter = self._interpreter(spec.python)
            work = Layout(self._root / "building" / _folder_name(tag))
            try:
                with disk_errors(f"the build of {spec.task_id} in {self._root}"):
                    remove_tree(work.folder)
                    build = ProcessBuild(self._settings, spec, work, interpreter, progress)
                    manifest = build.run(origins, rebuild=rebuild)
                    remove_tree(final.folder)
                    final.folder.parent.mkdir(parents=True, exist_ok=True)
                    work.folder.rename(final.folder)
            finally:
                remove_tree(work.folder)
            return _outcome(final, manifest)

    def remove_rebuild(self, spec: BuildSpec) -> None:
        """Remove the folder that a rebuild of *spec* left; see `Engine.remove_rebuild`."""
        tag = naming.task_tag(spec)
        with self._lock(tag):
            remove_tree(self._images / _folder_name(naming.rebuild_tag(tag)))

    def exists(self, image: BuiltImage) -> bool:
        """Return True if the folder of *image* is present with exactly that digest."""
        manifest = Layout(Path(image.location)).read_manifest()
        return manifest is not None and manifest.digest == image.digest

    def location_of(self, digest: str) -> str | None:
        """The finished folder that says it has this digest, whoever built it."""
        for folder in subfolders(self._images):
            manifest = Layout(folder).read_manifest()
            if manifest is not None and manifest.digest == digest:
                return str(folder)
        return None

    @contextmanager
    def session(self, image: BuiltImage, *, run_id: str, like: Session | None = None) -> Iterator[Session]:
        """Open a session with the content of the image's folder, or of the session *like*.

        Raises ItemFailure: `image_gone` if the folder is missing or changed; `image_changed` at the end, if code in the
        session wrote to files that the image shares with it. It is gone then.
        """
        if not self.exists(image):
            raise ItemFailure(
                FailureKind.IMAGE_GONE, f"{image.tag} is not in {image.location}", remedy="Build it again"
            )
        # one that is not listed any more still runs the environment that was made of it, but compiles nothing for it
        interpreter, tiers = self._installed.get(image.spec.python), TierCache(self._root)
        folder = new_session_folder(self._sessions, run_id=run_id)
        session = ProcessSession(
            Layout(folder),
            limits=self._limits,
            isolate_network=self.isolates_network,
            confined=self.confines,
            uv=_uv(),
            compiler=str(interpreter.path) if interpreter else None,
            bytecode=partial(tiers.bytecode_in, folder, tier_name(image.spec, interpreter))
            if interpreter
            else nullcontext,
        )
        try:
            self._fill(session, image, like)
            yield session
        finally:
            if written := session.close():
                Layout(Path(image.location)).manifest.unlink(missing_ok=True)
        if written:
            raise ItemFailure(
                FailureKind.IMAGE_CHANGED,
                f"code of {image.spec.task_id} wrote to {written[0]} and {len(written) - 1} other files of its image",
                why="they are installed once for all its sessions",
                remedy="Build it with Docker, where each session has its own",
            )

    def files(self, image: BuiltImage, *, only_environment: bool = False) -> Iterator[ImageFile]:
        """The files of the image's folder."""
        layout = Layout(Path(image.location))
        others = {
            layout.repository: Area.REPOSITORY,
            layout.instrument: Area.TOOLS,
            layout.tests: Area.TOOLS,
            layout.build_venv: Area.TOOLS,
            layout.task: Area.TOOLS,
        }
        for root, area in ({layout.venv: Area.ENVIRONMENT} | ({} if only_environment else others)).items():
            above = layout.folder if area is Area.TOOLS else root
            for path in walk(root):
                facts = path.lstat()
                # a pipe would never end
                if not (stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
                    continue
                yield ImageFile(
                    area,
                    path.relative_to(above).as_posix(),
                    facts.st_uid,
                    str(path.readlink()) if stat.S_ISLNK(facts.st_mode) else None,
                    facts.st_size,
                    partial(_open, path),
                )

    def config(self, image: BuiltImage) -> ImageConfig:
        """Return nothing: a folder has only files."""
        del image
        return ImageConfig()

    def clean(self) -> int:
        """Remove sessions of dead processes, and half-built folders without a builder."""
        return len(self.leftovers(remove=True))

    def leftovers(self, *, remove: bool) -> tuple[str, ...]:
        """Names of the folders that `clean` removes; with *remove*, they are gone."""
        names = []
        for session in abandoned_sessions(self._sessions):
            names.append(session.folder.name)
            if remove:
                session.close()
        for folder in half_built(self._root):
            names.append(folder.name)
            if remove:
                remove_tree(folder)
        return tuple(names)

    def _fill(self, session: ProcessSession, image: BuiltImage, like: Session | None) -> None:
        try:
            # another session is private, but any process may remove or rebuild the image
            if isinstance(like, ProcessSession):
                session.open_like(like)
            else:
                with self._lock(image.tag):
                    session.open(Layout(Path(image.location)))
        except (subprocess.CalledProcessError, OSError) as error:
            raise OutsideSystemError(
                "disk", f"cannot lay {image.tag} into {self._sessions}", why=str(error), remedy="Free some space"
            ) from error

    @cached_property
    def _settings(self) -> ProcessBuildSettings:
        return ProcessBuildSettings(
            self._limits, self.isolates_network, self.confines, _uv(), TierCache(self._root), self._environment
        )

    @property
    def _installed(self) -> dict[str, Interpreter]:
        return installed_interpreters(_uv())

    def _interpreter(self, python: str) -> Interpreter:
        if python in self._installed:
            return self._installed[python]
        raise ItemFailure(
            FailureKind.INTERPRETER,
            f"no Python {python} on this machine",
            why=f"it has {', '.join(sorted(self._installed)) or 'none'}",
            remedy="Install it, perhaps with `uv python install`, or build with Docker",
        )

    def _lock(self, tag: str) -> FileLock:
        return folder_lock(self._root, _folder_name(tag))

    def _check_disk(self) -> None:
        with disk_errors(str(self._root)):
            private_folder(self._root)
            space = os.statvfs(self._root)
        if space.f_bavail * space.f_frsize < 100 * 1024 * 1024:
            raise OutsideSystemError("disk", f"less than 100 MB left at {self._root}", remedy="Free some space")


def _outcome(layout: Layout, manifest: BuildManifest) -> BuildOutcome:
    return BuildOutcome(**dict(manifest), location=str(layout.folder), log=layout.log.read_text(errors="replace"))


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _folder_name(tag: str) -> str:
    return tag.replace("/", "_").replace(":", "_")


def _uv() -> str:
    """The uv of this environment, else the one that a checkout's tools put on PATH."""
    import uv

    return uv.find_uv_bin()
