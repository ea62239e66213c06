from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.responses import Response

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.releasing.registries.accounts import STRANGER
from formulacode_dagster.releasing.registries.client import RegistryClient
from formulacode_dagster.releasing.registries.manifests import ImageManifest, digest_of
from formulacode_dagster.releasing.registries.provenance import PROVENANCE_TYPE
from formulacode_dagster.releasing.registries.publishing import Registry
from formulacode_dagster.releasing.registries.referrers import attach, attached_content
from formulacode_dagster.releasing.registries.sbom import SBOM_TYPE
from sandbox.registry import app
from sandbox.server import serving
from tests.support.command_line import FcData
from tests.support.registries import MONTH, MakeImage, Trouble, Waits, image_of, in_front

NAME = "acme/tasks"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[RegistryClient]:
    with serving(app(tmp_path)) as url, closing(RegistryClient(url, STRANGER, Waits().limits)) as client:
        yield client


def push(client: RegistryClient) -> ImageManifest:
    manifest = image_of(client.put_blob(NAME, b"{}", "application/json"))
    client.put_manifest(NAME, manifest.digest, manifest)
    return manifest


def test_something_is_attached_once_of_each_type(client: RegistryClient) -> None:
    image = push(client)
    first = attach(client, NAME, image, "text/a", b"first", "a")
    assert attach(client, NAME, image, "text/a", b"later", "a") == first
    assert attach(client, NAME, image, "text/b", b"other", "b") != first
    assert attached_content(client, NAME, image.digest, "text/a") == b"first"
    assert attached_content(client, NAME, image.digest, "text/b") == b"other"


def test_without_anything_attached_what_to_do_is_told(client: RegistryClient) -> None:
    image = push(client)
    with pytest.raises(ItemFailure, match="attaches it") as caught:
        attached_content(client, NAME, image.digest, "text/a")
    assert caught.value.kind == "not_pulled_back"


def test_an_attachment_that_is_rotten_or_malformed_is_refused(tmp_path: Path) -> None:
    rotten = Trouble("GET", f"/blobs/{digest_of(b'first')}", Response(b"other"))
    malformed = Trouble("GET", "/referrers/", Response(b"[]"), times=0)
    served = in_front(in_front(app(tmp_path), rotten), malformed)
    with serving(served) as url, closing(RegistryClient(url, STRANGER, Waits().limits)) as client:
        image = push(client)
        attach(client, NAME, image, "text/a", b"first", "a")
        with pytest.raises(ItemFailure, match="hashes to"):
            attached_content(client, NAME, image.digest, "text/a")
        malformed.times = 1
        with pytest.raises(OutsideSystemError, match="malformed"):
            attached_content(client, NAME, image.digest, "text/a")


@pytest.mark.docker
def test_provenance_and_sbom_are_attached_and_a_rebuild_starts_from_them(
    host: str, build: MakeImage, call_fc_data: FcData, tmp_path: Path
) -> None:
    """The real registry lists nothing itself, so there they are found under a tag."""
    image: BuiltImage = build()
    published = Registry(host, "acme", STRANGER, "single").publish(image, month=MONTH)
    assert Registry(host, "acme", STRANGER, "single").publish(image, month=MONTH).sbom_digest == published.sbom_digest
    pinned = f"{host}/acme/formulacode@{published.digest}"
    stranger = Registry("", "", STRANGER, "single")
    assert stranger.attested_image(pinned) == stranger.attested_image(published.reference) == image
    with closing(RegistryClient(f"http://{host}", STRANGER, Waits().limits)) as client:
        for kind in (PROVENANCE_TYPE, SBOM_TYPE):
            assert published.digest.removeprefix("sha256:").encode() in attached_content(
                client, "acme/formulacode", published.digest, kind
            )
    said = call_fc_data("rebuild", pinned, GITHUB_CLONE_URL=tmp_path.as_uri(), FC_ENGINE="docker")
    assert said.returncode == 1
    assert image.spec.repository in said.stderr
    missing = call_fc_data("rebuild", pinned[:-8] + "0" * 8)
    assert "is not in its registry" in missing.stderr
