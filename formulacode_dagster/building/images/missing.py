"""Images that are built once more, though the stage calls them done: those still needed that nobody has."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.building.engines.protocol import Engine, keeps
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner.work import Part, StageRun
from formulacode_dagster.operating.store.artifacts import IMAGES, MEASUREMENTS
from formulacode_dagster.operating.store.ledger import entries_of


def missing_images(run: StageRun, engine: Engine, prs: Sequence[PullRequest]) -> list[str]:
    """Items of *prs* whose image *run*, which leads the month or works alone, is to build again with *engine*.

    An image of another store is missing where nobody can come who has it: none shares the run, or whoever was to
    measure or publish it found that no living worker had it. Raises OutsideSystemError when the engine is gone.
    """
    if run.sharing is not None and run.sharing.part is not Part.LEADS:
        return []
    with run.database.transaction() as connection:
        keys = [pr.key for pr in prs]
        built = IMAGES.read_keys(connection, run.month, keys)
        measured = MEASUREMENTS.read_keys(connection, run.month, keys)
        ends = {(entry.stage, entry.item): entry for entry in entries_of(connection, run.month)}

    def is_needed(pr: PullRequest) -> bool:
        image = ends.get((Stage.IMAGES, pr.item))
        users = (ends.get((stage, pr.item)) for stage in (Stage.MEASUREMENTS, Stage.PUBLISHED_IMAGES))
        if any(_missed(image, user) for user in users):
            return True
        return pr.key not in measured and (run.sharing is None or keeps(engine, built[pr.key]))

    return [pr.item for pr in prs if pr.key in built and is_needed(pr) and not engine.exists(built[pr.key])]


def _missed(image: LedgerEntry | None, user: LedgerEntry | None) -> bool:
    """Whether who was to use an image found it gone, and none was built since."""
    if user is None or user.state is not ItemState.FAILED or user.reason != FailureKind.IMAGE_GONE:
        return False
    return not (image and image.finished_at and user.finished_at and image.finished_at > user.finished_at)
