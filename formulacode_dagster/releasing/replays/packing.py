"""Packs released tasks into one archive that is measured without Docker, network or root; see `portable`."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from formulacode_dagster.building.engines.callgrind import Callgrind, CallgrindCommand
from formulacode_dagster.building.suites.archive import harness_archive
from formulacode_dagster.building.suites.remote import environment_of_runs
from formulacode_dagster.measuring.measurement.changed_code import changes_build
from formulacode_dagster.measuring.measurement.patch import changed_files, changes_no_compiled_code
from formulacode_dagster.measuring.measurement.plan import RULE_VERSION
from formulacode_dagster.measuring.measurement.procedure import Procedure, harness_sha256
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.identity import require_file_name
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.files.atomic import disk_errors
from formulacode_dagster.releasing.registries.client import RegistryClient
from formulacode_dagster.releasing.registries.layouts import ImageLayout, LaidOutImage
from formulacode_dagster.releasing.registries.manifests import is_digest
from formulacode_dagster.releasing.registries.names import ImageName

from .packed import COUNTING, HARNESS, LAYOUT, MANIFEST, PROGRAM, ArchiveManifest, CountingTool, PackedTask
from .portable.sessions import HARNESS as HARNESS_FOLDER
from .released import TaskToReplay
from .replay_program import replay_program
from .slim_images import SlimImages


class ImageReader(Protocol):
    """Registries and the Docker daemon, as far as packing needs them."""

    def reading(self, reference: str) -> AbstractContextManager[tuple[RegistryClient, ImageName]]:
        """Yield a client for the registry of *reference*, and the name in it."""

    def saved(self, image_id: str) -> Iterable[bytes]:
        """Stream an image of the daemon, as `docker save`; raises ItemFailure (`image_missing`)."""


@dataclass(frozen=True)
class PackedArchive:
    """An archive that was written, and the tasks that are not in it."""

    manifest: ArchiveManifest
    sha256: str
    size: int
    left_out: dict[str, str]
    """Why, by item."""


@dataclass(frozen=True)
class ReleaseToPack:
    """A release, by tag, month and where it is."""

    tag: str
    month: str
    destination: str


def pack(
    release: ReleaseToPack,
    tasks: Sequence[TaskToReplay],
    file: Path,
    *,
    reader: ImageReader,
    progress: ProgressReporter,
    slim: bool = False,
) -> PackedArchive:
    """Write the archive of *tasks* to *file*; a *slim* one leaves the system to the other machine.

    Raises ConfigurationError if none of them can be packed; and the errors of reading a registry or the daemon.
    """
    left_out: dict[str, str] = {}
    with (
        disk_errors(str(file)),
        tempfile.TemporaryDirectory(dir=file.parent, prefix=".pack-") as place,
        tempfile.TemporaryDirectory(dir=file.parent, prefix=".pack-") as scratch,
    ):
        folder = Path(place)
        source = Path(scratch) / LAYOUT if slim else folder / LAYOUT
        layout = ImageLayout(source)
        slim_images = SlimImages(source, folder / LAYOUT) if slim else None
        packed = []
        for task in tasks:
            progress(f"{task.item}: packing")
            try:
                packed.append(_packed(task, layout, slim_images, folder, reader))
            except ItemFailure as failure:
                left_out[task.item] = str(failure)
        if not packed:
            why = "; ".join(f"{item}: {reason}" for item, reason in left_out.items())
            raise ConfigurationError(f"nothing of {release.tag} can be packed", why=why or "it has no such task")
        if not slim:
            layout.write_index()
        (folder / HARNESS).write_bytes(harness_archive())
        (folder / PROGRAM).write_bytes(replay_program())
        (folder / PROGRAM).chmod(0o755)
        manifest = ArchiveManifest(
            release=release.tag,
            month=release.month,
            destination=release.destination,
            tasks=tuple(packed),
            counting=_add_counting_tool(folder / COUNTING),
            files={path.relative_to(folder).as_posix(): _sha256(path) for path in _files(folder)},
        )
        content = manifest.model_dump_json(indent=1).encode()
        (folder / MANIFEST).write_bytes(content)
        _write(folder, file)
    return PackedArchive(manifest, hashlib.sha256(content).hexdigest(), file.stat().st_size, left_out)


def _packed(
    task: TaskToReplay, layout: ImageLayout, slim_images: SlimImages | None, folder: Path, reader: ImageReader
) -> PackedTask:
    require_file_name(task.task_id)
    procedure = task.procedure()
    _require_portable(task, procedure)
    image = _image(task, procedure, layout, reader)
    patch = f"tasks/{task.task_id}/patch.diff"
    (folder / patch).parent.mkdir(parents=True)
    (folder / patch).write_bytes(task.patch)
    (folder / patch).with_name("procedure.json").write_text(task.procedure_json)
    files = changed_files(task.patch)
    is_copy = changes_no_compiled_code(files)
    return PackedTask(
        item=task.item,
        task_id=task.task_id,
        image=image.digest,
        image_id=image.image_id,
        slim=slim_images.add(image.digest) if slim_images else None,
        patch=patch,
        patch_sha256=procedure.patch_sha256,
        procedure_sha256=hashlib.sha256(task.procedure_json.encode()).hexdigest(),
        harness_sha256=harness_sha256(),
        control_is_copy=is_copy,
        is_linked=not is_copy or changes_build(files),
        environment=environment_of_runs(procedure.spec.run_environment),
        benchmark_dir=procedure.spec.benchmark_dir,
        files=procedure.files,
        benchmarks=procedure.benchmarks,
        plan=procedure.plan,
        rule=procedure.rule,
        limits=procedure.limits,
    )


def _require_portable(task: TaskToReplay, procedure: Procedure) -> None:
    if procedure.engine is not EngineName.DOCKER:
        raise ItemFailure(
            FailureKind.OTHER_ENGINE,
            f"{task.task_id} was measured with {procedure.engine}, whose images have no root file system",
            remedy="Measure it with FC_ENGINE=docker and release a revision",
        )
    if procedure.rule.version != RULE_VERSION:
        raise ItemFailure(
            FailureKind.RULE_UNKNOWN,
            f"it was judged by version {procedure.rule.version} of the rule, and here it is {RULE_VERSION}",
            remedy="Pack it with the version of the platform that released it",
        )


def _image(task: TaskToReplay, procedure: Procedure, layout: ImageLayout, reader: ImageReader) -> LaidOutImage:
    """Add the task's image to *layout*: from its registry, or, if it was published nowhere, from the daemon."""
    if task.image_digest:
        if not is_digest(task.image_digest):
            raise ItemFailure(FailureKind.UNREADABLE, f"{task.image_digest!r} of {task.task_id} is no image's digest")
        with reader.reading(task.image_name) as (client, named):
            return layout.add_pulled(client, named.path, task.image_digest)
    image = layout.add_saved(reader.saved(procedure.image_digest))
    if image.image_id != procedure.image_digest:
        raise ItemFailure(
            FailureKind.MISMATCH,
            f"the image of {task.task_id} is not the one that was measured",
            why=f"the daemon saved {image.image_id}, not {procedure.image_digest}",
            remedy="Publish its image (FC_REGISTRY_URL) and release a revision",
        )
    return image


def _add_counting_tool(folder: Path) -> CountingTool | None:
    """Add the tool that counts instructions, of a static program and a library; None if this machine has none."""
    tool = Callgrind.find()
    if tool is None:
        return None
    folder.mkdir()
    for path in (tool.program, tool.preloaded):
        (folder / path.name).write_bytes(path.read_bytes())
    command = CallgrindCommand(f"{HARNESS_FOLDER}/{tool.program.name}", HARNESS_FOLDER)
    return CountingTool(argv=command.argv, environment=dict(command.environment))


def _write(folder: Path, file: Path) -> None:
    """Write *folder* as an uncompressed archive, since its blobs are compressed, in place of *file*."""
    part = file.with_name(f".{file.name}.part")
    with tarfile.open(part, "w") as archive:
        for path in _files(folder):
            name = f"{file.name.partition('.')[0]}/{path.relative_to(folder).as_posix()}"
            entry = archive.gettarinfo(path, name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode, entry.mtime = (0o755 if path.name == PROGRAM else 0o644), 0
            with path.open("rb") as content:
                archive.addfile(entry, content)
    part.replace(file)


def _files(folder: Path) -> Iterator[Path]:
    return iter(sorted(path for path in folder.rglob("*") if path.is_file()))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
