from __future__ import annotations

from sqlalchemy import text

from formulacode_dagster.models.recipe import ContextOrigin
from formulacode_dagster.operating.store.artifacts import IMAGES, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.attempts import contexts_named, contexts_of, save_context
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.migrations import read_migrations
from tests.formulacode_dagster.building.images.test_recipes import FFI, GSL, make_context
from tests.records import make_image, make_merged, make_spec


def test_contexts_are_kept_once_each_and_read_with_the_newest_first(database: Database) -> None:
    old, new = make_context("a", GSL, days=-2), make_context("b", FFI)
    with database.transaction() as connection:
        for context in (old, new, old):
            save_context(connection, context)
        assert contexts_of(connection, 7) == [new, old]
        assert contexts_of(connection, 8) == []
        assert contexts_named(connection, "A/B") == [new, old]
        assert contexts_named(connection, prefix=old.context_id[:8]) == [old]
        assert contexts_named(connection, "a/c") == []
        assert contexts_named(connection, prefix="%") == []


def test_images_from_before_contexts_leave_one_each(database: Database) -> None:
    (migration,) = (migration for migration in read_migrations() if migration.name == "0024_contexts.sql")
    _, insert, values = migration.sql.partition("INSERT INTO contexts")
    facts = make_merged(month="2026-02", repository_id=7, repository="a/b", number=5)
    with database.transaction() as connection:
        IMAGES.save(connection, [make_image(**_key(5), spec=make_spec(fixes=(GSL,))), make_image(**_key(6))])
        MERGED_PULL_REQUESTS.save(connection, [facts, facts.model_copy(update={"number": 6})])
        # as it ran over rows of its day: later migrations add columns that the models of today write
        connection.execute(text(insert + values))
        read = {context.number: context for context in contexts_of(connection, 7)}
    assert {number: (each.provenance, each.fixes) for number, each in read.items()} == {
        5: (ContextOrigin.RULES, (GSL,)),
        6: (ContextOrigin.DECLARED, ()),
    }
    assert read[5].merged_at == read[5].held_at == facts.merged_at


def _key(number: int) -> dict[str, object]:
    return {"month": "2026-02", "repository_id": 7, "number": number}
