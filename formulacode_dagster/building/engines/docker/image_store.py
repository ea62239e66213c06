"""Our images and our part of the build cache in a Docker daemon, local or remote: all through its API."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from formulacode_dagster.building.engines.image_store import Inventory, Layer, StoredImage, TrimmedCache
from formulacode_dagster.building.specs.spec import LOCAL_NAMESPACE
from formulacode_dagster.models.errors import OutsideSystemError

from .build_cache import BuildCache
from .daemon import INSTALLATION_LABEL, LABEL, DockerDaemon
from .leftovers import RunIsOver, leftover_containers, nobody_knows, remove_leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from docker.models.images import Image

_WRITES = ("RUN ", "COPY ", "ADD ", "WORKDIR ")
"""Instructions that make a layer, even an empty one."""
_CONFLICT = 409
"""HTTP status for the removal of an image or container in use."""


class DockerImageStore:
    """Implements `ImageStore` with the images of *installation* in the daemon."""

    def __init__(self, daemon: DockerDaemon, installation: str, run_is_over: RunIsOver = nobody_knows) -> None:
        """*run_is_over* reports on the runs of other machines."""
        self._daemon = daemon
        self._installation = installation
        self._run_is_over = run_is_over

    @property
    def where(self) -> str:
        """The daemon's address."""
        return f"Docker ({self._daemon.environment.get('DOCKER_HOST', 'default socket')})"

    def leftovers(self, *, remove: bool) -> tuple[str, ...]:
        """Names of the containers that killed processes left; with *remove*, they are gone."""
        over = self._run_is_over
        containers = (
            remove_leftovers(self._daemon, over) if remove else leftover_containers(self._daemon, run_is_over=over)
        )
        return tuple(str(container.name) for container in containers)

    def inventory(self) -> Inventory:
        """Our images by their label; one that somebody gave a name of their own is theirs."""
        ours, theirs, others = [], set(), 0
        for image in self._images():
            attributes = image.attrs
            labels = attributes["Config"].get("Labels") or {}
            tags = tuple(attributes["RepoTags"] or ())
            strange = [tag for tag in tags if not tag.startswith(f"{LOCAL_NAMESPACE}/")]
            if not strange and self._installation and labels.get(INSTALLATION_LABEL) == self._installation:
                ours.append(self._stored(image, tags))
            else:
                theirs |= set(_chain_ids(attributes["RootFS"].get("Layers") or ()))
                others += LABEL in labels
        return Inventory(tuple(ours), frozenset(theirs), others)

    def discard(self, image: StoredImage) -> bool:
        """Remove *image*, never by force; False when something uses it, or its names now mean another one."""
        import docker.errors

        images = self._daemon.client.images
        with self._daemon.watched(f"remove {image}"):
            for name in image.names or (image.digest,):
                try:
                    if images.get(name).id != image.digest:
                        return False
                    images.remove(name, force=False)
                except docker.errors.ImageNotFound:
                    continue
                except docker.errors.APIError as error:
                    if error.status_code != _CONFLICT:
                        raise
                    return False
        return True

    def trim_cache(self, budget: int | None, *, dry_run: bool) -> TrimmedCache:
        """Trim our builds' records in the daemon's own builder, the one we build with."""
        with self._daemon.watched("trim the build cache"):
            return BuildCache(self._daemon.client.api).trim(budget, dry_run=dry_run)

    def _images(self) -> Iterator[Image]:
        import docker.errors

        client = self._daemon.client
        with self._daemon.watched("list images"):
            for digest in {entry["Id"] for entry in client.api.images()}:
                with suppress(docker.errors.ImageNotFound):
                    yield client.images.get(digest)

    def _stored(self, image: Image, tags: tuple[str, ...]) -> StoredImage:
        attributes = image.attrs
        with self._daemon.watched(f"look at {image.id}"):
            history = image.history()
        layers = attributes["RootFS"]["Layers"]
        # an image made with SOURCE_DATE_EPOCH says that it is as old as its commit
        tagged = attributes.get("Metadata", {}).get("LastTagTime") or attributes["Created"]
        return StoredImage(
            digest=str(image.id),
            names=tags,
            made_at=max(datetime.fromisoformat(attributes["Created"]), datetime.fromisoformat(tagged)),
            layers=tuple(map(Layer, _chain_ids(layers), layer_sizes(len(layers), history))),
        )


def layer_sizes(count: int, history: Sequence[dict[str, Any]]) -> list[int]:
    """Return bytes of each of an image's *count* layers, lowest first, from the daemon's *history*.

    The history also has entries that made no layer, and does not mark them (Docker's API, `ImageHistory`); entries
    without bytes can be told from empty layers only by their instruction. Raises OutsideSystemError if they cannot.
    """
    entries = list(reversed(history))
    layers = [entry for entry in entries if entry["Size"] > 0 or str(entry["CreatedBy"]).startswith(_WRITES)]
    if len(layers) > count:
        # an instruction that wrote nothing may have made no layer
        empty = [entry for entry in layers if entry["Size"] == 0]
        for entry in empty[: len(layers) - count]:
            layers.remove(entry)
    if len(layers) > count:
        raise OutsideSystemError("docker", f"an image of {count} layers has {len(layers)} steps with bytes in them")
    return [0] * (count - len(layers)) + [int(entry["Size"]) for entry in layers]


def _chain_ids(diff_ids: Sequence[str]) -> list[str]:
    """Ids of layers that name all that is below them, too."""
    chain: list[str] = []
    for diff_id in diff_ids:
        above = f"{chain[-1]} {diff_id}" if chain else diff_id
        chain.append(hashlib.sha256(above.encode()).hexdigest())
    return chain
