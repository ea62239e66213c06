from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.partitions import MONTHS
from assets.reproduction import reproduces
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reproduction import Difference, DifferenceKind, Reproduction
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import IMAGES, MERGED_PULL_REQUESTS, REPRODUCTIONS
from formulacode_dagster.operating.store.checks import verdicts
from formulacode_dagster.operating.store.database import Database
from resources.defaults import default_resources
from tests.records import make_image, make_merged

MONTH = "2026-02"


def stored(database: Database, engine: EngineName) -> BuiltImage:
    """An image in the database, whose place on the disk is gone."""
    image = make_image(month=MONTH, repository_id=7, number=1, engine=engine, location="/nowhere")
    facts = make_merged(month=MONTH, repository_id=7, repository="a/b", number=1)
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [facts])
        IMAGES.save(connection, [image])
        entry = LedgerEntry(stage=Stage.IMAGES, month=MONTH, item="a/b#1", state=ItemState.DONE)
        ledger.record(connection, [entry])
    return image


def shown(image: BuiltImage, *, digest: str) -> Reproduction:
    changed = Difference(kind=DifferenceKind.VERSION, name="numpy", detail="2.1.0 → 2.1.1")
    return Reproduction(
        month=MONTH,
        repository_id=7,
        number=1,
        item="a/b#1",
        tag=image.tag,
        digest=digest,
        against="the image",
        distributions=2,
        files=9,
        differences=(changed,),
        seconds=3.0,
    )


@pytest.fixture
def judge(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch, dagster_instance: dg.DagsterInstance
) -> Any:
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.setenv("FC_ENGINE", "process")
    monkeypatch.setenv("GITHUB_CLONE_URL", f"file://{tmp_path}/nobody")

    @dg.asset(partitions_def=MONTHS)
    def images() -> None: ...

    def evaluate() -> Any:
        resources = default_resources()
        needed = {name: resources[name] for name in ("postgres", "mirrors", "containers")}
        result = dg.materialize(
            [images, reproduces.definition(Stage.IMAGES)],
            partition_key=MONTH,
            resources=needed,
            instance=dagster_instance,
        )
        (evaluation,) = result.get_asset_check_evaluations()
        return evaluation

    return evaluate


def test_a_month_without_images_has_nothing_to_sample(judge: Any, database: Database) -> None:
    evaluation = judge()
    assert (evaluation.passed, evaluation.description) == (True, "no image to sample")
    stored(database, EngineName.DOCKER)
    assert judge().description == "no image to sample", "another engine than the one at work has built it"


def test_a_rebuild_is_not_repeated_and_a_difference_is_named(judge: Any, database: Database) -> None:
    image = stored(database, EngineName.PROCESS)
    with database.transaction() as connection:
        REPRODUCTIONS.save(connection, [shown(image, digest=image.digest)])
    evaluation = judge()
    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.WARN
    (record,) = evaluation.metadata["offending"].records
    assert record.data["offender"] == "a/b#1: version of numpy: 2.1.0 → 2.1.1"
    with database.transaction() as connection:
        (verdict,) = verdicts(connection, MONTH)
    assert (verdict.check, verdict.passed, verdict.blocking) == ("reproduces", False, False)


def test_an_image_that_cannot_be_rebuilt_fails_the_check_not_the_run(judge: Any, database: Database) -> None:
    image = stored(database, EngineName.PROCESS)
    with database.transaction() as connection:
        REPRODUCTIONS.save(connection, [shown(image, digest="sha256:an earlier image")])
    evaluation = judge()
    (record,) = evaluation.metadata["offending"].records
    assert not evaluation.passed
    assert record.data["offender"].startswith("a/b#1: formulacode/a__b:1 is gone, and its distributions were not")
