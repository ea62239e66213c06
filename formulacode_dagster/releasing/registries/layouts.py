"""Images as an OCI image layout in a folder: a blob that several images share is stored once."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import httpx

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind

from .client import SYSTEM, RegistryClient
from .manifests import OCI_INDEX, OCI_MANIFEST, Descriptor, ImageManifest, digest_of

ATTEMPTS = 3
COMPRESSION = 6
CHUNK = 1 << 20
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"


class LaidOutImage(NamedTuple):
    """An image of a layout."""

    digest: str
    """Digest of its manifest."""
    image_id: str
    """Digest of its configuration: Docker's image id."""


class ImageLayout:
    """The layout in *folder*; `write_index` completes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._blobs = folder / "blobs" / "sha256"
        self._blobs.mkdir(parents=True)
        self._manifests: dict[str, ImageManifest] = {}
        self._compressed: dict[str, Descriptor] = {}

    def add_pulled(self, client: RegistryClient, repository: str, digest: str) -> LaidOutImage:
        """Add the image *digest* of *repository*.

        Raises ItemFailure: `image_missing`, `unreadable` if it is no manifest of an image, `not_pulled_back` if a blob
        differs from its digest; the client's errors.
        """
        manifest = client.manifest(repository, digest)
        if manifest is None:
            raise ItemFailure(FailureKind.IMAGE_MISSING, f"{repository}@{digest} is not in its registry")
        try:
            blobs = (manifest.config, *manifest.layers)
        except ValueError as error:
            raise ItemFailure(
                FailureKind.UNREADABLE, f"{repository}@{digest} is no image of one platform", why=str(error)
            ) from error
        for blob in blobs:
            self._pull(client, repository, blob)
        return self._added(manifest)

    def add_saved(self, chunks: Iterable[bytes]) -> LaidOutImage:
        """Add the image of the stream *chunks*, as `docker save` writes it; its layers are compressed here."""
        folder, stream = self._folder / "saved", self._folder / "saved.tar"
        try:
            with stream.open("wb") as file:
                file.writelines(chunks)
            with tarfile.open(stream) as archive:
                archive.extractall(folder, filter="data")
            (saved,) = json.loads((folder / "manifest.json").read_bytes())
            content = (folder / saved["Config"]).read_bytes()
            config = Descriptor(digest_of(content), len(content), CONFIG_TYPE)
            self._path(config.digest).write_bytes(content)
            layers = [self._compress(folder / name) for name in saved["Layers"]]
        finally:
            stream.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
        document = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": config.document,
            "layers": [layer.document for layer in layers],
        }
        return self._added(ImageManifest.of(json.dumps(document).encode(), OCI_MANIFEST))

    def write_index(self) -> None:
        """Write the files that make the folder an OCI image layout."""
        manifests = [
            Descriptor(each.digest, len(each.content), each.media_type).document
            for _, each in sorted(self._manifests.items())
        ]
        index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": manifests}
        (self._folder / "index.json").write_text(json.dumps(index))
        (self._folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def _added(self, manifest: ImageManifest) -> LaidOutImage:
        self._path(manifest.digest).write_bytes(manifest.content)
        self._manifests[manifest.digest] = manifest
        return LaidOutImage(manifest.digest, manifest.config.digest)

    def _pull(self, client: RegistryClient, repository: str, blob: Descriptor) -> None:
        path = self._path(blob.digest)
        for attempt in range(1, ATTEMPTS + 1):
            if path.exists():
                return
            hashed, part = hashlib.sha256(), path.with_suffix(".part")
            try:
                with client.blob(repository, blob.digest) as chunks, part.open("wb") as file:
                    for chunk in chunks:
                        hashed.update(chunk)
                        file.write(chunk)
            except httpx.HTTPError as error:
                if attempt == ATTEMPTS:
                    raise OutsideSystemError(
                        SYSTEM, f"cannot pull {repository}@{blob.digest}", why=str(error)
                    ) from error
                continue
            found = f"sha256:{hashed.hexdigest()}"
            if found != blob.digest:
                part.unlink()
                raise ItemFailure(
                    FailureKind.NOT_PULLED_BACK, f"{repository}@{blob.digest} differs", why=f"it hashes to {found}"
                )
            part.rename(path)

    def _compress(self, layer: Path) -> Descriptor:
        """Return the compressed *layer*, which is stored once however many images have it."""
        with layer.open("rb") as file:
            unpacked = hashlib.file_digest(file, "sha256").hexdigest()
        if unpacked not in self._compressed:
            packed = self._folder / "packing"
            with (
                layer.open("rb") as source,
                packed.open("wb") as raw,
                gzip.GzipFile("", "wb", COMPRESSION, raw, mtime=0) as target,
            ):
                shutil.copyfileobj(source, target, CHUNK)
            with packed.open("rb") as file:
                digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            self._compressed[unpacked] = Descriptor(digest, packed.stat().st_size, LAYER_TYPE)
            packed.rename(self._path(digest))
        return self._compressed[unpacked]

    def _path(self, digest: str) -> Path:
        return self._blobs / digest.removeprefix("sha256:")
