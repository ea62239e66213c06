"""Content of a task's image, as CycloneDX: Debian packages and Python distributions, as found inside."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from formulacode_dagster.models.image import BuiltImage

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

SBOM_TYPE = "application/vnd.cyclonedx+json"
LISTING_PROPERTY = "formulacode:listing-sha256"
FILES_PROPERTY = "formulacode:files"


def sbom_of(image: BuiltImage, *, reference: str, digest: str, created: datetime) -> bytes:
    """The bill of materials (CycloneDX 1.6, JSON) of *image*, published as *reference* under *digest*.

    Equal images give equal bytes. A Python distribution has the number of its files and the hash over their listing,
    which `fc-data rebuild` compares.
    """
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    repository, _, tag = reference.rpartition(":")
    name = repository.rpartition("/")[2]
    container = Component(
        name=image.spec.task_id,
        type=ComponentType.CONTAINER,
        version=digest,
        bom_ref=digest,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest.removeprefix("sha256:"))],
        purl=PackageURL("oci", name=name, version=digest, qualifiers={"repository_url": repository, "tag": tag}),
    )
    components = [*_debian(image), *_python(image)]
    bom = Bom(
        components=components,
        metadata=BomMetaData(component=container, timestamp=created),
        serial_number=uuid5(NAMESPACE_URL, f"oci:{digest}"),
    )
    bom.register_dependency(container, components)
    return JsonV1Dot6(bom).output_as_string(indent=1).encode() + b"\n"


def _debian(image: BuiltImage) -> list[Component]:
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    packages = (package.partition("=") for package in image.toolchain.apt)
    return [
        Component(
            name=name,
            type=ComponentType.LIBRARY,
            version=version,
            bom_ref=f"deb:{name}@{version}",
            purl=PackageURL("deb", "debian", name, version),
        )
        for name, _, version in packages
    ]


def _python(image: BuiltImage) -> list[Component]:
    from cyclonedx.model import Property
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    return [
        Component(
            name=distribution.name,
            type=ComponentType.LIBRARY,
            version=distribution.version,
            bom_ref=f"pypi:{distribution.name}@{distribution.version}",
            purl=PackageURL("pypi", name=distribution.name, version=distribution.version),
            properties=[
                Property(name=FILES_PROPERTY, value=str(distribution.files)),
                Property(name=LISTING_PROPERTY, value=distribution.sha256),
            ],
        )
        for distribution in image.installed
        # files without a distribution have no version
        if distribution.version
    ]
