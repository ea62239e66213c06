"""What an image was built with: read from its `base` tier, which no code of a repository has ever touched."""

from __future__ import annotations

import io
import tarfile
import uuid
from functools import lru_cache

from formulacode_dagster.engines.owner import Owner
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.image import BuildSpec, Toolchain
from formulacode_dagster.specs.spec import with_flags

from .daemon import LABEL, DockerDaemon

OS_DIGEST_LABEL = f"{LABEL}.os-digest"
DESCRIBED = "/opt/formulacode/toolchain.json"


def os_digest(daemon: DockerDaemon, image: str) -> str:
    """Content digest of the OS image *image*: of the one here, else of the registry's; `` for none."""
    import docker.errors

    with daemon.watched(f"look for {image}"):
        try:
            return str(daemon.client.images.get(image).id)
        except docker.errors.ImageNotFound:
            pass
        try:
            return str(daemon.client.images.get_registry_data(image).id)
        except docker.errors.APIError:
            return ""


def toolchain_of(daemon: DockerDaemon, base_digest: str, spec: BuildSpec) -> Toolchain:
    """The toolchain of an image of *spec* whose base tier is *base_digest*, with the flags that the spec sets.

    Raises OutsideSystemError when the daemon does not answer.
    """
    return with_flags(_described(daemon, base_digest), spec)


@lru_cache(maxsize=64)
def _described(daemon: DockerDaemon, digest: str) -> Toolchain:
    client = daemon.client
    with daemon.watched(f"read {DESCRIBED} of {digest}"):
        labels = client.images.get(digest).labels
        owner = {LABEL: "1", f"{LABEL}.owner": Owner.current("").model_dump_json()}
        name = f"formulacode-toolchain-{uuid.uuid4().hex[:12]}"
        container = client.containers.create(digest, ["true"], name=name, labels=owner, network_mode="none")
        try:
            packed = b"".join(container.get_archive(DESCRIBED)[0])
        finally:
            container.remove(force=True, v=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        stream = archive.extractfile(DESCRIBED.rpartition("/")[2])
        if stream is None:
            raise OutsideSystemError("docker", f"{digest} holds no {DESCRIBED}", remedy="Remove it, to build it again")
        described = Toolchain.model_validate_json(stream.read())
    return described.model_copy(update={"os_digest": labels.get(OS_DIGEST_LABEL, "")})
