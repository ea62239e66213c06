"""Attachments of an image: artifacts whose manifest names it as `subject` (OCI distribution, "Referrers API").

A registry that does not list them itself has an index of them under a tag made of the image's digest, which the
specification asks clients to keep for it.
"""

from __future__ import annotations

import json
from typing import Any

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind

from .client import SYSTEM, RegistryClient
from .manifests import OCI_INDEX, OCI_MANIFEST, Descriptor, ImageManifest, digest_of

EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
_EMPTY = b"{}"
_SUBJECT_HEADER = "oci-subject"
LARGEST_ARTIFACT = 64 << 20


def attach(
    client: RegistryClient, repository: str, image: ImageManifest, artifact_type: str, content: bytes, name: str
) -> str:
    """Attach *content* to *image*, unless something of that type is; digest of the artifact's manifest.

    Raises the client's errors.
    """
    if attached := _attached(client, repository, image.digest, artifact_type):
        return str(attached[0]["digest"])
    config = client.put_blob(repository, _EMPTY, EMPTY_TYPE)
    blob = client.put_blob(repository, content, artifact_type)
    subject = Descriptor(image.digest, len(image.content), image.media_type)
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": artifact_type,
        "config": config.document,
        "layers": [{**blob.document, "annotations": {"org.opencontainers.image.title": name}}],
        "subject": subject.document,
    }
    manifest = ImageManifest.of(json.dumps(document, sort_keys=True).encode(), OCI_MANIFEST)
    headers = client.put_manifest(repository, manifest.digest, manifest)
    if _SUBJECT_HEADER not in headers:
        entry = Descriptor(manifest.digest, len(manifest.content), OCI_MANIFEST).document
        _list_under_tag(client, repository, image.digest, {**entry, "artifactType": artifact_type})
    return manifest.digest


def attached_content(client: RegistryClient, repository: str, digest: str, artifact_type: str) -> bytes:
    """Return the first attachment of that type to the image *digest*, every byte verified.

    Raises ItemFailure (`not_pulled_back`) if there is none, or it does not match its digest.
    """
    listed = _attached(client, repository, digest, artifact_type)
    manifest = client.manifest(repository, str(listed[0]["digest"])) if listed else None
    if manifest is None:
        raise _not_there(f"{repository}@{digest}", f"nothing of type {artifact_type} is attached to it")
    subject = manifest.document.get("subject") or {}
    if subject.get("digest") != digest or len(manifest.layers) != 1 or manifest.layers[0].size > LARGEST_ARTIFACT:
        raise _not_there(f"{repository}@{digest}", f"{manifest.digest} is not one of our artifacts for it")
    blob = manifest.layers[0]
    content = bytearray()
    with client.blob(repository, blob.digest) as parts:
        for part in parts:
            content += part
            if len(content) > blob.size:
                break
    if digest_of(bytes(content)) != blob.digest:
        raise _not_there(
            f"{repository}@{digest}", f"the content of {blob.digest} hashes to {digest_of(bytes(content))}"
        )
    return bytes(content)


def _attached(client: RegistryClient, repository: str, digest: str, artifact_type: str) -> list[dict[str, Any]]:
    content = client.document(repository, f"referrers/{digest}")
    if content is None:
        index = client.manifest(repository, _tag(digest))
        content = index.content if index else b'{"manifests": []}'
    try:
        entries = json.loads(content)["manifests"]
        return [entry for entry in entries if entry.get("artifactType") == artifact_type]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutsideSystemError(
            SYSTEM, f"the list of what is attached to {repository}@{digest} is malformed", why=repr(error)
        ) from error


def _list_under_tag(client: RegistryClient, repository: str, digest: str, entry: dict[str, Any]) -> None:
    index = client.manifest(repository, _tag(digest))
    entries = list(index.document["manifests"]) if index else []
    if all(other.get("digest") != entry["digest"] for other in entries):
        document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [*entries, entry]}
        content = json.dumps(document, sort_keys=True).encode()
        client.put_manifest(repository, _tag(digest), ImageManifest.of(content, OCI_INDEX))


def _tag(digest: str) -> str:
    return digest.replace(":", "-")


def _not_there(where: str, why: str) -> ItemFailure:
    return ItemFailure(
        FailureKind.NOT_PULLED_BACK,
        f"{where} has no attachment that can be read",
        why=why,
        remedy="Publish its month with a version of this platform that attaches it",
    )
