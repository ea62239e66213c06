"""Tiers that a build finds, and how it marks them as needed; no daemon is used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import docker.errors
import pytest

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.building.engines.docker.tier import TierBuilder
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


def test_a_tier_that_is_there_is_tagged_anew_and_so_young_for_housekeeping() -> None:
    image = Image()
    builder = TierBuilder(daemon_with(image), DockerBuildSettings(ResourceLimits()), "a test")
    built = builder.tier("env", TAG, {}, lambda _folder: pytest.fail("it is there"))
    assert (built.digest, image.tagged) == ("sha256:1", [TAG])


def test_a_tier_that_is_removed_meanwhile_is_built() -> None:
    assert daemon_with(Image(vanishes=True)).in_use(TAG) is None
