"""The columns that the UI shows are those that Postgres has, and that the dataset has."""

from __future__ import annotations

import dagster as dg
from sqlalchemy import text

from assets.all import DASHBOARD_ASSETS, STAGE_ASSETS
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.parquet import from_parquet, month_frame, to_parquet

FOUND = """
SELECT c.column_name, c.data_type, col_description(format('%I', c.table_name)::regclass, c.ordinal_position)
FROM information_schema.columns c WHERE c.table_name = :name AND c.table_schema = current_schema()
"""
ELSEWHERE = {Stage.PUBLISHED_DATASET, Stage.EXPORTS, Stage.MONTHLY_REPORT}
IN_POSTGRES = [
    *(asset.definition for asset in STAGE_ASSETS if asset.stage not in ELSEWHERE),
    *(asset.definition for asset in DASHBOARD_ASSETS),
]


def columns_shown(asset: dg.AssetsDefinition) -> dict[str, tuple[str, str | None]]:
    schema = asset.metadata_by_key[asset.key]["dagster/column_schema"]
    if isinstance(schema, dg.TableSchemaMetadataValue):
        schema = schema.schema
    return {column.name: (column.type, column.description) for column in schema.columns}


def test_the_columns_of_an_asset_are_those_of_what_people_query(database: Database) -> None:
    for asset in IN_POSTGRES:
        with database.transaction() as connection:
            found = connection.execute(text(FOUND), {"name": asset.key.to_user_string()}).all()
        assert columns_shown(asset) == {name: (kind, meaning) for name, kind, meaning in found}


def test_the_columns_of_the_dataset_are_those_of_its_files() -> None:
    (asset,) = (asset for asset in STAGE_ASSETS if asset.stage is Stage.PUBLISHED_DATASET)
    written = from_parquet(to_parquet(month_frame([])), "here")
    shown = columns_shown(asset.definition)
    assert {name: kind for name, (kind, _) in shown.items()} == {
        name: str(kind) for name, kind in written.schema.items()
    }
    assert all(meaning for _, meaning in shown.values())
