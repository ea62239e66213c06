from __future__ import annotations

import json

import pytest
from sqlalchemy import MetaData, text
from sqlalchemy.exc import ProgrammingError

from formulacode_dagster.models.classification import Category, Classification, Difficulty
from formulacode_dagster.models.errors import BusyError, ConfigurationError, OutsideSystemError
from formulacode_dagster.operating.store import migrations
from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS, IMAGES, MEASUREMENTS, RELEASES
from formulacode_dagster.operating.store.checks import verdicts
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.measurements import measurements_of
from formulacode_dagster.operating.store.migrations import Migration, Views, migrate, read_migrations, rewind
from formulacode_dagster.operating.store.series.tables import SITE_TABLES
from formulacode_dagster.operating.store.tables import METADATA
from formulacode_dagster.operating.store.views import VIEWS
from tests.records import KEY, make_image, make_measurement, make_release


def test_migrations_are_applied_once_and_in_order(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    assert database.migrate() == tuple(migration.name for migration in read_migrations())
    assert database.migrate() == ()
    database.close()


def test_what_is_missing_is_told_and_nothing_is_written(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    names = tuple(migration.name for migration in read_migrations())
    assert database.pending_migrations() == database.pending_migrations() == names
    migrate(database.engine, read_migrations()[:-1])
    assert database.pending_migrations() == names[-1:]
    database.migrate()
    assert database.pending_migrations() == ()
    database.close()


def test_a_migration_gives_up_where_a_run_holds_the_table(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_SECONDS", 0.05)
    database = Database(empty_database_url)
    create = Migration("0001_create.sql", "CREATE TABLE held (id integer)")
    change = Migration("0002_change.sql", "ALTER TABLE held ADD COLUMN name text")
    migrate(database.engine, (create,))
    with database.transaction() as connection:
        connection.execute(text("LOCK TABLE held IN ACCESS SHARE MODE"))
        with pytest.raises(BusyError, match=r"0002_change\.sql waits for a table that a run is using"):
            migrate(database.engine, (create, change))
    assert migrate(database.engine, (create, change)) == ("0002_change.sql",)
    database.close()


def test_a_migration_that_gives_up_takes_no_view_away(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "LOCK_SECONDS", 0.05)
    database = Database(empty_database_url)
    first = Migration("0001_a.sql", "CREATE TABLE a (x integer); CREATE TABLE held (id integer)")
    second = Migration("0002_b.sql", "CREATE TABLE b (x integer)")
    third = Migration("0003_c.sql", "ALTER TABLE held ADD COLUMN name text")
    migrate(database.engine, (first,), views("one"))
    with database.transaction() as connection:
        connection.execute(text("LOCK TABLE held IN ACCESS SHARE MODE"))
        with pytest.raises(BusyError, match="Nothing was changed"):
            migrate(database.engine, (first, second, third), views("two"))
        assert connection.execute(text("SELECT count(*) FROM shown")).scalar_one() == 0
        assert connection.execute(text("SELECT to_regclass('b')")).scalar_one() is None
    assert migrate(database.engine, (first, second, third), views("two")) == ("0002_b.sql", "0003_c.sql")
    database.close()


def test_migrations_are_numbered_without_a_gap_and_each_once() -> None:
    numbers = [int(migration.name.partition("_")[0]) for migration in read_migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_tables_of_the_code_are_those_of_the_migrations(database: Database) -> None:
    found = MetaData()
    found.reflect(database.engine)
    assert {table.name for table in SITE_TABLES.values()} <= set(METADATA.tables)
    for table in METADATA.sorted_tables:
        there = found.tables[table.name]
        dialect = database.engine.dialect
        assert {c.name: c.type.compile(dialect) for c in there.columns} == {
            c.name: c.type.compile(dialect) for c in table.columns
        }, table.name
        assert {c.name for c in there.primary_key} == {c.name for c in table.primary_key} != set()


def test_a_failed_migration_leaves_nothing_and_the_next_run_applies_all(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    good = Migration("0001_a.sql", "CREATE TABLE a (x integer);")
    half = Migration("0002_b.sql", "CREATE TABLE b (x integer); CREATE TABLE a (x integer);")
    with pytest.raises(ProgrammingError):
        migrate(database.engine, (good, half))
    mended = Migration("0002_b.sql", "CREATE TABLE b (x integer);")
    assert migrate(database.engine, (good, mended)) == ("0001_a.sql", "0002_b.sql")
    database.close()


def test_a_changed_migration_is_refused(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    migrate(database.engine, (Migration("0001_a.sql", "CREATE TABLE a (x integer);"),))
    with pytest.raises(ConfigurationError, match="changed after it was applied"):
        migrate(database.engine, (Migration("0001_a.sql", "CREATE TABLE a (x bigint);"),))
    database.close()


def test_a_database_ahead_of_the_checkout_is_refused(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(text("INSERT INTO schema_migrations VALUES ('9999_future.sql', 'x')"))
    with pytest.raises(ConfigurationError, match="ahead of this checkout"):
        database.migrate()


def test_an_empty_newer_database_is_rewound_and_foreign_tables_stay(database: Database) -> None:
    wanted = read_migrations()[:3]
    with database.transaction() as connection:
        connection.execute(text("CREATE TABLE theirs (x integer)"))
    assert not rewind(database.engine, read_migrations(), VIEWS)
    assert rewind(database.engine, wanted, VIEWS)
    assert not rewind(database.engine, wanted, VIEWS)
    found = MetaData()
    with database.transaction() as connection:
        found.reflect(connection, views=True)
    assert list(found.tables) == ["theirs"]
    migrate(database.engine, wanted)
    assert database.migrate()


def test_a_dead_server_is_named_without_its_password() -> None:
    database = Database("postgresql://somebody:secret-word@127.0.0.1:1/nowhere")
    with pytest.raises(OutsideSystemError) as caught:
        database.migrate()
    assert "127.0.0.1:1/nowhere" in str(caught.value)
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize("url", ["not a url", "sqlite:///x.db", "mysql://a/b"])
def test_a_url_that_is_not_postgres_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match="FC_DATABASE_URL"):
        Database(url)


def test_what_was_judged_before_checks_had_a_tally_is_kept(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    migrate(database.engine, tuple(migration for migration in read_migrations() if migration.name < "0006"))
    with database.transaction() as connection:
        connection.execute(
            text(
                "INSERT INTO gates (stage, month, check_name, passed, blocking, summary, offenders)"
                """ VALUES ('images', '2026-02', 'imports', false, true, '1 of 4', '["a/b#5"]')"""
            )
        )
    database.migrate()
    with database.transaction() as connection:
        (kept,) = verdicts(connection, "2026-02")
    assert (kept.check, kept.passed, kept.offenders, kept.tally) == ("imports", False, ("a/b#5",), {})
    database.close()


def test_rows_that_were_kept_as_documents_are_kept(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    migrate(database.engine, tuple(migration for migration in read_migrations() if migration.name < "0007"))
    image = make_image(benchmarks=("bench.time_x",))
    with database.transaction() as connection:
        connection.execute(
            text("INSERT INTO images VALUES (:month, :repository_id, :number, :document)"),
            {**KEY, "document": image.model_dump_json()},
        )
    database.migrate()
    with database.transaction() as connection:
        assert IMAGES.read_all(connection) == [image]
        assert connection.execute(text("SELECT benchmarks FROM images")).scalar_one() == ["bench.time_x"]
    database.close()


def views(meaning: str) -> Views:
    return Views(("shown",), f"CREATE VIEW shown AS SELECT x FROM a; COMMENT ON VIEW shown IS '{meaning}';")  # noqa: S608 - a test's own


def test_views_are_remade_when_their_text_or_a_table_changed_and_only_then(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    first = Migration("0001_a.sql", "CREATE TABLE a (x integer);")
    second = Migration("0002_b.sql", "ALTER TABLE a ALTER x TYPE bigint;")

    def made() -> tuple[str, int]:
        with database.transaction() as connection:
            found = connection.execute(text("SELECT obj_description(oid), oid FROM pg_class WHERE relname = 'shown'"))
            said, number = found.one()
        return said, number

    migrate(database.engine, (first,), views("one"))
    one = made()
    migrate(database.engine, (first,), views("one"))
    assert made() == one == ("one", one[1])
    migrate(database.engine, (first,), views("two"))
    two = made()
    assert two[0] == "two"
    # Postgres changes no column that a view shows
    assert migrate(database.engine, (first, second), views("two")) == ("0002_b.sql",)
    assert made()[1] != two[1]
    database.close()


def test_a_view_that_something_of_the_users_lies_on_is_not_taken_away(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    first = Migration("0001_a.sql", "CREATE TABLE a (x integer);")
    migrate(database.engine, (first,), views("one"))
    with database.transaction() as connection:
        connection.execute(text("CREATE VIEW mine AS SELECT x FROM shown"))
    with pytest.raises(ConfigurationError, match="view mine depends on view shown"):
        migrate(database.engine, (first,), views("two"))
    with database.transaction() as connection:
        connection.execute(text("DROP VIEW mine"))
    migrate(database.engine, (first,), views("two"))
    database.close()


def test_old_measurements_with_several_processes_per_build_are_readable(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    migrate(database.engine, tuple(migration for migration in read_migrations() if migration.name < "0017"))
    row = make_measurement({"bench.time_x": 2.0})
    document = row.model_dump(mode="json")
    for look in document["rule"]["looks"]:
        look["processes"] = 3
    with database.transaction() as connection:
        statement = "INSERT INTO measurements_ever VALUES (:month, :repository_id, :number, 1, :document)"
        connection.execute(text(statement), {**KEY, "document": json.dumps(document)})
        statement = "INSERT INTO measurement_documents VALUES (:month, :repository_id, :number, :document)"
        connection.execute(text(statement), {**KEY, "document": json.dumps(document)})
    database.migrate()
    with database.transaction() as connection:
        assert measurements_of(connection, row.month, (row.repository_id, row.number)) == [row]
        assert MEASUREMENTS.read_all(connection) == []
    database.close()


def test_releases_recorded_by_tag_only_are_kept_with_their_destination(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    migrate(database.engine, tuple(migration for migration in read_migrations() if migration.name < "0038"))
    row = make_release(destination="hub:a/b")
    with database.transaction() as connection:
        statement = text("INSERT INTO release_documents (month, tag, document) VALUES (:month, :tag, :document)")
        connection.execute(statement, {"month": row.month, "tag": row.tag, "document": row.model_dump_json()})
    database.migrate()
    copy = row.model_copy(update={"destination": "hub:c/d"})
    with database.transaction() as connection:
        RELEASES.save(connection, [copy])
        assert RELEASES.read(connection, row.month) == [row, copy]
    database.close()


def test_verdicts_stored_in_columns_are_kept_as_documents(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    migrate(database.engine, tuple(migration for migration in read_migrations() if migration.name < "0036"))
    verdict = {"is_performance": True, "category": Category.CACHE_AND_REUSE, "difficulty": Difficulty.EASY}
    asked = {"confidence": 0.5, "reason": "it caches", "model": "m", "prompt_version": "1", "patch_truncated": False}
    row = Classification(**KEY, **verdict, **asked)
    plain = row.model_dump(mode="json")
    columns = {name: json.dumps(value) if isinstance(value, list) else value for name, value in plain.items()}
    with database.transaction() as connection:
        names = ", ".join(columns)
        statement = f"INSERT INTO classifications ({names}) VALUES ({', '.join(f':{name}' for name in columns)})"  # noqa: S608 - names of our own model
        connection.execute(text(statement), columns)
    database.migrate()
    with database.transaction() as connection:
        assert CLASSIFICATIONS.read(connection, row.month) == [row]
        assert connection.execute(text("SELECT model FROM classifications")).scalar_one() == row.model
    database.close()
