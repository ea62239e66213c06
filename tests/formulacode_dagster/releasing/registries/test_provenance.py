from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.releasing.registries.provenance import image_of, provenance_of

DIGEST = "sha256:" + "2" * 64
REFERENCE = "registry/acme/formulacode:tag"


def test_the_statement_tells_base_lock_spec_and_version(image: BuiltImage) -> None:
    statement = json.loads(provenance_of(image, reference=REFERENCE, digest=DIGEST))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert statement["subject"] == [{"name": REFERENCE, "digest": {"sha256": "2" * 64}}]
    definition, details = statement["predicate"]["buildDefinition"], statement["predicate"]["runDetails"]
    assert definition["externalParameters"]["spec"] == image.spec.model_dump(mode="json")
    base, lock, system = definition["resolvedDependencies"]
    assert base == {
        "uri": "git+https://github.com/Acme/Fast.py",
        "digest": {"gitCommit": image.spec.base_sha},
    }
    assert lock["digest"] == {"sha256": image.spec.lock_sha256}
    assert system["digest"] == {"sha256": "3" * 64}
    assert set(details["builder"]["version"]) == {"formulacode-dagster"}


def test_the_statement_links_to_the_server_that_has_the_repository(image: BuiltImage) -> None:
    web = "https://github.acme.internal"
    statement = provenance_of(image, reference=REFERENCE, digest=DIGEST, web=web)
    base, *_ = json.loads(statement)["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert base["uri"] == f"git+{web}/Acme/Fast.py"
    assert b"github.com" not in statement
    assert image_of(statement, digest=DIGEST, image_id=image.digest) == image


def test_the_image_comes_back_whole_and_equal_images_make_equal_statements(image: BuiltImage) -> None:
    statement = provenance_of(image, reference=REFERENCE, digest=DIGEST)
    assert image_of(statement, digest=DIGEST, image_id=image.digest) == image
    assert provenance_of(image, reference=REFERENCE, digest=DIGEST) == statement


def _another_type(statement: dict[str, Any]) -> None:
    statement["predicateType"] = "https://slsa.dev/provenance/v0.2"


def _another_build(statement: dict[str, Any]) -> None:
    statement["predicate"]["buildDefinition"]["buildType"] = "urn:other"


def _no_spec(statement: dict[str, Any]) -> None:
    del statement["predicate"]["buildDefinition"]["externalParameters"]["spec"]


def _another_subject(statement: dict[str, Any]) -> None:
    statement["subject"][0]["digest"]["sha256"] = "9" * 64


@pytest.mark.parametrize("spoil", [_another_type, _another_build, _no_spec, _another_subject])
def test_a_statement_that_is_not_ours_or_of_another_image_is_refused(
    image: BuiltImage, spoil: Callable[[dict[str, Any]], None]
) -> None:
    statement = json.loads(provenance_of(image, reference=REFERENCE, digest=DIGEST))
    spoil(statement)
    with pytest.raises(ItemFailure) as caught:
        image_of(json.dumps(statement).encode(), digest=DIGEST, image_id=image.digest)
    assert caught.value.kind == "unreadable"


def test_a_statement_about_the_image_before_is_refused(image: BuiltImage) -> None:
    statement = provenance_of(image, reference=REFERENCE, digest=DIGEST)
    with pytest.raises(ItemFailure, match="it is about"):
        image_of(statement, digest=DIGEST, image_id="sha256:" + "9" * 64)
