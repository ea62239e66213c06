"""A backup is complete or absent, and a restored platform continues where it was."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Column, Connection, MetaData, Table, Text, func, select, text

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.models.links import Discussion
from formulacode_dagster.models.release import Release
from formulacode_dagster.operating.backups import backup as backups
from formulacode_dagster.operating.backups.backup import back_up, prune, restore
from formulacode_dagster.operating.backups.destinations import rename_destinations
from formulacode_dagster.operating.backups.manifest import MANIFEST, TableOwner
from formulacode_dagster.operating.backups.tables import tables_of
from formulacode_dagster.operating.files.atomic import PARTIAL, write_atomically
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import RELEASES, documents
from formulacode_dagster.operating.store.blobs import get_log, put_log
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.migrations import migrate, read_migrations
from formulacode_dagster.operating.store.spending import Spent, add_spending, spending_of
from formulacode_dagster.operating.store.tables import METADATA

MONTH = "2026-02"


@pytest.fixture
def filled(database: Database) -> Database:
    """A database with entries, a log, and costs, the rows of which are numbered."""
    entries = [
        LedgerEntry(stage=Stage.IMAGES, month=MONTH, item=f"Acme/tiny#{n}", state=ItemState.DONE, detail="käse\t\\N\n")
        for n in range(300)
    ]
    with database.transaction() as connection:
        ledger.record(connection, entries)
        put_log(
            connection,
            stage=Stage.IMAGES,
            month=MONTH,
            item="Acme/tiny#1",
            attempt=1,
            state=ItemState.DONE,
            run_id="run",
            text="a long log\n" * 100,
        )
        add_spending(connection, [Spent(MONTH, Stage.IMAGES, "run", Cost(seconds=2.0))])
    return database


@pytest.fixture
def dagster_home(tmp_path: Path) -> Path:
    """Dagster's folder, with a database that is being written to."""
    folder = tmp_path / "dagster" / "history"
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "runs.db") as connection:
        connection.execute("CREATE TABLE runs (id text)")
        connection.execute("INSERT INTO runs VALUES ('one')")
    return folder.parent


@pytest.fixture
def empty(empty_database_url: str) -> Iterator[Database]:
    database = Database(empty_database_url)
    yield database
    database.close()


def log_of(connection: Connection) -> str:
    return get_log(connection, stage=Stage.IMAGES, month=MONTH, item="Acme/tiny#1")


def rows_of(database: Database) -> dict[str, int]:
    with database.transaction() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in tables_of(connection)
        }


@pytest.mark.slow
@pytest.mark.parametrize("is_encrypted", [False, True])
def test_what_was_backed_up_is_there_again_on_an_empty_machine(
    filled: Database, empty: Database, dagster_home: Path, tmp_path: Path, is_encrypted: bool
) -> None:
    import pyrage

    key = pyrage.x25519.Identity.generate()
    recipient, identity = (str(key.to_public()), str(key)) if is_encrypted else ("", "")
    folder, manifest = back_up(filled, dagster_home, tmp_path / "backups", recipient=recipient)
    ledgers = next(table for table in manifest.tables if table.table == "ledger")
    assert (ledgers.rows, ledgers.origin, manifest.encrypted) == (300, TableOwner.PLATFORM, is_encrypted)
    assert ((folder / ledgers.path).suffix == ".age") is is_encrypted

    again = tmp_path / "again"
    assert restore(folder, empty, again, identity=identity) == manifest
    assert rows_of(empty) == rows_of(filled)
    with filled.transaction() as before, empty.transaction() as after:
        assert ledger.entries_of(after, MONTH) == ledger.entries_of(before, MONTH)
        assert log_of(after) == log_of(before)
        # a row numbered by the database continues after the last one
        add_spending(after, [Spent(MONTH, Stage.IMAGES, "run", Cost(seconds=1.0))])
        assert spending_of(after, MONTH)[Stage.IMAGES].seconds == 3.0
    with sqlite3.connect(again / "history" / "runs.db") as connection:
        assert connection.execute("SELECT id FROM runs").fetchall() == [("one",)]


def test_a_backup_that_is_cut_leaves_nothing_that_could_be_taken_for_one(
    filled: Database, dagster_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backups, "save_files", full)
    with pytest.raises(OSError, match="No space"):
        back_up(filled, dagster_home, tmp_path / "backups")
    assert list((tmp_path / "backups").iterdir()) == []


def damage_byte(folder: Path) -> None:
    path = next(folder.glob("platform/ledger*"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def lose_table(folder: Path) -> None:
    next(folder.glob("platform/ledger*")).unlink()


def lose_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def cut_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_bytes((folder / MANIFEST).read_bytes()[:200])


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (damage_byte, "ledger.copy.zst is another"),
        (lose_table, "ledger.copy.zst is not there"),
        (lose_manifest, "is not a backup"),
        (cut_manifest, "cannot be read"),
    ],
)
def test_a_damaged_backup_is_refused_before_anything_is_written(
    filled: Database,
    empty: Database,
    dagster_home: Path,
    tmp_path: Path,
    damage: Callable[[Path], None],
    named: str,
) -> None:
    folder, _ = back_up(filled, dagster_home, tmp_path / "backups")
    damage(folder)
    with pytest.raises(ConfigurationError, match=named):
        restore(folder, empty, tmp_path / "again")
    assert rows_of(empty) == {}
    assert not (tmp_path / "again").exists()


def test_nothing_is_written_over(filled: Database, dagster_home: Path, tmp_path: Path, empty: Database) -> None:
    folder, _ = back_up(filled, dagster_home, tmp_path / "backups")
    with pytest.raises(ConfigurationError, match=r"is not empty: .*ledger"):
        restore(folder, filled, tmp_path / "again")
    with pytest.raises(ConfigurationError, match=r"runs\.db is there already"):
        restore(folder, empty, dagster_home)


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_files_that_no_database_has_come_back_and_nothing_is_written_over(
    filled: Database, empty: Database, dagster_home: Path, tmp_path: Path, is_encrypted: bool
) -> None:
    import pyrage

    key = pyrage.x25519.Identity.generate()
    recipient, identity = (str(key.to_public()), str(key)) if is_encrypted else ("", "")
    contents = {"boards.toml": b"[numpy]\n", "dataset/README.md": b"card", "dataset/releases/v1/a b.parquet": b"PAR1"}

    def home(folder: Path) -> dict[str, Path]:
        return {name: folder / name for name in ("boards.toml", "dataset", "absent")}

    for path, content in {**contents, "dataset/.lock": b"", f"dataset/{PARTIAL}cut/x": b"half"}.items():
        write_atomically(tmp_path / "home" / path, content)
    saved = home(tmp_path / "home")
    folder, manifest = back_up(filled, dagster_home, tmp_path / "backups", home=saved, recipient=recipient)
    assert len(manifest.home) == len(contents)
    for other in (b"[numba]\n", b"[numpy]\n\n", b"[nump"):
        write_atomically(tmp_path / "home" / "boards.toml", other)
        with pytest.raises(ConfigurationError, match=r"boards\.toml is there already.*empty FC_HOME"):
            restore(folder, empty, tmp_path / "again", home=saved, identity=identity)
    with pytest.raises(ConfigurationError, match=r"boards\.toml.* belongs to nothing that this platform knows"):
        restore(folder, empty, tmp_path / "again", identity=identity)
    assert rows_of(empty) == {}
    # a home that survived
    kept = "dataset/README.md"
    write_atomically(tmp_path / "new" / kept, contents[kept])
    inode = (tmp_path / "new" / kept).stat().st_ino
    restore(folder, empty, tmp_path / "again", home=home(tmp_path / "new"), identity=identity)
    assert (tmp_path / "new" / kept).stat().st_ino == inode
    found = {
        path.relative_to(tmp_path / "new").as_posix(): path.read_bytes()
        for path in (tmp_path / "new").rglob("*")
        if path.is_file()
    }
    assert found == contents


def test_releases_to_the_homes_dataset_are_at_that_of_the_new_home(
    database: Database, empty: Database, dagster_home: Path, tmp_path: Path
) -> None:
    old, new = ({"dataset": tmp_path / home / "dataset"} for home in ("old", "new"))
    path = str(old["dataset"])
    rows = [release(tag="formulacode@2026-03", destination=path), release(tag="v", destination="hub:owner/name")]
    with database.transaction() as connection:
        RELEASES.save(connection, rows)
    folder, _ = back_up(database, dagster_home, tmp_path / "backups", home=old)
    restore(folder, empty, tmp_path / "again", home=new)
    with empty.transaction() as connection:
        found = {row.tag: row.destination for row in RELEASES.read(connection, MONTH)}
        keys = set(connection.execute(select(RELEASES.table.c.destination)).scalars())
    assert found == {"formulacode@2026-03": str(new["dataset"]), "v": "hub:owner/name"}
    assert keys == set(found.values())


def test_a_release_that_is_at_the_new_path_already_keeps_its_row(database: Database) -> None:
    rows = [release(tag="v", destination=path) for path in ("/old", "/new")]
    with database.transaction() as connection:
        RELEASES.save(connection, rows)
        rename_destinations(connection, {"dataset": "/old"}, {"dataset": "/new"})
        assert {row.destination for row in RELEASES.read(connection, MONTH)} == {"/old", "/new"}


def release(**fields: str) -> Release:
    return Release(
        month=MONTH,
        revision="r",
        tasks=0,
        task_ids=(),
        rows_sha256="r",
        read_back_sha256="r",
        schema_sha256="s",
        released_at=datetime(2026, 3, 25, tzinfo=UTC),
        **fields,
    )


def test_a_backup_of_a_later_platform_is_refused(
    filled: Database, empty: Database, dagster_home: Path, tmp_path: Path
) -> None:
    folder, manifest = back_up(filled, dagster_home, tmp_path / "backups")
    later = manifest.model_copy(update={"migrations": (*manifest.migrations, "9999_later.sql")})
    (folder / MANIFEST).write_text(later.model_dump_json())
    with pytest.raises(ConfigurationError, match="made by a later platform"):
        restore(folder, empty, tmp_path / "again")


@pytest.mark.slow
def test_an_older_backup_restores_into_an_empty_migrated_database(
    empty_database_url: str, database: Database, dagster_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = Database(empty_database_url)
    names = [migration.name for migration in read_migrations()]
    before = tuple(read_migrations()[: names.index("0032_correctness_ever.sql")])
    migrate(earlier.engine, before)
    tested = {"month": MONTH, "repository_id": 7, "number": 1, "document": '{"untraceable": ["f"]}'}
    with earlier.transaction() as connection:
        connection.execute(
            text("INSERT INTO correctness_documents VALUES (:month, :repository_id, :number, :document)"), tested
        )
    with monkeypatch.context() as patched:
        patched.setattr(backups, "read_migrations", lambda: before)
        folder, _ = back_up(earlier, dagster_home, tmp_path / "backups")
    earlier.close()
    restore(folder, database, tmp_path / "again")
    assert database.pending_migrations() == ()
    with database.transaction() as connection:
        weak = connection.execute(text("SELECT document->>'weak_tests' FROM correctness_documents")).scalar_one()
    assert weak == "true", "a later migration has changed the rows that came in"


@pytest.mark.slow
def test_documents_of_a_stage_without_a_migration_are_restored(
    database: Database, dagster_home: Path, tmp_path: Path, empty: Database
) -> None:
    example = documents("examples", Discussion)
    row = Discussion(month=MONTH, repository_id=7, number=1)
    try:
        example.table.create(database.engine)
        with database.transaction() as connection:
            example.save(connection, [row])
        folder, _ = back_up(database, dagster_home, tmp_path / "backups")
        restore(folder, empty, tmp_path / "again")
        with empty.transaction() as connection:
            assert example.read(connection, MONTH) == [row]
    finally:
        METADATA.remove(example.table)


@pytest.mark.slow
def test_an_encrypted_backup_opens_with_its_own_key_alone(
    filled: Database, empty: Database, dagster_home: Path, tmp_path: Path
) -> None:
    import pyrage

    recipient = str(pyrage.x25519.Identity.generate().to_public())
    folder, _ = back_up(filled, dagster_home, tmp_path / "backups", recipient=recipient)
    contents = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert b"Acme" not in contents.pop(MANIFEST)
    assert contents
    # four letters are found in what is random, too
    assert {content.partition(b"\n")[0] for content in contents.values()} == {b"age-encryption.org/v1"}
    for identity, named in (("", "is encrypted"), (str(pyrage.x25519.Identity.generate()), "for another key")):
        with pytest.raises(ConfigurationError, match=named):
            restore(folder, empty, tmp_path / "again", identity=identity)
        assert not sum(rows for table, rows in rows_of(empty).items() if table != "schema_migrations")
    with pytest.raises(ConfigurationError, match="not a public key of age"):
        back_up(filled, dagster_home, tmp_path / "backups", recipient="age1nonsense")


@pytest.mark.slow
def test_dagster_s_tables_of_a_postgres_come_back_too(filled: Database, empty: Database, tmp_path: Path) -> None:
    """Here Dagster's storage is the very database of the platform: its tables are saved, and loaded, once more."""
    folder, manifest = back_up(filled, filled.engine, tmp_path / "backups")
    of_dagster = [table for table in manifest.tables if table.origin is TableOwner.DAGSTER]
    assert {table.table for table in of_dagster} >= {"ledger", "schema_migrations"}
    with pytest.raises(ConfigurationError, match="Set FC_DAGSTER_DATABASE_URL"):
        restore(folder, empty, tmp_path / "again")
    loaded: list[str] = []
    restore(folder, empty, empty.engine, progress=loaded.append)
    assert rows_of(empty) == rows_of(filled)
    assert {f"{origin} ledger" for origin in TableOwner} <= set(loaded)


@pytest.mark.slow
def test_no_run_of_a_dagster_that_was_used_is_written_over(filled: Database, empty: Database, tmp_path: Path) -> None:
    folder, _ = back_up(filled, filled.engine, tmp_path / "backups")
    used = MetaData()
    for name in ("secondary_indexes", "runs"):
        Table(name, used, Column("name", Text))
    used.create_all(filled.engine)
    restored: list[str] = []
    with filled.transaction() as connection:
        connection.execute(used.tables["secondary_indexes"].insert().values(name="filled when it is opened"))
        connection.execute(used.tables["runs"].insert().values(name="somebody's"))
        connection.execute(text("TRUNCATE ledger, logs, blobs, spending CASCADE"))
    with pytest.raises(ConfigurationError, match=r"is not empty: runs have rows: .*set FC_DAGSTER_DATABASE_URL"):
        restore(folder, empty, filled.engine, progress=restored.append)
    assert (restored, rows_of(empty)) == ([], {})
    with filled.transaction() as connection:
        assert connection.execute(select(func.count()).select_from(used.tables["runs"])).scalar_one() == 1


def test_the_newest_stay(tmp_path: Path) -> None:
    for name in ("2026-01-01", "2026-01-02", "2026-01-03"):
        (tmp_path / name).mkdir()
        (tmp_path / name / MANIFEST).write_text("{}")
    for name in ("2026-01-04", "2026-01-05"):
        (tmp_path / f"{PARTIAL}{name}").mkdir()
    os.utime(tmp_path / f"{PARTIAL}2026-01-04", (0, 0))
    (tmp_path / "notes").mkdir()
    gone = prune(tmp_path, 2)
    assert {path.name for path in gone} == {"2026-01-01", f"{PARTIAL}2026-01-04"}
    assert {path.name for path in tmp_path.iterdir()} == {
        "2026-01-02",
        "2026-01-03",
        "notes",
        f"{PARTIAL}2026-01-05",
    }
