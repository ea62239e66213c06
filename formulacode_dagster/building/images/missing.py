"""Images to rebuild although the stage calls them done: still needed, but in no reachable store."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.building.engines.protocol import Engine, keeps
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.runner.work import RunRole, StageRun
from formulacode_dagster.operating.store.artifacts import IMAGES, MEASUREMENTS
from formulacode_dagster.operating.store.ledger import entries_of


def missing_images(run: StageRun, engine: Engine, prs: Sequence[PullRequest]) -> list[str]:
    """Return items of *prs* whose image *run*, which leads the month or works by itself, rebuilds with *engine*.

    An image of another store is missing if no worker with access can come: no worker shares the run, or the stage that
    needed it found no living worker with it. Raises OutsideSystemError when the engine is gone.
    """
    if run.sharing is not None and run.sharing.part is not RunRole.LEADS:
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
    """Return True if a later stage found the image missing, and none was built since."""
    if user is None or user.state is not ItemState.FAILED or user.reason != FailureKind.IMAGE_GONE:
        return False
    return not (image and image.finished_at and user.finished_at and image.finished_at > user.finished_at)
