"""The toolchain of an image: read from its `base` tier, which no code of a repository has ever touched."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from formulacode_dagster.building.specs.spec import with_flags
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.image import BuildSpec, Toolchain

from .daemon import LABEL, DockerDaemon
from .export import read_files

OS_DIGEST_LABEL = f"{LABEL}.os-digest"
DESCRIBED = "/opt/formulacode/toolchain.json"


def os_digest(daemon: DockerDaemon, image: str) -> str:
    """Content digest of the OS image *image*: of the one here, else of the registry's; `` for none."""
    import docker.errors

    if here := daemon.image(image):
        return str(here.id)
    with daemon.watched(f"look for {image}"), suppress(docker.errors.APIError):
        return str(daemon.client.images.get_registry_data(image).id)
    return ""


def toolchain_of(daemon: DockerDaemon, base_digest: str, spec: BuildSpec) -> Toolchain:
    """The toolchain of an image of *spec* whose base tier is *base_digest*, with the flags that the spec sets.

    Raises OutsideSystemError when the daemon does not answer.
    """
    return with_flags(_described(daemon, base_digest), spec)


@lru_cache(maxsize=64)
def _described(daemon: DockerDaemon, digest: str) -> Toolchain:
    with daemon.watched(f"look at {digest}"):
        labels = daemon.client.images.get(digest).labels
    written = read_files(daemon, digest, DESCRIBED)
    if not written:
        raise OutsideSystemError("docker", f"{digest} holds no {DESCRIBED}", remedy="Remove it, to build it again")
    described = Toolchain.model_validate_json(written[""])
    return described.model_copy(update={"os_digest": labels.get(OS_DIGEST_LABEL, "")})
