"""The contract between the stages and an engine that builds and runs images.

`DockerEngine` and `ProcessEngine` implement it; nothing else in the platform knows which of them is at work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.image import BuildSpec, BuiltImage, EngineName, Tier, Toolchain

from .files import ImageConfig, ImageFile


@dataclass(frozen=True)
class Completed:
    """A command that ended, or was ended. `timed_out` is never a success."""

    rc: int
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """True if it ended by itself with status 0."""
        return self.rc == 0 and not self.timed_out


@dataclass(frozen=True)
class BuildOutcome:
    """Result of a build."""

    tag: str
    digest: str
    location: str
    size_bytes: int
    seconds: float
    tiers: tuple[Tier, ...]
    toolchain: Toolchain
    log: str


class Session(Protocol):
    """A disposable place in which the image's code runs: a container, or a folder like the built one.

    No network, no credentials, no host folder to write, limited CPU, memory, processes and time. Changes made in a
    session are gone when it closes.
    """

    python: str
    """Path of the interpreter that has the locked environment."""
    repository: str
    """Path of the checkout, at the base commit, writable by the session's user."""
    harness: str
    """Path of a folder that the session's user can read and not write (see `put`)."""
    tests: str
    """Path of the folder with the test requirements that are not in the lock; it may be missing."""

    compiler: str | None
    """An interpreter of the host whose bytecode the session's interpreter understands; None if there is none."""
    image: str | None
    """Digest of the image it was opened in; None in a folder of the host."""

    def put(self, name: str, content: bytes, *, executable: bool = False) -> str:
        """Place a file in the harness folder, owned by the host's side; returns its path in the session."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> Completed:
        """Run a command as the unprivileged user. On timeout every process it started is killed.

        Without *cwd* it runs outside the checkout, so that sources do not shadow the built package.
        """

    def reinstall(self, *, timeout: float, environment: Mapping[str, str] | None = None) -> Completed:
        """Reinstall the package from the current checkout the way the image was built, offline.

        *environment* holds further variables for the build.
        """


class Engine(Protocol):
    """Builds images from specs, and opens sessions in them."""

    name: EngineName

    @property
    def store(self) -> str:
        """Identity of the store of its images; raises OutsideSystemError when it is gone."""

    def interpreters(self) -> frozenset[str] | None:
        """The `3.x` versions it can provide; None when any can be fetched."""

    def build(
        self,
        spec: BuildSpec,
        origins: Origins,
        *,
        force: bool = False,
        rebuild: bool = False,
        progress: ProgressReporter | None = None,
    ) -> BuildOutcome:
        """Build *spec* from the repositories of *origins*; with *force*, its task tier though it is there.

        With *rebuild*, `env` and `task` are built again without a cache, under tags of their own (`rebuild_tag`).

        Raises ItemFailure (kind `build`, `timeout`, `interpreter`) with the log's tail, OutsideSystemError when the
        daemon or the disk is gone. Building the same spec again costs next to nothing.
        """

    def remove_rebuild(self, spec: BuildSpec) -> None:
        """Remove the results of a rebuild of *spec*; it is fine if there are none."""

    def exists(self, image: BuiltImage) -> bool:
        """Return True if exactly this image (by digest) is still here."""

    def location_of(self, digest: str) -> str | None:
        """Return the location of the image of this content digest, see `BuiltImage.location`; None if it is absent."""

    def session(
        self, image: BuiltImage, *, run_id: str, like: Session | None = None
    ) -> AbstractContextManager[Session]:
        """Open a session; its container or folder is removed afterwards in any case.

        With *like*, an open session of this engine, it starts from that one's current content.
        """

    def files(self, image: BuiltImage, *, only_environment: bool = False) -> Iterator[ImageFile]:
        """All files of the image, or only those of its environment, listed without running anything of it.

        Each can be read until the next is taken.
        """

    def config(self, image: BuiltImage) -> ImageConfig:
        """Configuration of the image besides its files: environment variables, labels, history."""

    def clean(self) -> int:
        """Remove leftovers of killed runs; return the number removed."""


def keeps(engine: Engine, image: BuiltImage) -> bool:
    """Return True if *image* was built into the store of *engine*, not into that of another machine."""
    return image.store in ("", engine.store)
