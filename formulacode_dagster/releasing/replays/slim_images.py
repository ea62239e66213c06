"""Images without their root file systems: environment, tools and checkout, which another machine's system runs."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.releasing.registries.layouts import COMPRESSION, LAYER_TYPE
from formulacode_dagster.releasing.registries.manifests import digest_of

from .packed import SlimRoot

KEPT = re.compile(r"(opt|workspace|home/formulacode)(/|$)")
LEFT_OUT = re.compile(r"opt/formulacode/tests(/|$)")
"""A replay runs no tests."""
CONFIGURATION = "opt/venv/pyvenv.cfg"
WHEEL = re.compile(r"opt/venv/.*\.dist-info/WHEEL")


@dataclass
class _SlimLayer:
    """Remainder of a layer."""

    descriptor: dict[str, Any] | None = None
    """None if nothing is."""
    python: str = ""
    """Version of the interpreter, if the layer has the environment's configuration."""
    wheels: list[bool] = field(default_factory=list)
    """Whether each distribution of the layer is only of Python."""


class SlimImages:
    """Writes the remainder of images of the OCI layout in *source* into *target*; equal layers are stored once."""

    def __init__(self, source: Path, target: Path) -> None:
        self._source, self._target = source / "blobs" / "sha256", target / "blobs" / "sha256"
        self._target.mkdir(parents=True)
        self._layers: dict[str, _SlimLayer] = {}

    def add(self, digest: str) -> SlimRoot:
        """Add the image whose manifest is *digest*; raises ItemFailure (`unreadable`) if it has no environment."""
        manifest = json.loads(self._read(digest))
        layers = [self._slim(layer["digest"]) for layer in manifest["layers"]]
        python = next((layer.python for layer in reversed(layers) if layer.python), "")
        if not python:
            raise ItemFailure(FailureKind.UNREADABLE, f"the image {digest} has no environment in /opt/venv")
        # the package itself is installed last
        package = next((layer.wheels for layer in reversed(layers) if layer.wheels), [])
        config = manifest["config"]
        self._write(self._read(config["digest"]))
        document = {**manifest, "layers": [layer.descriptor for layer in layers if layer.descriptor]}
        left = self._write(json.dumps(document).encode())
        return SlimRoot(digest=left, python=python, is_compiled=not all(package))

    def _slim(self, digest: str) -> _SlimLayer:
        if digest not in self._layers:
            self._layers[digest] = self._filtered(digest)
        return self._layers[digest]

    def _filtered(self, digest: str) -> _SlimLayer:
        told, part = _SlimLayer(), self._target / "part"
        is_empty = True
        with (
            tarfile.open(self._source / digest.removeprefix("sha256:"), "r|*") as layer,
            part.open("wb") as raw,
            gzip.GzipFile("", "wb", COMPRESSION, raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w|") as left,
        ):
            for entry in layer:
                name = entry.name.lstrip("./")
                if not KEPT.match(name) or LEFT_OUT.match(name):
                    continue
                is_empty = False
                content = layer.extractfile(entry) if entry.isreg() else None
                if content is not None and (name == CONFIGURATION or WHEEL.fullmatch(name)):
                    text = content.read().decode()
                    if name == CONFIGURATION:
                        told.python = _value(text, "version_info", "=")
                    else:
                        told.wheels.append(_value(text, "Root-Is-Purelib", ":") == "true")
                    # a stream is read once
                    left.addfile(entry, io.BytesIO(text.encode()))
                    continue
                left.addfile(entry, content)
        if is_empty:
            part.unlink()
            return told
        content_digest = _digest_of_file(part)
        told.descriptor = {"mediaType": LAYER_TYPE, "digest": content_digest, "size": part.stat().st_size}
        part.rename(self._target / content_digest.removeprefix("sha256:"))
        return told

    def _read(self, digest: str) -> bytes:
        return (self._source / digest.removeprefix("sha256:")).read_bytes()

    def _write(self, content: bytes) -> str:
        digest = digest_of(content)
        (self._target / digest.removeprefix("sha256:")).write_bytes(content)
        return digest


def _value(text: str, key: str, separator: str) -> str:
    """The value of *key* in lines `key<separator>value`; empty without it."""
    pairs = (line.partition(separator)[::2] for line in text.splitlines())
    return next((value.strip() for name, value in pairs if name.strip() == key), "")


def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
