"""A task as a folder: Harbor's format, read with the care that a stranger's folder needs.

`task.toml` names the image (`[environment] docker_image`), or `environment/Dockerfile`, else `Dockerfile`, describes
its build. The image's identity is declared in `[metadata]`: `base_commit`, and if known `task_id`, `package_name`,
`benchmark_dir`. Files below `solution/` hold the change that must not be in the image, a `requirements.txt` next to the
Dockerfile the lock of allowed distributions. See https://www.harborframework.com/docs/tasks for the layout.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from formulacode_dagster.building.engines.docker.daemon import LABEL, DockerDaemon
from formulacode_dagster.building.engines.docker.leftovers import GRADED_IN
from formulacode_dagster.building.engines.docker.reference import find_image
from formulacode_dagster.building.engines.failures import tail
from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.building.engines.processes import FILE_BYTES
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.image import BuildSpec, BuiltImage, ResourceLimits
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.files.regular_files import is_regular_file, read_regular_file

TASK_FILE = "task.toml"
MOST_BYTES = 32 << 20
_SHA = re.compile(r"[0-9a-f]{40}")
_FOLDERS = ("environment", ".")


@dataclass(frozen=True)
class TaskFolder:
    """Declarations of a task folder."""

    path: Path
    base_sha: str
    image: str | Path
    """Reference of the image, or the Dockerfile it is built from."""
    task_id: str
    package_name: str
    benchmark_dir: str
    lock: str
    """Requirements that may be installed; `` if the folder has none."""
    solution: bytes
    """The files of the solution, concatenated; no bytes if there are none."""


def read_task_folder(path: Path) -> TaskFolder:
    """Read the folder *path*; links are not followed. Raises ConfigurationError with the problem."""
    if not path.is_dir():
        raise ConfigurationError(f"{path} is no folder", remedy=f"Name the folder with {TASK_FILE}")
    declared = _toml(path)
    metadata, environment = _table(declared, "metadata", path), _table(declared, "environment", path)
    base_sha = _text(metadata, "base_commit", path)
    if not _SHA.fullmatch(base_sha):
        raise ConfigurationError(
            f"{path / TASK_FILE} declares no base_commit",
            why=f"[metadata] base_commit is {base_sha[:60]!r}",
            remedy="Write the forty digits of the image's commit",
        )
    reference = _text(environment, "docker_image", path)
    places = [path / folder for folder in _FOLDERS if not (path / folder).is_symlink()]
    dockerfile = next((place / "Dockerfile" for place in places if is_regular_file(place / "Dockerfile")), None)
    image = reference or dockerfile
    if image is None:
        raise ConfigurationError(
            f"{path} has no image",
            why="task.toml names none in [environment] docker_image, and there is no environment/Dockerfile",
            remedy="Add one of them",
        )
    locks = [place / "requirements.txt" for place in places if is_regular_file(place / "requirements.txt")]
    return TaskFolder(
        path=path,
        base_sha=base_sha,
        image=image,
        task_id=_text(metadata, "task_id", path) or path.resolve().name,
        package_name=_text(metadata, "package_name", path),
        benchmark_dir=_text(metadata, "benchmark_dir", path),
        lock=next((read_regular_file(file, MOST_BYTES).decode(errors="replace") for file in locks), ""),
        solution=b"\n".join(_below(path / "solution")),
    )


@contextmanager
def image_of(task: TaskFolder, daemon: DockerDaemon, limits: ResourceLimits) -> Iterator[BuiltImage]:
    """Return the image of *task*, pulled or built, with the folder's declarations in place of its own.

    One that was built for this is removed afterwards, by the next run if this process is killed; Docker's cache makes
    building it again cheap.

    Raises ItemFailure (`build`, `timeout`, `image_gone`, `not_ours`), OutsideSystemError when Docker is gone.
    """
    if isinstance(task.image, str):
        yield _as_declared(task, find_image(daemon, task.image))
        return
    use = uuid4().hex
    tag = f"formulacode/verify:{use[:12]}"
    labels = {GRADED_IN: use, f"{LABEL}.owner": Owner.current("").model_dump_json()}
    build_dockerfile(task.image, daemon, limits, tag=tag, labels=labels)
    try:
        yield _as_declared(task, find_image(daemon, tag))
    finally:
        with daemon.watched(f"remove {tag}"):
            daemon.client.images.remove(tag, force=True)


def _as_declared(task: TaskFolder, image: BuiltImage) -> BuiltImage:
    spec = image.spec
    lock = task.lock or spec.lock
    update: dict[str, object] = {
        "base_sha": task.base_sha,
        "package_name": task.package_name,
        "benchmark_dir": task.benchmark_dir.strip("/"),
        "lock": lock,
        "lock_sha256": sha256(lock.encode()).hexdigest(),
    }
    return image.model_copy(update={"spec": BuildSpec.model_validate(spec.model_dump() | update)})


def build_dockerfile(
    dockerfile: Path,
    daemon: DockerDaemon,
    limits: ResourceLimits,
    *,
    tag: str,
    arguments: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Build somebody else's *dockerfile* in its folder, with the limits of a build, and call the image *tag*.

    Raises ItemFailure (`build`, `timeout`) with the end of the log, OutsideSystemError when Docker is gone.
    """
    daemon.require_buildx()
    memory = limits.memory_mb * 1024 * 1024
    command = ["buildx", "build", "--progress", "plain", "--load", "--tag", tag, f"--label={LABEL}=1"]
    command += [f"--ulimit=data={memory}:{memory}", f"--ulimit=fsize={FILE_BYTES}:{FILE_BYTES}", "--ulimit=core=0:0"]
    command += [f"--build-arg={name}={value}" for name, value in (arguments or {}).items()]
    command += [f"--label={name}={value}" for name, value in (labels or {}).items()]
    command += ["--file", str(dockerfile), str(dockerfile.parent)]
    done = daemon.run(command, timeout=limits.build_seconds)
    if not done.ok:
        kind = FailureKind.TIMEOUT if done.timed_out else FailureKind.BUILD
        how = f"was killed after {done.seconds:.0f} s" if done.timed_out else "failed"
        said = tail(done.stderr.decode(errors="replace"))
        raise ItemFailure(kind, f"the build of {dockerfile} {how}", why=said.rpartition("\n")[2], log_tail=said)


def _toml(path: Path) -> Mapping[str, Any]:
    file = path / TASK_FILE
    if not is_regular_file(file):
        raise ConfigurationError(f"{path} holds no {TASK_FILE}", remedy="Name the folder of a task")
    try:
        return tomllib.loads(read_regular_file(file, MOST_BYTES).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not valid TOML", why=str(error), remedy="Mend it") from error


def _table(declared: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    table = declared.get(name, {})
    if not isinstance(table, dict):
        raise ConfigurationError(f"[{name}] of {path / TASK_FILE} is no table", remedy="Mend it")
    return table


def _text(table: Mapping[str, Any], name: str, path: Path) -> str:
    value = table.get(name, "")
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} in {path / TASK_FILE} is no text", remedy="Put it in quotes")
    return value.strip()


def _below(folder: Path) -> Iterator[bytes]:
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if is_regular_file(path):
            yield read_regular_file(path, MOST_BYTES)
        elif not path.is_symlink():
            yield from _below(path)
