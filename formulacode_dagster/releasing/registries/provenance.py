"""Provenance of a task's image, as an in-toto statement with SLSA's predicate: enough to build it again."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

from pydantic import ValidationError

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner.fingerprint import CODE_VERSIONS
from formulacode_dagster.sources.github.transport.addresses import PUBLIC_WEB

PROVENANCE_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:formulacode:task-image:1"
BUILDER = "urn:formulacode:formulacode-dagster"
IMAGE = "image"
_PACKAGE = "formulacode-dagster"


def provenance_of(image: BuiltImage, *, reference: str, digest: str, web: str = PUBLIC_WEB) -> bytes:
    """The statement about *image*, published as *reference* under *digest*: its base, locks, spec and our version.

    *web* is the address of the GitHub that its repository is at.
    """
    spec = image.spec
    kept = image.model_dump(mode="json", exclude={"spec"})
    materials: list[dict[str, Any]] = [
        {"uri": f"git+{web}/{spec.repository}", "digest": {"gitCommit": spec.base_sha}},
        *({"uri": f"git+{web}/{module.repository}", "digest": {"gitCommit": module.sha}} for module in spec.submodules),
        {"name": "lock", "digest": {"sha256": spec.lock_sha256}},
        {
            "uri": f"docker://{spec.os_image.replace('{python}', spec.python)}",
            "digest": _sha256(image.toolchain.os_digest),
        },
    ]
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": reference, "digest": _sha256(digest)}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"spec": spec.model_dump(mode="json")},
                "internalParameters": {"codeVersion": CODE_VERSIONS[Stage.IMAGES]},
                "resolvedDependencies": materials,
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {_PACKAGE: version(_PACKAGE)}},
                "byproducts": [{"name": IMAGE, "digest": _sha256(image.digest), "annotations": kept}],
            },
        },
    }
    return json.dumps(statement, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def image_of(statement: bytes, *, digest: str, image_id: str) -> BuiltImage:
    """Return the image that *statement* describes, attached to the manifest *digest* whose configuration is *image_id*.

    Raises ItemFailure (`unreadable`) when it is malformed, or of another image.
    """
    try:
        document = json.loads(statement)
        subjects = [subject["digest"] for subject in document["subject"]]
        definition, details = (document["predicate"][part] for part in ("buildDefinition", "runDetails"))
        if (document["_type"], document["predicateType"]) != (STATEMENT, PREDICATE):
            raise ValueError(f"it is no {PREDICATE}")
        if definition["buildType"] != BUILD_TYPE:
            raise ValueError(f"it was built as {definition['buildType']}")
        (kept,) = (part["annotations"] for part in details["byproducts"] if part["name"] == IMAGE)
        image = BuiltImage.model_validate({**kept, "spec": definition["externalParameters"]["spec"]})
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise _unreadable(digest, str(error)[:300]) from error
    if subjects != [_sha256(digest)] or image.digest != image_id:
        raise _unreadable(digest, f"it is about {subjects}, image {image.digest}")
    return image


def _sha256(digest: str) -> dict[str, str]:
    return {"sha256": digest.removeprefix("sha256:")} if digest else {}


def _unreadable(digest: str, why: str) -> ItemFailure:
    return ItemFailure(
        FailureKind.UNREADABLE,
        f"the provenance of {digest} cannot be used",
        why=why,
        remedy="Rebuild from the database with `fc-data rebuild owner/repo#123`",
    )
