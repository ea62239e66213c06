from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.operating.store.artifacts import CHANGES, MERGED_PULL_REQUESTS, Artifact
from formulacode_dagster.operating.store.blobs import put_blob
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.series.views import SERIES_RELATIONS, SeriesRelation
from formulacode_dagster.operating.store.views import RELATIONS, VIEWS, Relation
from tests.records import MONTH, make_change, make_merged
from tests.support.strategies import rows_of

SINGLE = [relation for relation in RELATIONS.values() if len(relation.artifacts) == 1 and relation.name != "changes"]
FOUND = """
SELECT c.column_name, c.data_type, col_description(format('%I', c.table_name)::regclass, c.ordinal_position)
FROM information_schema.columns c WHERE c.table_name = :name AND c.table_schema = current_schema()
"""


def shown(connection: Connection, relation: Relation) -> list[dict[str, object]]:
    names = ", ".join(f'"{column.name}"' for column in relation.columns)
    rows = connection.execute(text(f"SELECT {names} FROM {relation.name}"))  # noqa: S608 - our own names
    return [dict(row) for row in rows.mappings()]


@pytest.mark.parametrize("relation", SINGLE, ids=lambda one: one.name)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_people_read_what_the_model_holds(data: st.DataObject, relation: Relation, database: Database) -> None:
    artifact: Artifact[Frozen] = relation.artifacts[0]
    with database.engine.connect() as connection:
        row = data.draw(rows_of(artifact.model, month=MONTH))
        artifact.save(connection, [row])
        (found,) = shown(connection, relation)
    assert artifact.model.model_validate(found) == row


def test_a_pull_request_is_shown_with_its_change(database: Database) -> None:
    facts, change = make_merged(number=1), make_change(number=1)
    with database.transaction() as connection:
        change = change.model_copy(update={"patch_sha256": put_blob(connection, "patch", b"diff\n")})
        MERGED_PULL_REQUESTS.save(connection, [facts, make_merged(number=2)])
        CHANGES.save(connection, [change])
        (row,) = shown(connection, RELATIONS["pull_requests"])
    for stored in (facts, change):
        assert type(stored).model_validate({name: row[name] for name in type(stored).model_fields}) == stored


DOCUMENTED = [*RELATIONS.values(), *SERIES_RELATIONS.values()]


@pytest.mark.parametrize("relation", DOCUMENTED, ids=lambda one: one.name)
def test_every_column_is_documented_in_the_database(relation: Relation | SeriesRelation, database: Database) -> None:
    with database.transaction() as connection:
        found = {name: (kind, said) for name, kind, said in connection.execute(text(FOUND), {"name": relation.name})}
        said = connection.execute(text("SELECT obj_description(CAST(:name AS regclass))"), {"name": relation.name})
        assert said.scalar_one() == relation.meaning != ""
    assert {column.name: (column.type, column.description) for column in relation.columns}.items() <= found.items()
    assert all(column.description for column in relation.columns)
    if relation.name in VIEWS.names:
        assert list(found) == [column.name for column in relation.columns]


def test_every_document_has_a_view() -> None:
    hidden = {relation.name for relation in RELATIONS.values() if "document" in relation.artifacts[0].table.columns}
    assert hidden | {"pull_requests", "benchmark_results"} == set(VIEWS.names)
