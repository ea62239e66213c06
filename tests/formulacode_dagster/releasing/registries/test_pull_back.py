from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.releasing.registries.accounts import STRANGER
from formulacode_dagster.releasing.registries.client import RegistryClient
from formulacode_dagster.releasing.registries.manifests import Descriptor, ImageManifest, digest_of
from formulacode_dagster.releasing.registries.pull_back import PullBack
from sandbox.registry import app
from sandbox.server import serving
from tests.support.registries import Trouble, Waits, image_of, in_front

NAME = "acme/tasks"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
CONTENTS = (b"the base" * 99, b"the task" * 9)


def push(client: RegistryClient, *contents: bytes, told: tuple[bytes, ...] = ()) -> ImageManifest:
    """An image of these layers, whose configuration lists *told*."""
    config = {"rootfs": {"diff_ids": [digest_of(content) for content in told or contents]}}
    blobs = [client.put_blob(NAME, json.dumps(config).encode(), "application/json")]
    blobs += [client.put_blob(NAME, gzip.compress(content, mtime=0), LAYER) for content in contents]
    manifest = image_of(*blobs)
    client.put_manifest(NAME, manifest.digest, manifest)
    return manifest


def test_every_blob_comes_once_and_is_counted(tmp_path: Path) -> None:
    with serving(app(tmp_path)) as url, closing(RegistryClient(url, STRANGER, Waits().limits)) as client:
        first, second = push(client, CONTENTS[0]), push(client, *CONTENTS)
        store = PullBack()
        pulled = [store.pull(client, NAME, manifest.digest) for manifest in (first, second)]
    assert [one.digest for one in pulled] == [first.digest, second.digest]
    assert [one.bytes for one in pulled] == [first.size, second.size - first.layers[0].size]


def _another_layer(client: RegistryClient) -> ImageManifest:
    return push(client, *CONTENTS, told=(CONTENTS[0], b"another"))


def _one_layer_less(client: RegistryClient) -> ImageManifest:
    return push(client, *CONTENTS, told=CONTENTS[:1])


def _wrong_size(client: RegistryClient) -> ImageManifest:
    right = push(client, *CONTENTS)
    layer = Descriptor(right.layers[0].digest, right.layers[0].size + 1, LAYER)
    manifest = image_of(right.config, layer, right.layers[1])
    client.put_manifest(NAME, manifest.digest, manifest)
    return manifest


def _no_gzip(client: RegistryClient) -> ImageManifest:
    right = push(client, *CONTENTS)
    manifest = image_of(right.config, client.put_blob(NAME, b"plain", LAYER), right.layers[1])
    client.put_manifest(NAME, manifest.digest, manifest)
    return manifest


@pytest.mark.parametrize(
    ("make", "why"),
    [(_another_layer, "holds"), (_one_layer_less, "tells of 1"), (_wrong_size, "bytes"), (_no_gzip, "unpacked")],
)
def test_what_no_client_could_use_did_not_come_back(
    make: Callable[[RegistryClient], ImageManifest], why: str, tmp_path: Path
) -> None:
    with serving(app(tmp_path)) as url, closing(RegistryClient(url, STRANGER, Waits().limits)) as client:
        manifest = make(client)
        with pytest.raises(ItemFailure, match=why) as caught:
            PullBack().pull(client, NAME, manifest.digest)
    assert caught.value.kind == "not_pulled_back"


@pytest.mark.parametrize("answer", [Response(b"rotten"), Response(status_code=404)])
def test_a_blob_that_is_rotten_or_gone_did_not_come_back(answer: ASGIApp, tmp_path: Path) -> None:
    layer = digest_of(gzip.compress(CONTENTS[0], mtime=0))
    trouble = Trouble("GET", f"/blobs/{layer}", answer, times=9)
    with (
        serving(in_front(app(tmp_path), trouble)) as url,
        closing(RegistryClient(url, STRANGER, Waits().limits)) as client,
    ):
        manifest = push(client, *CONTENTS)
        with pytest.raises(ItemFailure, match="not") as caught:
            PullBack().pull(client, NAME, manifest.digest)
    assert caught.value.kind == "not_pulled_back"
