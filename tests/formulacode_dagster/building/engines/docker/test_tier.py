"""Tiers that a build finds, and how it marks them as needed; no daemon is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker.errors
import pytest

from formulacode_dagster.building.engines import free_space
from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.building.engines.docker.tier import TierBuilder
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.models.errors import OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.image import ResourceLimits

TAG = "formulacode/env:1"


class Image:
    """An image that may be removed between two questions."""

    id = "sha256:1"
    attrs = {"Size": 1}  # noqa: RUF012 - as the SDK has it

    def __init__(self, *, vanishes: bool = False) -> None:
        self.vanishes = vanishes
        self.tagged: list[str] = []

    def tag(self, repository: str, tag: str) -> None:
        if self.vanishes:
            raise docker.errors.ImageNotFound("gone")
        self.tagged.append(f"{repository}:{tag}")


def daemon_with(image: Image) -> DockerDaemon:
    daemon: Any = DockerDaemon()
    daemon.client = SimpleNamespace(images=SimpleNamespace(get=lambda _reference: image))
    return daemon


class FailingDaemon(DockerDaemon):
    """One whose builds end with *log*, and whose folder is *root*."""

    def __init__(self, log: str, root: Path | None) -> None:
        self._log = log
        self.data_root = root

    def cores(self, cpus: float) -> int:
        return int(cpus)

    def in_use(self, tag: str) -> None:
        """There is no such image."""

    def run(self, arguments: Sequence[str], *, progress: Any = None, **_: Any) -> Completed:
        for line in self._log.split("\n"):
            progress(line)
        return Completed(1, b"", b"", 1.0)


STEP = 'ERROR: failed to solve: process "install-environment" did not complete successfully: exit code: 1'
OF_STEP = f"#9 2.1 error: No space left on device (os error 28)\n{STEP}"
OF_BUILDKIT = "ERROR: failed to solve: failed to export layer: write /var/lib/docker/x: no space left on device"


@pytest.mark.parametrize(
    ("log", "is_local", "full_bytes", "error"),
    [
        (OF_STEP, True, 0, SuspectedOutage),
        (OF_STEP, False, 1 << 60, SuspectedOutage),
        (OF_STEP, True, 1 << 60, OutsideSystemError),
        (OF_BUILDKIT, False, 0, OutsideSystemError),
    ],
    ids=["disk has space", "disk of another machine", "disk is full", "BuildKit says so"],
)
def test_a_step_that_reports_a_full_disk_stops_the_stage_only_if_the_disk_is_full(
    log: str,
    is_local: bool,
    full_bytes: int,
    error: type[Exception],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(free_space, "FULL_BYTES", full_bytes)
    daemon = FailingDaemon(log, tmp_path if is_local else None)
    with pytest.raises(error) as caught:
        TierBuilder(daemon, DockerBuildSettings(ResourceLimits()), "a test").tier("env", TAG, {}, lambda _: None)
    assert caught.value.system == "disk"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("host", "is_known"), [("unix:///var/run/docker.sock", True), ("tcp://builder:2376", False), ("ssh://b", False)]
)
def test_the_folder_of_a_daemon_is_known_only_on_this_machine(host: str, is_known: bool, tmp_path: Path) -> None:
    daemon: Any = DockerDaemon()
    daemon.environment = {"DOCKER_HOST": host}
    daemon.client = SimpleNamespace(info=lambda: {"DockerRootDir": str(tmp_path)})
    assert daemon.data_root == (tmp_path if is_known else None)
    daemon = DockerDaemon()
    daemon.environment = {}
    daemon.client = SimpleNamespace(info=lambda: {"DockerRootDir": str(tmp_path / "gone")})
    assert daemon.data_root is None


def test_a_tier_that_is_there_is_tagged_anew_and_so_young_for_housekeeping() -> None:
    image = Image()
    builder = TierBuilder(daemon_with(image), DockerBuildSettings(ResourceLimits()), "a test")
    built = builder.tier("env", TAG, {}, lambda _folder: pytest.fail("it is there"))
    assert (built.digest, image.tagged) == ("sha256:1", [TAG])


def test_a_tier_that_is_removed_meanwhile_is_built() -> None:
    assert daemon_with(Image(vanishes=True)).in_use(TAG) is None
