from __future__ import annotations

import json
from datetime import UTC, datetime

from cyclonedx.model.bom import Bom

from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.releasing.registries.sbom import FILES_PROPERTY, LISTING_PROPERTY, sbom_of

DIGEST = "sha256:" + "2" * 64
CREATED = datetime(2026, 2, 14, tzinfo=UTC)


def test_what_is_installed_is_told_in_the_words_of_other_tools(image: BuiltImage) -> None:
    written = sbom_of(image, reference="127.0.0.1:5000/acme/formulacode:tag", digest=DIGEST, created=CREATED)
    assert sbom_of(image, reference="127.0.0.1:5000/acme/formulacode:tag", digest=DIGEST, created=CREATED) == written
    document = json.loads(written)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["timestamp"] == CREATED.isoformat()
    read = Bom.from_json(document)
    assert {str(component.purl) for component in read.components} == {
        "pkg:deb/debian/libc6@2.36-9",
        "pkg:deb/debian/zlib1g@1:1.2",
        "pkg:pypi/numpy@2.0.0",
    }
    (numpy,) = (component for component in read.components if component.name == "numpy")
    assert {entry.name: entry.value for entry in numpy.properties} == {FILES_PROPERTY: "3", LISTING_PROPERTY: "4" * 64}
    assert read.metadata.component is not None
    assert read.metadata.component.version == DIGEST
    assert "repository_url=127.0.0.1:5000/acme/formulacode" in str(read.metadata.component.purl)
