"""Manifests as registries keep them (OCI image specification), as far as we read and write them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
ACCEPTED = ", ".join((DOCKER_MANIFEST, OCI_MANIFEST, OCI_INDEX, DOCKER_LIST))


@dataclass(frozen=True)
class Descriptor:
    """A blob, by digest."""

    digest: str
    size: int
    media_type: str

    @property
    def document(self) -> dict[str, Any]:
        """As in manifests."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


@dataclass(frozen=True)
class ImageManifest:
    """A manifest of an image or an artifact, as its registry has it."""

    digest: str
    media_type: str
    content: bytes

    @classmethod
    def of(cls, content: bytes, media_type: str) -> ImageManifest:
        """The manifest with these bytes."""
        return cls(digest_of(content), media_type, content)

    @property
    def document(self) -> dict[str, Any]:
        """Return the manifest as JSON; raises ValueError if it is invalid."""
        document = json.loads(self.content)
        if not isinstance(document, dict):
            raise ValueError("the manifest is not a JSON object")
        return document

    @property
    def config(self) -> Descriptor:
        """Return the configuration, whose digest is the image's id; raises ValueError if there is none."""
        return _descriptor(self.document.get("config"))

    @property
    def layers(self) -> tuple[Descriptor, ...]:
        """Return the layers, from the bottom; raises ValueError if one is malformed."""
        layers = self.document.get("layers", [])
        if not isinstance(layers, list):
            raise ValueError("the manifest has no list of layers")
        return tuple(map(_descriptor, layers))

    @property
    def size(self) -> int:
        """Bytes that a client with none of it pulls, the manifest included."""
        return len(self.content) + self.config.size + sum(layer.size for layer in self.layers)


def _descriptor(document: Any) -> Descriptor:
    try:
        found = Descriptor(str(document["digest"]), int(document["size"]), str(document["mediaType"]))
    except (TypeError, KeyError) as error:
        raise ValueError(f"no descriptor of a blob: {error!r}") from error
    # files of blobs are named by it
    if not is_digest(found.digest):
        raise ValueError(f"no digest of a blob: {found.digest[:100]!r}")
    return found


def is_digest(text: str) -> bool:
    """Return True for `sha256:` and 64 hexadecimal digits."""
    return _DIGEST.fullmatch(text) is not None


def digest_of(content: bytes) -> str:
    """`sha256:…` of *content*."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
