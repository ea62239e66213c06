"""An image known only by its name: its labels and files, without running any of it."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuildSpec, BuiltImage, EngineName
from formulacode_dagster.models.reasons import FailureKind

from .daemon import LABEL, DockerDaemon
from .export import read_files
from .session import TOOLS

if TYPE_CHECKING:
    from docker.models.images import Image

TASK = f"{TOOLS}/task"
_SHA = re.compile(r"[0-9a-f]{40}")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")
_NOT_THERE = ("manifest unknown", "not found", "pull access denied", "repository does not exist", "invalid reference")


def find_image(daemon: DockerDaemon, reference: str) -> BuiltImage:
    """The image of ours that *reference* names, pulled when it is not here.

    The spec it was built from is its content below `/opt/formulacode/task`; the folder of its benchmarks is not
    recorded. Raises ItemFailure (`image_gone`) if it is nowhere, (`not_ours`) if the platform did not build it, and
    OutsideSystemError if Docker or the registry does not answer.
    """
    image = _pulled(daemon, reference)
    files = read_files(daemon, str(image.id), TASK)
    texts = {name: content.decode(errors="replace") for name, content in files.items()}
    base_sha = texts.get("base-sha", "").strip()
    if not _SHA.fullmatch(base_sha):
        raise ItemFailure(
            FailureKind.NOT_OURS,
            f"{reference} is not an image of a task",
            why=f"{TASK}/base-sha does not name a commit",
            remedy="Name an image that the platform built or published",
        )
    labels = {str(name): str(value) for name, value in (image.labels or {}).items()}
    lock, task = texts.get("requirements.txt", ""), labels.get(f"{LABEL}.task", "")
    spec = BuildSpec(
        task_id=task if _PLAIN.fullmatch(task) else "unknown",
        repository=labels.get(f"{LABEL}.repository", ""),
        repository_id=0,
        base_sha=base_sha,
        anchor_sha=base_sha,
        python=texts.get("python", "").strip() or "3.11",
        os_image="",
        instrument=(),
        lock=lock,
        lock_sha256=sha256(lock.encode()).hexdigest(),
        package_root=texts.get("package-root", "").strip() or ".",
        benchmark_dir="",
    )
    return BuiltImage(
        month="",
        repository_id=0,
        number=0,
        engine=EngineName.DOCKER,
        spec=spec,
        tag=reference,
        digest=str(image.id),
        location=reference,
        size_bytes=int(image.attrs.get("Size", 0)),
        build_seconds=0.0,
        tiers=(),
        benchmarks=(),
        verifications=(),
    )


def _pulled(daemon: DockerDaemon, reference: str) -> Image:
    import docker.errors

    if here := daemon.image(reference):
        return here
    with daemon.watched(f"look for {reference}"):
        try:
            daemon.client.api.pull(reference)
            return daemon.client.images.get(reference)
        except docker.errors.APIError as error:
            why = str(error.explanation or error)[:300]
            if any(word in why.lower() for word in _NOT_THERE):
                raise ItemFailure(
                    FailureKind.IMAGE_GONE, f"there is no image {reference}", why=why, remedy="Build or pull it first"
                ) from error
            raise OutsideSystemError("registry", f"cannot pull {reference}", why=why) from error
