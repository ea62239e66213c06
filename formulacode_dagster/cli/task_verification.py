"""The verifications of the `images` stage for one task folder, by hand and without a database."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.building.verification.evidence import Subject
from formulacode_dagster.building.verification.origin import FolderOrigin
from formulacode_dagster.building.verification.report import Report, verification_reports, write_report
from formulacode_dagster.building.verification.scan import own_secrets
from formulacode_dagster.building.verification.task_folder import TaskFolder, image_of, read_task_folder
from formulacode_dagster.building.verification.verify import ImageVerification, verify
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.image import BuiltImage, ResourceLimits, Verification
from resources.containers import ContainersResource

DETAIL_CHARACTERS = 300


def verify_task(console: Console, folder: Path) -> bool:
    """Verify the task in *folder* and write the verdict into it; return True if all gates pass.

    Raises the error that prevented the gates (ConfigurationError for a broken folder, ItemFailure, OutsideSystemError),
    after writing it down if there is a folder.
    """
    containers = ContainersResource()
    engine = DockerEngine(settings=DockerBuildSettings(containers.limits))
    verification = _FolderRun(console, folder)
    try:
        return verification.run(engine, containers.limits)
    except FormulaCodeError as error:
        if folder.is_dir():
            verification.write(error=str(error))
        raise


class _FolderRun:
    """One verification of a folder, as far as it came."""

    def __init__(self, console: Console, folder: Path) -> None:
        self._console = console
        self._folder = folder
        self._started_at = datetime.now(UTC)
        self._started = time.monotonic()
        self._made: list[Verification] = []
        self._task: TaskFolder | None = None
        self._image: BuiltImage | None = None

    def run(self, engine: DockerEngine, limits: ResourceLimits) -> bool:
        """Read the folder, take its image, ask the gates."""
        self._task = task = read_task_folder(self._folder)
        self._say(f"{task.task_id}: {'taking' if isinstance(task.image, str) else 'building'} {task.image}")
        origin = FolderOrigin(task.base_sha, task.solution)
        with image_of(task, engine.daemon, limits) as image:
            self._image = image
            verified = verify(Subject(engine, image, origin, run_id="verify"), self._tell)
        path = self.write(verified=verified)
        self._say(f"{'verified' if verified.failure is None else 'not verified'}: see {path}")
        return verified.failure is None

    def write(self, *, verified: ImageVerification | None = None, error: str = "") -> Path:
        """Write the results so far."""
        task, image = self._task, self._image
        report = Report(
            task=task.task_id if task else self._folder.resolve().name,
            base_commit=task.base_sha if task else "",
            image=image.tag if image else task.image if task and isinstance(task.image, str) else "",
            image_digest=image.digest if image else "",
            started_at=self._started_at,
            seconds=round(time.monotonic() - self._started, 2),
            ok=verified is not None and verified.failure is None,
            error=error,
            gates=verification_reports(self._made),
            benchmarks=verified.benchmarks if verified else (),
        )
        return write_report(self._folder, report, own_secrets(os.environ))

    def _tell(self, made: Verification) -> None:
        self._made.append(made)
        state = "[green]passed[/]" if made.ok else "[red]failed[/]"
        detail = escape(made.detail[:DETAIL_CHARACTERS])
        self._console.print(f"{made.name:<20}{state} {made.seconds:6.1f} s  {detail}", highlight=False)

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)
