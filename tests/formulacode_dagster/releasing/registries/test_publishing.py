from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from docker.errors import ImageNotFound

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.releasing.registries.accounts import STRANGER, Account
from formulacode_dagster.releasing.registries.publishing import Registry
from sandbox.registry import app
from sandbox.server import serving
from tests.support.registries import (
    MONTH,
    PASSWORD,
    USER,
    MakeImage,
    Trouble,
    Waits,
    guarded,
    in_front,
    locked_registry,
    refusal,
    with_tokens,
)


def test_one_repository_for_all_tags_by_task_and_content(image: BuiltImage) -> None:
    registry = Registry("https://registry.example/", "Acme", STRANGER, "single")
    assert registry.repository_of(image) == "registry.example/acme/formulacode"
    assert registry.tag_of(image) == "acme__fast.py-7-111111111111"
    assert registry.tag_of(image.model_copy(update={"digest": "sha256:" + "2" * 64})) != registry.tag_of(image)


def test_mirror_mode_has_a_repository_for_each_of_github(image: BuiltImage) -> None:
    registry = Registry("registry.example", "acme", STRANGER, "mirror")
    assert registry.repository_of(image) == "registry.example/acme/acme__fast.py"
    assert registry.tag_of(image) == "7-111111111111"


def test_without_a_daemon_docker_is_named(image: BuiltImage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    with serving(app(tmp_path)) as url, pytest.raises(OutsideSystemError, match="DOCKER_HOST") as caught:
        Registry(url, "acme", Account("u", PASSWORD), "single").publish(image, month=MONTH)
    assert caught.value.system == "docker"
    pulled = Registry("", "", STRANGER, "single").pulled("127.0.0.1:9/acme/formulacode:1", "sha256:1")
    with pytest.raises(OutsideSystemError, match="DOCKER_HOST") as caught, pulled:
        pass
    assert caught.value.system == "docker"


@pytest.mark.docker
def test_a_measured_image_is_pushed_and_pulled_back_by_digest(host: str, build: MakeImage, daemon: Any) -> None:
    image = build()
    published = Registry(host, "acme", STRANGER, "single").publish(image, month=MONTH)
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
def test_publishing_again_pushes_nothing(tmp_path: Path, build: MakeImage) -> None:
    image = build()
    with serving(app(tmp_path)) as url:
        registry = Registry(url, "acme", STRANGER, "mirror")
        first = registry.publish(image, month=MONTH)
        assert (first.pushed_bytes, first.saved_bytes) == (first.size_bytes, 0)
        before = httpx.get(f"{url}/_sandbox/calls").json()["by_method"]
        again = Registry(url, "acme", STRANGER, "mirror").publish(image, month=MONTH)
        assert again == first.model_copy(update={"pushed_bytes": 0, "saved_bytes": first.size_bytes})
        after = httpx.get(f"{url}/_sandbox/calls").json()["by_method"]
    assert {method: after[method] for method in ("POST", "PUT")} == {
        method: before[method] for method in ("POST", "PUT")
    }


@pytest.mark.docker
def test_a_published_image_is_pulled_by_digest_as_long_as_it_is_needed(
    build: MakeImage, daemon: Any, tmp_path: Path
) -> None:
    image = build()
    with serving(app(tmp_path)) as url:
        published = Registry(url, "acme", STRANGER, "single").publish(image, month=MONTH)
        daemon.images.remove(image.location)
        # whoever replays it has no settings of the registry's owner
        anybody = Registry("", "", STRANGER, "single")
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
def test_a_tag_that_holds_another_image_is_never_overwritten(host: str, build: MakeImage, daemon: Any) -> None:
    mine, other = build(), build()
    registry = Registry(host, "acme", STRANGER, "single")
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
def test_an_image_that_is_gone_is_not_published(build: MakeImage, daemon: Any, tmp_path: Path) -> None:
    image = build()
    daemon.images.remove(image.location)
    with serving(app(tmp_path)) as url, pytest.raises(ItemFailure, match="no longer on this machine") as caught:
        Registry(url, "acme", STRANGER, "single").publish(image, month=MONTH)
    assert caught.value.kind == "image_gone"


@pytest.mark.docker
def test_a_dead_registry_stops_the_stage(build: MakeImage) -> None:
    registry = Registry("127.0.0.1:9", "acme", Account("someone", PASSWORD), "single", Waits().limits)
    image = build()
    with pytest.raises(OutsideSystemError, match="FC_REGISTRY_URL") as caught:
        registry.publish(image, month=MONTH)
    assert caught.value.system == "registry"
    assert PASSWORD not in str(caught.value)


@pytest.mark.docker
def test_only_the_right_password_opens_a_guarded_registry(build: MakeImage, tmp_path: Path) -> None:
    image = build()
    with serving(guarded(app(tmp_path))) as url:
        for wrong in (STRANGER, Account(USER, "WrongPassword")):
            with pytest.raises(ConfigurationError, match="DOCKERHUB_TOKEN") as caught:
                Registry(url, "acme", wrong, "single").publish(image, month=MONTH)
        published = Registry(url, "acme", Account("someone", PASSWORD), "single").publish(image, month=MONTH)
    assert "WrongPassword" not in str(caught.value)
    assert published.digest == published.pulled_digest
    assert published.is_public is False


@pytest.mark.docker
def test_credentials_are_not_written_to_the_home_folder(build: MakeImage, tmp_path: Path) -> None:
    config = Path("~/.docker/config.json").expanduser()
    before = config.read_bytes() if config.exists() else None
    with serving(app(tmp_path)) as url:
        Registry(url, "acme", Account("someone", PASSWORD), "single").publish(build(), month=MONTH)
    assert (config.read_bytes() if config.exists() else None) == before


@pytest.mark.docker
def test_layers_of_another_image_are_neither_pushed_nor_pulled_again(host: str, build: MakeImage, daemon: Any) -> None:
    below = build()
    above = build(below)
    registry = Registry(host, "acme", STRANGER, "single")
    first, second = registry.publish(below, month=MONTH), registry.publish(above, month=MONTH)
    assert first.pulled_bytes == first.size_bytes
    assert second.saved_bytes > 2_000
    assert second.pushed_bytes == second.pulled_bytes == second.size_bytes - second.saved_bytes
    elsewhere = Registry(host, "acme", STRANGER, "single").publish(above, month=MONTH)
    assert elsewhere.pulled_bytes == elsewhere.size_bytes


@pytest.mark.docker
def test_a_push_that_is_cut_leaves_no_tag_and_is_taken_up_where_it_was(build: MakeImage, tmp_path: Path) -> None:
    image = build()
    cut = Trouble("PUT", "/manifests/", refusal(507, "UNKNOWN"), times=99)
    with serving(in_front(app(tmp_path), cut)) as url:
        registry = Registry(url, "acme", STRANGER, "single", Waits().limits)
        with pytest.raises(OutsideSystemError) as caught:
            registry.publish(image, month=MONTH)
        assert caught.value.system == "registry"
        assert httpx.get(f"{url}/v2/acme/formulacode/manifests/{registry.tag_of(image)}").status_code == 404
        cut.times = 0
        published = registry.publish(image, month=MONTH)
    assert published.saved_bytes > 2_000
    assert published.pulled_bytes == published.size_bytes


@pytest.mark.docker
@pytest.mark.variant("rate limit of a registry", most=1)
@pytest.mark.parametrize(("header", "waited"), [({"Retry_After": "17"}, 17), ({}, 44)])
def test_a_rate_limit_is_waited_for_by_reader_and_daemon(
    build: MakeImage, tmp_path: Path, header: dict[str, str], waited: int
) -> None:
    limited = refusal(429, "TOOMANYREQUESTS", **header)
    # the daemon does not tell what it was asked for
    reading, pushing = Trouble("GET", "/manifests/", limited), Trouble("POST", "/blobs/uploads/", limited)
    asked = Trouble("HEAD", "/manifests/", limited)
    waits = Waits(44)
    served = in_front(in_front(in_front(app(tmp_path), reading), pushing), asked)
    with serving(served) as url:
        published = Registry(url, "acme", STRANGER, "single", waits.limits).publish(build(), month=MONTH)
    assert published.digest == published.pulled_digest
    assert waits.seconds == [waited, waited]


@pytest.mark.docker
@pytest.mark.variant("registry that gives tokens", most=1)
@pytest.mark.parametrize("is_public", [True, False])
def test_what_a_stranger_gets_is_pulled_where_strangers_may(build: MakeImage, tmp_path: Path, is_public: bool) -> None:
    with serving(with_tokens(app(tmp_path), is_public=is_public)) as url:
        published = Registry(url, "acme", Account(USER, PASSWORD), "single").publish(build(), month=MONTH)
        with pytest.raises(ConfigurationError, match="DOCKERHUB_TOKEN"):
            Registry(url, "acme", STRANGER, "single").publish(build(), month=MONTH)
    assert published.is_public is is_public
    assert published.pulled_bytes == published.size_bytes


@pytest.mark.docker
@pytest.mark.variant("mode of the real registry", most=1)
@pytest.mark.parametrize("mode", ["single", "mirror"])
def test_the_real_registry_with_a_password_and_tls(
    mode: Any, build: MakeImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked_registry(tmp_path) as url:
        ours, host = Account(USER, PASSWORD), url.removeprefix("https://")
        with pytest.raises(OutsideSystemError, match="CERTIFICATE_VERIFY_FAILED"):
            Registry(url, "acme", ours, mode, Waits().limits).publish(build(), month=MONTH)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        image = build()
        published = Registry(url, "acme", ours, mode).publish(image, month=MONTH)
        assert Registry(url, "acme", ours, mode).publish(image, month=MONTH).pushed_bytes == 0
        with pytest.raises(ConfigurationError, match="DOCKERHUB_TOKEN"):
            Registry(url, "acme", Account(USER, "wrong"), mode).publish(build(), month=MONTH)
    name = "formulacode" if mode == "single" else "acme__fast.py"
    assert published.reference.startswith(f"{host}/acme/{name}:")
    assert (published.is_public, published.pulled_digest) == (False, published.digest)
