"""Pulls images back like a client with none of their layers: every blob streamed, and checked against its digest.

Nothing is stored: content that a content store would refuse is refused here, and a layer that several images share is
pulled once per `PullBack`, as one client would.
"""

from __future__ import annotations

import hashlib
import json
import threading
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind

from .client import SYSTEM, RegistryClient
from .manifests import Descriptor, digest_of

ATTEMPTS = 3
LARGEST_CONFIG = 8 << 20
_UNPACKED = ("application/vnd.oci.image.layer.v1.tar", "application/vnd.docker.image.rootfs.diff.tar")


@dataclass(frozen=True)
class Pulled:
    """Result of pulling one image."""

    digest: str
    """Digest of the manifest."""
    created: datetime
    """Creation time in its configuration; 1970 if it has none."""
    bytes: int
    """Bytes transferred for it; less than its size if it shares layers with one pulled before."""


class PullBack:
    """One empty content store, filled image by image. Safe between threads."""

    def __init__(self) -> None:
        self._contents: dict[tuple[str, str], str] = {}
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._lock = threading.Lock()

    def pull(self, client: RegistryClient, repository: str, digest: str) -> Pulled:
        """Pull *digest* of *repository* with *client*.

        Raises ItemFailure (`not_pulled_back`) if anything is missing or does not match its digest, and the client's
        errors.
        """
        where = f"{repository}@{digest}"
        manifest = client.manifest(repository, digest)
        if manifest is None:
            raise _not_back(where, "the registry has no such manifest")
        try:
            config, layers = manifest.config, manifest.layers
        except ValueError as error:
            raise _not_back(where, str(error)) from error
        content = self._config(client, repository, config, where)
        told = len(manifest.content) + len(content)
        if len(content) != config.size or digest_of(content) != config.digest:
            raise _not_back(where, f"the configuration hashes to {digest_of(content)}, not to {config.digest}")
        unpacked, created = _told_by(content, where)
        if len(unpacked) != len(layers):
            raise _not_back(where, f"{len(layers)} layers are there, and the configuration tells of {len(unpacked)}")
        for layer, expected in zip(layers, unpacked, strict=True):
            came, transferred = self._layer(client, repository, layer, where)
            told += transferred
            if came != expected:
                raise _not_back(where, f"the layer {layer.digest} holds {came}, and not {expected}")
        return Pulled(manifest.digest, created, told)

    def _layer(self, client: RegistryClient, repository: str, layer: Descriptor, where: str) -> tuple[str, int]:
        """Digest of the unpacked layer, and the bytes transferred for it now."""
        key = (repository, layer.digest)
        with self._lock:
            own = self._locks.setdefault(key, threading.Lock())
        with own:
            if key in self._contents:
                return self._contents[key], 0
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    came = self._contents[key] = _pull_layer(client, repository, layer, where)
                except httpx.HTTPError as error:
                    if attempt == ATTEMPTS:
                        raise _broken(where, layer, error) from error
                else:
                    return came, layer.size
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _config(self, client: RegistryClient, repository: str, config: Descriptor, where: str) -> bytes:
        if config.size > LARGEST_CONFIG:
            raise _not_back(where, f"its configuration has {config.size:,} bytes")
        content = bytearray()
        try:
            with client.blob(repository, config.digest) as parts:
                for part in parts:
                    content += part
                    if len(content) > config.size:
                        break
        except httpx.HTTPError as error:
            raise _broken(where, config, error) from error
        return bytes(content)


def _pull_layer(client: RegistryClient, repository: str, layer: Descriptor, where: str) -> str:
    packed, unpacked, size = hashlib.sha256(), hashlib.sha256(), 0
    unpacker = _unpacker(layer, where)
    try:
        with client.blob(repository, layer.digest) as parts:
            for part in parts:
                packed.update(part)
                size += len(part)
                unpacked.update(unpacker.decompress(part) if unpacker else part)
    except zlib.error as error:
        raise _not_back(where, f"the layer {layer.digest} cannot be unpacked: {error}") from error
    came = f"sha256:{packed.hexdigest()}"
    if came != layer.digest or size != layer.size:
        raise _not_back(
            where, f"the layer {layer.digest} of {layer.size} bytes came as {size} bytes, which hash to {came}"
        )
    return f"sha256:{unpacked.hexdigest()}"


def _unpacker(layer: Descriptor, where: str) -> Any:
    """Return the decompressor of the layer; None for an uncompressed one."""
    if layer.media_type.endswith("gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    if layer.media_type in _UNPACKED:
        return None
    raise _not_back(where, f"the layer {layer.digest} is {layer.media_type}, an unknown compression")


def _told_by(config: bytes, where: str) -> tuple[tuple[str, ...], datetime]:
    """Digests of the unpacked layers from the bottom, and when the image was made."""
    try:
        document = json.loads(config)
        layers = tuple(str(layer) for layer in document["rootfs"]["diff_ids"])
        return layers, datetime.fromisoformat(document.get("created") or "1970-01-01T00:00:00Z")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_back(where, f"its configuration is malformed: {error!r}") from error


def _not_back(where: str, why: str) -> ItemFailure:
    return ItemFailure(
        FailureKind.NOT_PULLED_BACK,
        f"{where} did not come back as it was pushed",
        why=why,
        remedy="Remove it from the registry, then run published_images again",
    )


def _broken(where: str, blob: Descriptor, error: httpx.HTTPError) -> OutsideSystemError:
    return OutsideSystemError(
        SYSTEM,
        f"cannot pull {where}",
        why=f"the connection broke at {blob.digest}: {type(error).__name__} {error}",
        remedy="Run the month again when the registry is healthy; published images stay",
    )
