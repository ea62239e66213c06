from __future__ import annotations

import hashlib

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.store.blobs import get_blob, get_log, put_blob, put_log
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.tables import BLOBS, LOGS

MONTH = "2026-02"


def log(database: Database, text: str, *, attempt: int = 1, item: str = "a/b#1", state: ItemState = ItemState.FAILED):
    with database.transaction() as connection:
        put_log(
            connection,
            stage=Stage.IMAGES,
            month=MONTH,
            item=item,
            attempt=attempt,
            state=state,
            run_id="run",
            text=text,
        )


def read_log(database: Database, item: str = "a/b#1", stage: Stage = Stage.IMAGES) -> str:
    with database.transaction() as connection:
        return get_log(connection, stage=stage, month=MONTH, item=item)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=200))
def test_any_bytes_come_back_equal_under_their_checksum(database: Database, content: bytes) -> None:
    with database.engine.connect() as connection:
        sha256 = put_blob(connection, "patch", content)
        assert sha256 == hashlib.sha256(content).hexdigest()
        assert get_blob(connection, sha256) == content


def test_the_same_content_is_kept_once_and_compressed(database: Database) -> None:
    patch = b"+    return cached[key]\n" * 2000
    with database.transaction() as connection:
        assert put_blob(connection, "patch", patch) == put_blob(connection, "patch", patch)
        (row,) = connection.execute(select(BLOBS)).mappings()
    assert row["bytes"] == len(patch)
    assert len(row["content"]) < len(patch) / 50


def test_a_blob_that_is_not_there_says_how_to_get_it_back(database: Database) -> None:
    with database.transaction() as connection, pytest.raises(FormulaCodeError, match=r"no blob 00ff.*with force"):
        get_blob(connection, "00ff")


@pytest.mark.parametrize(
    "damage",
    [
        lambda stored: stored[:-3],
        lambda _: b"",
        lambda _: b"no frame at all",
        lambda stored: stored[:8] + bytes([stored[8] ^ 0xFF]) + stored[9:],
        lambda _: zstandard.ZstdCompressor().compress(b"another patch"),
    ],
    ids=["cut short", "emptied", "overwritten", "one byte flipped", "exchanged"],
)
def test_a_damaged_blob_is_an_error_and_never_a_wrong_patch(database: Database, damage) -> None:
    with database.transaction() as connection:
        sha256 = put_blob(connection, "patch", b"diff --git a/x b/x\n" + bytes(range(256)))
        stored = connection.execute(select(BLOBS.c.content)).scalar_one()
        connection.execute(BLOBS.update().values(content=damage(stored)))
        with pytest.raises(FormulaCodeError, match=f"blob {sha256} is damaged"):
            get_blob(connection, sha256)


def test_the_newest_attempt_is_the_log_one_reads_and_the_earlier_ones_stay(database: Database) -> None:
    log(database, "first try\nboom", attempt=1)
    log(database, "second try\nfine", attempt=2, state=ItemState.DONE)
    assert read_log(database) == "second try\nfine"
    with database.transaction() as connection:
        assert connection.execute(select(func.count()).select_from(LOGS)).scalar_one() == 2


def test_the_log_of_an_attempt_made_again_replaces_it(database: Database) -> None:
    log(database, "before")
    log(database, "after")
    assert read_log(database) == "after"


def test_attempts_counted_from_one_again_are_the_newest(database: Database) -> None:
    for attempt in (1, 2, 3):
        log(database, "of the earlier inputs", attempt=attempt)
    log(database, "of the new inputs", attempt=1)
    assert read_log(database) == "of the new inputs"


def test_where_there_is_no_log_there_is_nothing_to_read(database: Database) -> None:
    log(database, "of another item", item="a/b#2")
    assert read_log(database) == ""
    assert read_log(database, "a/b#2", Stage.MEASUREMENTS) == ""


def test_a_log_may_hold_what_no_text_column_takes(database: Database) -> None:
    log(database, "nul \x00, half a character \udc80, ünïcode\r\n")
    assert read_log(database) == "nul \x00, half a character ?, ünïcode\r\n"
