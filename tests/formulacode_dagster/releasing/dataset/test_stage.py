"""The step that releases a month: once at each destination."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store.artifacts import RELEASES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.stage import RELEASE, PublishedDatasetTools, run

MONTH = "2026-02"


def release_to(database: Database, folder: Path) -> bool:
    """Run the stage; return True if the step that releases was pending."""
    stage = StageRun(database, Stage.PUBLISHED_DATASET, MONTH, "run", RunOptions())
    summary = run_loop(run(stage, PublishedDatasetTools(FolderDestination(folder))))
    return RELEASE in [entry.item for entry in summary.worked]


def test_a_month_is_released_again_to_another_destination(month: Database, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert release_to(month, here)
    assert not release_to(month, here)
    assert release_to(month, there)
    tags = [FolderDestination(folder).tags() for folder in (here, there)]
    assert [list(found) for found in tags] == [["formulacode@2026-03"]] * 2
    with month.transaction() as connection:
        assert str(there) in {row.destination for row in RELEASES.read(connection, MONTH)}
    # back where it was released: nothing is written
    assert release_to(month, here)
    assert FolderDestination(here).tags() == tags[0]
