"""The checks of `published_dataset`, for months that were released to two destinations."""

from __future__ import annotations

from assets.checks import JudgedMonth
from assets.published_dataset import reads_back_equal, schema_and_ids_stable
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store.artifacts import RELEASES
from formulacode_dagster.operating.store.database import Database
from resources.hub import HubResource
from tests.records import make_release

MONTH = "2026-02"


def test_a_release_elsewhere_is_not_judged_here(database: Database) -> None:
    here = make_release(destination="hub:acme/tasks")
    elsewhere = make_release(destination="hub:acme/other", read_back_sha256="1", task_ids=("a__b-1", "a__b-1"))
    month = JudgedMonth(database, Stage.PUBLISHED_DATASET, MONTH, "run")
    with database.transaction() as connection:
        RELEASES.save(connection, [here, elsewhere])
    for check in (reads_back_equal, schema_and_ids_stable):
        assert check.verdict(month, hub=HubResource(hf_dataset="acme/tasks")).passed, check.name
        assert not check.verdict(month, hub=HubResource(hf_dataset="acme/other")).passed, check.name
