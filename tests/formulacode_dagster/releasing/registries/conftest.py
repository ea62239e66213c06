"""Tiny images, and registries that they are pushed to."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import httpx
import pytest
from docker.errors import ImageNotFound

from formulacode_dagster.models.image import BuiltImage
from sandbox.registry import app
from sandbox.server import serving
from tests.support.registries import MakeImage

REAL = "127.0.0.1:5000"


@pytest.fixture
def daemon() -> Iterator[Any]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture
def build(daemon: Any, image: BuiltImage) -> Iterator[MakeImage]:
    """Makes a tiny image that differs from every other: of one layer, or of one more than another image."""
    made: list[str] = []

    def build(base: BuiltImage | None = None) -> BuiltImage:
        location = f"fc-test/release:{os.urandom(6).hex()}"
        archive, content = io.BytesIO(), os.urandom(2_000)
        with tarfile.open(fileobj=archive, mode="w") as tar:
            member = tarfile.TarInfo("file")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        name, _, tag = location.partition(":")
        if base is None:
            daemon.api.import_image_from_data(archive.getvalue(), repository=name, tag=tag)
        else:
            container = daemon.containers.create(base.location, "/file")
            container.put_archive("/", archive.getvalue())
            container.commit(name, tag)
            container.remove()
        made.append(location)
        return image.model_copy(update={"location": location, "digest": daemon.images.get(location).id})

    yield build
    for location in made:
        with contextlib.suppress(ImageNotFound):
            daemon.images.remove(location)


@pytest.fixture(params=["sandbox", "real"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The sandbox's registry, and the distribution project's where `.ci/install-registry` started one."""
    if request.param == "sandbox":
        with serving(app(tmp_path / "registry")) as url:
            yield url.removeprefix("http://")
        return
    try:
        is_there = httpx.get(f"http://{REAL}/v2/", timeout=5).is_success
    except httpx.HTTPError:
        is_there = False
    if not is_there:
        pytest.skip(f"no registry on {REAL}; run .ci/install-registry")
    yield REAL
