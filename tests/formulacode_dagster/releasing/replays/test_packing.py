"""A dataset of somebody else's that is packed: its ids and digests reach no file outside the archive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formulacode_dagster.models.image import EngineName
from formulacode_dagster.releasing.registries.manifests import OCI_INDEX, Descriptor, ImageManifest, digest_of
from formulacode_dagster.releasing.registries.names import ImageName
from formulacode_dagster.releasing.replays.packing import ReleaseToPack, pack
from formulacode_dagster.releasing.replays.released import TaskToReplay
from tests.formulacode_dagster.releasing.replays.conftest import MakeTask
from tests.records import MONTH
from tests.support.registries import image_of

NAME = "acme/tasks"
RELEASE = ReleaseToPack("formulacode@2026-03", MONTH, "hub:acme/tasks")
BLOBS = (b"{}", b"layer")


class HostileRegistry:
    """A registry that serves any manifest, and reader and client of it."""

    def __init__(self, *manifests: ImageManifest) -> None:
        self._manifests = {manifest.digest: manifest for manifest in manifests}
        self.requested: set[str] = set()

    @contextmanager
    def reading(self, reference: str) -> Iterator[tuple[HostileRegistry, ImageName]]:
        """As `ImageReader.reading`."""
        yield self, ImageName.parse(reference)

    def saved(self, image_id: str) -> list[bytes]:
        """As `ImageReader.saved`."""
        raise AssertionError(image_id)

    def manifest(self, repository: str, reference: str) -> ImageManifest | None:
        """As `RegistryClient.manifest`."""
        assert repository == NAME
        return self._manifests.get(reference)

    @contextmanager
    def blob(self, repository: str, digest: str) -> Iterator[Iterator[bytes]]:
        """As `RegistryClient.blob`."""
        self.requested.add(digest)
        yield iter([content for content in BLOBS if digest_of(content) == digest])


def test_a_task_with_a_bad_id_or_image_is_left_out_and_nothing_is_written_elsewhere(
    task: MakeTask, tmp_path: Path
) -> None:
    config, layer = (Descriptor(digest_of(content), len(content), "application/json") for content in BLOBS)
    good = image_of(config, layer)
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [config.document]}
    several = ImageManifest.of(json.dumps(index).encode(), OCI_INDEX)
    hostile = image_of(config, Descriptor("sha256:../../../../evil/blob", 5, layer.media_type))
    listless = ImageManifest.of(json.dumps({"config": config.document, "layers": None}).encode(), good.media_type)
    registry = HostileRegistry(good, several, hostile, listless)

    def published(number: int, digest: str, **changes: object) -> TaskToReplay:
        named = {"image_name": f"registry.test/{NAME}:{number}", "image_digest": digest}
        return task(number, engine=EngineName.DOCKER, **named, **changes)

    tasks = [
        published(1, good.digest),
        published(2, good.digest, task_id="../../evil/task"),
        published(3, several.digest),
        published(4, hostile.digest),
        published(5, listless.digest),
        published(6, "latest"),
    ]
    evil, work = tmp_path / "evil", tmp_path / "work"
    evil.mkdir()
    work.mkdir()
    packed = pack(RELEASE, tasks, work / "month.tar", reader=registry, progress=lambda _: None)
    assert [each.task_id for each in packed.manifest.tasks] == ["a__b-1"]
    assert packed.left_out.keys() == {f"a/b#{number}" for number in range(2, 7)}
    assert "cannot be the name of a file" in packed.left_out["a/b#2"]
    assert all("is no image of one platform" in packed.left_out[f"a/b#{number}"] for number in (3, 4, 5))
    assert "'latest' of a__b-6 is no image's digest" in packed.left_out["a/b#6"]
    assert registry.requested == {config.digest, layer.digest}
    assert (list(evil.iterdir()), [path.name for path in work.iterdir()]) == ([], ["month.tar"])
