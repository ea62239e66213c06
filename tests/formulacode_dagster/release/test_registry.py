from __future__ import annotations

import base64
import contextlib
import io
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import httpx
import pytest
from docker.errors import ImageNotFound
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.release.registry import Registry
from sandbox.registry import app
from sandbox.server import serving

MONTH = "2026-02"
REAL = "127.0.0.1:5000"
PASSWORD = "dckr_pat_SecretOfTheTest"


def test_one_repository_for_all_tags_by_task_and_content(image: BuiltImage) -> None:
    registry = Registry("https://registry.example/", "Acme", "", "", "single")
    assert registry.repository_of(image) == "registry.example/acme/formulacode"
    assert registry.tag_of(image) == "acme__fast.py-7-111111111111"
    assert registry.tag_of(image.model_copy(update={"digest": "sha256:" + "2" * 64})) != registry.tag_of(image)


def test_mirror_mode_has_a_repository_for_each_of_github(image: BuiltImage) -> None:
    registry = Registry("registry.example", "acme", "", "", "mirror")
    assert registry.repository_of(image) == "registry.example/acme/acme__fast.py"
    assert registry.tag_of(image) == "7-111111111111"


def test_without_a_daemon_docker_is_named(image: BuiltImage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    with pytest.raises(OutsideSystemError, match="DOCKER_HOST") as caught:
        Registry(REAL, "acme", "u", PASSWORD, "single").publish(image, month=MONTH)
    assert caught.value.system == "docker"
    pulled = Registry("", "", "", "", "single").pulled(f"{REAL}/acme/formulacode:1", "sha256:1")
    with pytest.raises(OutsideSystemError, match="DOCKER_HOST") as caught, pulled:
        pass
    assert caught.value.system == "docker"


@pytest.fixture
def daemon() -> Iterator[Any]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture
def build(daemon: Any, image: BuiltImage) -> Iterator[Callable[[], BuiltImage]]:
    """Makes a tiny image that differs from every other."""
    made: list[str] = []

    def build() -> BuiltImage:
        location = f"fc-test/release:{os.urandom(6).hex()}"
        archive, content = io.BytesIO(), os.urandom(2_000)
        with tarfile.open(fileobj=archive, mode="w") as tar:
            member = tarfile.TarInfo("file")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        name, _, tag = location.partition(":")
        daemon.api.import_image_from_data(archive.getvalue(), repository=name, tag=tag)
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


@pytest.mark.docker
def test_a_measured_image_is_pushed_and_pulled_back_by_digest(
    host: str, build: Callable[[], BuiltImage], daemon: Any
) -> None:
    image = build()
    published = Registry(host, "acme", "", "", "single").publish(image, month=MONTH)
    assert published.reference.startswith(f"{host}/acme/formulacode:acme__fast.py-7-")
    assert published.digest == published.pulled_digest
    assert published.image_digest == image.digest
    manifest = httpx.get(
        f"http://{host}/v2/acme/formulacode/manifests/{published.digest}",
        headers={"Accept": "application/vnd.docker.distribution.manifest.v2+json"},
    )
    assert manifest.json()["config"]["digest"] == image.digest
    left = daemon.images.get(image.location).attrs
    assert left["RepoTags"] == [image.location]
    assert not [digest for digest in left["RepoDigests"] if host in digest]


@pytest.mark.docker
def test_publishing_again_pushes_nothing(tmp_path: Path, build: Callable[[], BuiltImage]) -> None:
    image = build()
    with serving(app(tmp_path)) as url:
        registry = Registry(url, "acme", "", "", "mirror")
        first = registry.publish(image, month=MONTH)
        before = httpx.get(f"{url}/_sandbox/calls").json()["by_method"]
        assert registry.publish(image, month=MONTH) == first
        after = httpx.get(f"{url}/_sandbox/calls").json()["by_method"]
    assert {method: after[method] for method in ("POST", "PUT")} == {
        method: before[method] for method in ("POST", "PUT")
    }


@pytest.mark.docker
def test_a_published_image_is_pulled_by_digest_as_long_as_it_is_needed(
    build: Callable[[], BuiltImage], daemon: Any, tmp_path: Path
) -> None:
    image = build()
    with serving(app(tmp_path)) as url:
        published = Registry(url, "acme", "", "", "single").publish(image, month=MONTH)
        daemon.images.remove(image.location)
        # whoever replays it has no settings of the registry's owner
        anybody = Registry("", "", "", "", "single")
        with anybody.pulled(published.reference, published.digest) as digest:
            assert digest == image.digest
            assert daemon.images.get(digest).id == image.digest
        with pytest.raises(ImageNotFound):
            daemon.images.get(image.digest)
        with (
            pytest.raises(ItemFailure, match="is not in its registry") as missing,
            anybody.pulled(published.reference, "sha256:" + "0" * 64),
        ):
            pass
        assert missing.value.kind == "image_missing"
    with pytest.raises(OutsideSystemError) as dead, anybody.pulled(published.reference, published.digest):
        pass
    assert dead.value.system == "registry"


@pytest.mark.docker
def test_a_tag_that_holds_another_image_is_never_overwritten(
    host: str, build: Callable[[], BuiltImage], daemon: Any
) -> None:
    mine, other = build(), build()
    registry = Registry(host, "acme", "", "", "single")
    repository, tag = registry.repository_of(mine), registry.tag_of(mine)
    daemon.api.tag(other.location, repository, tag)
    daemon.api.push(repository, tag=tag, auth_config={})
    daemon.images.remove(f"{repository}:{tag}")
    digest = daemon.images.get_registry_data(f"{repository}:{tag}", auth_config={}).id
    with pytest.raises(ItemFailure, match="never overwritten") as caught:
        registry.publish(mine, month=MONTH)
    assert caught.value.kind == "published_tag"
    assert daemon.images.get_registry_data(f"{repository}:{tag}", auth_config={}).id == digest


@pytest.mark.docker
def test_an_image_that_is_gone_is_not_published(build: Callable[[], BuiltImage], daemon: Any) -> None:
    image = build()
    daemon.images.remove(image.location)
    with pytest.raises(ItemFailure, match="no longer on this machine") as caught:
        Registry(REAL, "acme", "", "", "single").publish(image, month=MONTH)
    assert caught.value.kind == "image_missing"


@pytest.mark.docker
def test_a_dead_registry_stops_the_stage(build: Callable[[], BuiltImage]) -> None:
    with pytest.raises(OutsideSystemError, match="FC_REGISTRY_URL") as caught:
        Registry("127.0.0.1:9", "acme", "someone", PASSWORD, "single").publish(build(), month=MONTH)
    assert caught.value.system == "registry"
    assert PASSWORD not in str(caught.value)


@pytest.mark.docker
@pytest.mark.parametrize("username", ["", "someone"])
def test_a_registry_that_refuses_us_names_the_settings(build: Callable[[], BuiltImage], username: str) -> None:
    async def refuse(request: Request) -> JSONResponse:
        errors = {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required", "detail": None}]}
        return JSONResponse(errors, status_code=401, headers={"WWW-Authenticate": 'Basic realm="test"'})

    with serving(Starlette(routes=[Route("/{path:path}", refuse, methods=["GET", "HEAD", "POST"])])) as url:
        registry = Registry(url, "acme", username, PASSWORD if username else "", "single")
        with pytest.raises(ConfigurationError, match="DOCKERHUB_TOKEN") as caught:
            registry.publish(build(), month=MONTH)
    assert PASSWORD not in str(caught.value)


def _guarded(registry: ASGIApp) -> ASGIApp:
    """*registry* behind a user name and a password."""
    expected = b"Basic " + base64.b64encode(f"someone:{PASSWORD}".encode())

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != expected:
            errors = {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required", "detail": None}]}
            answer = JSONResponse(errors, status_code=401, headers={"WWW-Authenticate": 'Basic realm="test"'})
            await answer(scope, receive, send)
            return
        await registry(scope, receive, send)

    return guarded


@pytest.mark.docker
def test_the_right_password_opens_a_guarded_registry_and_a_wrong_one_does_not(
    build: Callable[[], BuiltImage], tmp_path: Path
) -> None:
    image = build()
    with serving(_guarded(app(tmp_path))) as url:
        with pytest.raises(ConfigurationError, match="DOCKERHUB_TOKEN") as caught:
            Registry(url, "acme", "someone", "WrongPassword", "single").publish(image, month=MONTH)
        published = Registry(url, "acme", "someone", PASSWORD, "single").publish(image, month=MONTH)
    assert "WrongPassword" not in str(caught.value)
    assert published.digest == published.pulled_digest


@pytest.mark.docker
def test_credentials_are_not_written_to_the_home_folder(build: Callable[[], BuiltImage], tmp_path: Path) -> None:
    config = Path("~/.docker/config.json").expanduser()
    before = config.read_bytes() if config.exists() else None
    with serving(app(tmp_path)) as url:
        Registry(url, "acme", "someone", PASSWORD, "single").publish(build(), month=MONTH)
    assert (config.read_bytes() if config.exists() else None) == before
