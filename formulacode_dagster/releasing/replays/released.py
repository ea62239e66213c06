"""A task as anybody finds it: a row of the dataset, and the image that it names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.measurement import Metric
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth


@dataclass(frozen=True)
class TaskToReplay:
    """Columns of a row that a replay is made from."""

    month: str
    task_id: str
    item: str
    number: int
    patch: bytes
    procedure_json: str
    """`` if the row has none."""
    image_name: str
    """`` if its image was not published."""
    image_digest: str
    metric: Metric = Metric.TIME
    speedup: float | None = None
    instructions_ratio: float | None = None

    def procedure(self) -> Procedure:
        """How it was measured.

        Raises ItemFailure: `no_procedure`, `unreadable`; `mismatch` when its patch is not the one that was measured.
        """
        if not self.procedure_json:
            raise ItemFailure(
                FailureKind.NO_PROCEDURE,
                f"the row of {self.task_id} has no measurement procedure",
                why="it was released before rows did",
                remedy="Measure it again with --force and release a revision",
            )
        procedure = Procedure.parse(self.procedure_json, self.task_id)
        if hashlib.sha256(self.patch).hexdigest() != procedure.patch_sha256:
            raise ItemFailure(
                FailureKind.MISMATCH,
                f"the patch of {self.task_id} is not the one that was measured",
                why="its hash is another",
                remedy="Read the row as it was released; `patch_encoding` gives the patch's bytes back",
            )
        return procedure


def tasks_of(released: ReleasedMonth) -> Iterator[TaskToReplay]:
    """The tasks of a release; columns that came later may be missing in it."""
    for row in released.frame.iter_rows(named=True):
        yield TaskToReplay(
            month=row["month"],
            task_id=row["task_id"],
            item=f"{row['repo_name']}#{row['pr_number']}",
            number=row["pr_number"],
            patch=row["patch"].encode(row["patch_encoding"]),
            procedure_json=row.get("procedure") or "",
            image_name=row["image_name"] or "",
            image_digest=row["image_digest"] or "",
            metric=Metric(row.get("metric") or Metric.TIME),
            speedup=row.get("speedup"),
            instructions_ratio=row.get("instructions_ratio"),
        )


def released_image(task: TaskToReplay, procedure: Procedure, engine: Engine, digest: str) -> BuiltImage:
    """Return the image of this content *digest*, as far as sessions need it; of its build only the spec is known.

    Raises ItemFailure (`image_missing`) when *engine* has none such.
    """
    location = engine.location_of(digest)
    if location is None:
        raise ItemFailure(
            FailureKind.IMAGE_MISSING,
            f"the image of {task.task_id} is not here",
            why=f"it was published nowhere, and {engine.name} has no {digest}",
            remedy="Replay it where it was built; or publish its image (FC_REGISTRY_URL) and release a revision",
        )
    return image_of(task, procedure, digest, location=location, engine=engine.name)


def image_of(
    task: TaskToReplay,
    procedure: Procedure,
    digest: str,
    *,
    location: str,
    engine: EngineName = EngineName.DOCKER,
) -> BuiltImage:
    """Return the image of this content *digest* at *location*; of its build only the spec is known."""
    return BuiltImage(
        month=task.month,
        repository_id=procedure.spec.repository_id,
        number=task.number,
        engine=engine,
        spec=procedure.spec,
        tag=location.rpartition("/")[2],
        digest=digest,
        location=location,
        size_bytes=0,
        build_seconds=0.0,
        tiers=(),
        benchmarks=(),
        verifications=(),
    )
