"""One tier after the other of a build, with BuildKit: found by its tag, or built."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from formulacode_dagster.building.engines.failures import (
    DISK,
    BuildFailure,
    code_of_step,
    docker_is_dead,
    docker_outage,
    docker_reports_full_disk,
    failure_of,
    note_index,
    registry_is_busy,
    registry_outage,
)
from formulacode_dagster.building.engines.free_space import SpaceWatch
from formulacode_dagster.building.engines.scratch import scratch_folder
from formulacode_dagster.building.specs import context, recipes
from formulacode_dagster.building.specs import spec as naming
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import FormulaCodeError, OutsideSystemError
from formulacode_dagster.models.image import Tier
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.last_answers import note_answer

from .daemon import INSTALLATION_LABEL, LABEL, DockerDaemon
from .settings import DockerBuildSettings
from .toolchain import OS_DIGEST_LABEL, os_digest

CRATES_LOST = "formulacode: the crates of Cargo.lock cannot be fetched"
_NO_IMAGE = re.compile(r"failed to resolve source metadata|pull access denied|manifest unknown", re.IGNORECASE)
_OFFLINE = re.compile(r'process "[^"]*install-package"')

_tag_locks: dict[str, threading.Lock] = {}
_tag_locks_guard = threading.Lock()


@dataclass(frozen=True)
class BuiltTier:
    """A tier that is here."""

    name: str
    tag: str
    digest: str
    size: int
    seconds: float

    def over(self, below: BuiltTier | None = None) -> Tier:
        """Return the tier with its additions to the one *below* it."""
        size = self.size - (below.size if below else 0)
        return Tier(name=self.name, tag=self.tag, seconds=self.seconds, size_bytes=size)


@dataclass
class TierBuilder:
    """Builds tiers within one deadline, and keeps the log of all of them."""

    daemon: DockerDaemon
    settings: DockerBuildSettings
    what: str
    """The subject of the build, as errors name it."""
    progress: ProgressReporter | None = None
    _lines: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.settings.limits.build_seconds

    @property
    def log(self) -> str:
        """The built image, and the logs of its builds."""
        return "".join(f"{line}\n" for line in self._lines)

    def base(self, parts: naming.BaseParts) -> BuiltTier:
        """Build the `base` tier of *parts*; raises as `tier`."""
        os_image = naming.resolved_os_image(parts)
        return self.tier(
            "base", naming.base_tag(parts), {"OS_IMAGE": os_image}, partial(context.write_base_tier, parts)
        )

    def tier(
        self,
        name: str,
        tag: str,
        arguments: Mapping[str, str],
        fill: Callable[[Path], None],
        *,
        labels: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> BuiltTier:
        """The tier *name*, out of the folder that *fill* fills; with *force* built though it is there.

        Raises the errors of `failure_of`, and OutsideSystemError when Docker is gone.
        """
        started = time.monotonic()
        # Tasks that are built side by side need the same lower tiers.
        with _lock_of(tag):
            image = None if force else self.daemon.in_use(tag)
            if image is None:
                self._say(f"$ build {tag}")
                with scratch_folder() as folder:
                    fill(folder)
                    cores = self.daemon.cores(self.settings.limits.cpus)
                    (folder / "cores").write_text(f"{cores}\n")
                    (folder / "cores-online").write_text(f"0-{cores - 1}\n")
                    self._build(name, tag, arguments, folder, labels=labels or {}, again=force)
                image = self.daemon.image(tag)
            else:
                self._say(f"$ {tag} is there already")
        if image is None:
            raise OutsideSystemError("docker", f"{tag} was built, but is not there", remedy="Use Docker's own builder")
        return BuiltTier(name, tag, str(image.id), int(image.attrs["Size"]), time.monotonic() - started)

    def _build(
        self,
        name: str,
        tag: str,
        arguments: Mapping[str, str],
        folder: Path,
        *,
        labels: Mapping[str, str],
        again: bool,
    ) -> None:
        command = ["buildx", "build", "--progress", "plain", "--load", "--tag", tag]
        command += ["--no-cache"] if again else []
        command += ["--file", str(recipes.dockerfile(name))]
        all_labels = {LABEL: "1", f"{LABEL}.tier": name, **labels}
        if self.settings.installation:
            all_labels[INSTALLATION_LABEL] = self.settings.installation
        if name == "base":
            all_labels[OS_DIGEST_LABEL] = os_digest(self.daemon, arguments["OS_IMAGE"])
        command += [f"--label={key}={value}" for key, value in all_labels.items()]
        command += [f"--build-arg={key}={value}" for key, value in arguments.items()]
        with self.settings.options() as options, SpaceWatch(self.daemon.data_root) as space:
            done = self.daemon.run(
                [*command, *options, str(folder)],
                timeout=max(0.1, self._deadline - time.monotonic()),
                progress=self._say,
            )
        if not done.ok:
            raise self._failure(name, arguments, timed_out=done.timed_out, disk_was_full=space.was_full)
        note_index(self.log)
        if name == "task":
            # a whole image fits on the disk; a lower tier may be small
            note_answer(DISK)

    def _failure(
        self, tier: str, arguments: Mapping[str, str], *, timed_out: bool, disk_was_full: bool
    ) -> FormulaCodeError:
        end = "\n".join(self._lines[-15:])
        what = f"{tier} tier of {self.what}"
        if not timed_out and docker_is_dead(end):
            return docker_outage(what)
        if tier == "base" and _NO_IMAGE.search(end) and registry_is_busy(end):
            # an older interpreter's image would be no answer to that
            return registry_outage(arguments["OS_IMAGE"], end)
        if tier == "base" and _NO_IMAGE.search(end):
            return BuildFailure(
                FailureKind.INTERPRETER,
                f"OS image {arguments['OS_IMAGE']} cannot be had",
                log=self.log,
                stage=tier,
                remedy="Pull it, or set FC_OS_IMAGE to one that this machine has",
            )
        if CRATES_LOST in end:
            return BuildFailure(
                FailureKind.CRATES, f"{what}: the crates of Cargo.lock cannot be fetched", log=self.log, stage=tier
            )
        return failure_of(
            what,
            stage=tier,
            rc=code_of_step(end),
            log=self.log,
            online=_OFFLINE.search(end) is None,
            timed_out=timed_out,
            seconds=self.settings.limits.build_seconds,
            disk_is_full=disk_was_full or docker_reports_full_disk(end),
        )

    def _say(self, line: str) -> None:
        self._lines.append(line)
        if self.progress is not None:
            self.progress(line)


def _lock_of(tag: str) -> threading.Lock:
    with _tag_locks_guard:
        return _tag_locks.setdefault(tag, threading.Lock())
