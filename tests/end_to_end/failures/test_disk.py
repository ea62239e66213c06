"""The disk is full while something is written: one message, nothing half-written, and the next run finishes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from formulacode_dagster.models.items import ItemState, Stage
from tests.support.sampling import sampled

TASK = "sample-org/gridpath#12"
ONLY = {"only": (TASK,)}

pytestmark = [pytest.mark.slow, pytest.mark.variant("full disk in a month", most=1)]


@contextmanager
def tiny_disk(folder: Path, options: str) -> Iterator[Path]:
    """*folder* is a file system of its own for the length of the block, as small as *options* say."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"this user may not mount a small file system: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Leave nothing free; returns the file that takes it all."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65536))
        except OSError:
            pass
        try:
            while True:
                file.write(b"\0")
        except OSError:
            return filler


@pytest.mark.parametrize(
    ("options", "complaint"),
    sampled([("size=40m", "less than 100 MB left"), ("size=400m,nr_inodes=300", "no space left")], most=1, of=__name__),
)
def test_a_full_disk_during_a_build_stops_the_stage_without_half_images(seeded, options, complaint) -> None:
    platform = seeded(Stage.REPOSITORIES, Stage.PULL_REQUESTS, Stage.CLASSIFICATIONS, Stage.ENVIRONMENTS, **ONLY)
    builds = platform.home / "builds"
    with platform.serve():
        with tiny_disk(builds, options):
            said = platform.run(Stage.IMAGES, **ONLY)
            assert not said.succeeded
            said.tells("failed: images: disk: ", complaint, "Free some space")
            assert len(said.complaints) == 1
            assert TASK not in platform.entries(Stage.IMAGES), "no failure of the item's"
            assert not any(builds.glob("images/*/manifest.json"))
            assert not any(builds.glob("building/*"))
        assert platform.run(Stage.IMAGES, **ONLY).succeeded
    assert platform.entries(Stage.IMAGES)[TASK].state is ItemState.DONE


def test_mirrors_on_a_full_disk_stop_the_stage_and_are_completed_later(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES)
    platform.settings["FC_MIRRORS_DIR"] = str(platform.home / "mirrors")
    with platform.serve():
        with tiny_disk(platform.home / "mirrors", "size=64k") as mirrors:
            said = platform.run(Stage.PULL_REQUESTS)
            assert not said.succeeded
            said.tells("failed: pull_requests: disk: ", "No space left on device", "FC_MIRRORS_DIR")
            assert len(said.complaints) == 1
            assert not any(mirrors.glob("*/*.git"))
        assert platform.run(Stage.PULL_REQUESTS).succeeded
    assert platform.states(Stage.PULL_REQUESTS) == {ItemState.DONE: 22}


def test_a_whole_home_on_a_full_disk_is_one_message_and_nothing_is_lost(own_platform) -> None:
    platform = own_platform
    with tiny_disk(platform.home, "size=160m") as home, platform.serve(hold=("model", 4)) as served:
        with platform.started("run", "--month", "2026-02") as process:
            served.wait_until_held()
            filler = fill(home)
            served.release()
            filled = platform.ended(process)
        assert not filled.succeeded
        full = platform.fc_data("run", "--month", "2026-02", "--stage", "classifications")
        assert not full.succeeded
        for said in (filled, full):
            said.tells("error: ", "ree disk space", "run the month again")
        filler.unlink()
        said = platform.fc_data("run", "--month", "2026-02", "--stage", "classifications")
        assert said.succeeded, said.text
        assert platform.states(Stage.PULL_REQUESTS) == {ItemState.DONE: 22}
        assert platform.states(Stage.CLASSIFICATIONS) == {ItemState.DONE: 14, ItemState.REJECTED: 8}
        platform.close()
