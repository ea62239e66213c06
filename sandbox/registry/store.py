"""Content of the sandbox registry's folder: blobs by digest, manifests by repository, tags, unfinished uploads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.operating.files.atomic import write_atomically
from sandbox.content import ContentStore

REPOSITORY = re.compile(r"^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$")
TAG = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")
DIGEST = re.compile(r"^sha256:([0-9a-f]{64})$")
_UPLOAD = re.compile(r"^[0-9a-f]{32}$")


class StoredManifest(Frozen):
    """A manifest of a repository; its bytes lie among the blobs."""

    digest: str
    media_type: str


class RefusedError(Exception):
    """A refusal: HTTP status, the specification's error code, a sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status = status
        self.code = code
        super().__init__(message)


class RegistryStore:
    """The folder. All repositories share blobs, as the registry has a single user."""

    def __init__(self, folder: Path) -> None:
        self._repositories = folder / "repositories"
        self._uploads = folder / "uploads"
        self._uploads.mkdir(parents=True, exist_ok=True)
        self.blobs = ContentStore(folder / "blobs")

    def blob(self, digest: str) -> Path:
        """Return the path of the blob; raises RefusedError if it is missing."""
        sha256 = hex_of(digest)
        if not self.blobs.has(sha256):
            raise RefusedError(404, "BLOB_UNKNOWN", f"no blob {digest}")
        return self.blobs.path(sha256)

    def begin_upload(self) -> str:
        """Open an upload; returns its name."""
        name = uuid4().hex
        self.upload(name, must_exist=False).touch()
        return name

    def upload(self, name: str, *, must_exist: bool = True) -> Path:
        """Return the file of an upload; raises RefusedError if there is no such upload."""
        path = self._uploads / name
        if not _UPLOAD.match(name) or (must_exist and not path.exists()):
            raise RefusedError(404, "BLOB_UPLOAD_UNKNOWN", f"no upload {name}")
        return path

    def manifest(self, repository: str, reference: str) -> StoredManifest:
        """Return the manifest behind a tag or a digest; raises RefusedError if there is none."""
        kind = "manifests" if DIGEST.match(reference) else "tags"
        path = self._folder(repository) / kind / reference.replace(":", "-")
        if not path.is_file():
            raise RefusedError(404, "MANIFEST_UNKNOWN", f"no {repository} {reference}")
        return StoredManifest.model_validate_json(path.read_bytes())

    def put_manifest(self, repository: str, reference: str, content: bytes, media_type: str) -> StoredManifest:
        """Keep a manifest under its digest, and under *reference* when that is a tag.

        Raises RefusedError when it is malformed, when something it names was not pushed, or when *reference* is a
        digest that it does not have.
        """
        for digest in self._named_by(repository, content):
            self.blob(digest)
        stored = StoredManifest(digest=f"sha256:{self.blobs.put(content)}", media_type=media_type)
        if DIGEST.match(reference) and reference != stored.digest:
            raise RefusedError(400, "DIGEST_INVALID", f"the manifest hashes to {stored.digest}")
        if not (DIGEST.match(reference) or TAG.match(reference)):
            raise RefusedError(400, "TAG_INVALID", f"{reference!r} is no tag")
        folder, line = self._folder(repository), stored.model_dump_json().encode()
        write_atomically(folder / "manifests" / stored.digest.replace(":", "-"), line)
        if not DIGEST.match(reference):
            write_atomically(folder / "tags" / reference, line)
        if subject := self.subject_of(content):
            write_atomically(self._referrers(repository, subject) / stored.digest.replace(":", "-"), line)
        return stored

    def referrers(self, repository: str, digest: str) -> list[dict[str, Any]]:
        """Descriptors of the manifests of *repository* whose subject is *digest*."""
        entries = []
        for path in sorted(self._referrers(repository, digest).glob("*")):
            stored = StoredManifest.model_validate_json(path.read_bytes())
            content = self.blob(stored.digest).read_bytes()
            kind = json.loads(content).get("artifactType")
            told = {"mediaType": stored.media_type, "digest": stored.digest, "size": len(content)}
            entries.append({**told, "artifactType": kind})
        return entries

    def subject_of(self, content: bytes) -> str:
        """Return the digest that a manifest is attached to; empty if it is not attached."""
        return str((json.loads(content).get("subject") or {}).get("digest", ""))

    def _referrers(self, repository: str, digest: str) -> Path:
        return self._folder(repository) / "referrers" / hex_of(digest)

    def _named_by(self, repository: str, content: bytes) -> Iterator[str]:
        try:
            manifest: dict[str, Any] = json.loads(content)
            if "manifests" in manifest:
                yield from (self.manifest(repository, entry["digest"]).digest for entry in manifest["manifests"])
                return
            yield manifest["config"]["digest"]
            # layers with addresses of their own are fetched from there, and never pushed
            yield from (layer["digest"] for layer in manifest["layers"] if not layer.get("urls"))
        except (ValueError, KeyError, TypeError) as error:
            raise RefusedError(400, "MANIFEST_INVALID", f"the manifest is malformed: {error!r}") from error

    def _folder(self, repository: str) -> Path:
        if not REPOSITORY.match(repository):
            raise RefusedError(400, "NAME_INVALID", f"{repository!r} is no repository")
        return self._repositories / repository


def hex_of(digest: str) -> str:
    """The hexadecimal part of `sha256:…`; raises RefusedError for anything else."""
    match = DIGEST.match(digest)
    if match is None:
        raise RefusedError(400, "DIGEST_INVALID", f"{digest!r} is no sha256 digest")
    return match[1]
