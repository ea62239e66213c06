"""Compressed texts addressed by hash: patches and logs. Read one at a time, never in bulk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection, select

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import ItemState, Stage

from .bulk import insert_missing, upsert
from .tables import BLOBS, LOGS

LEVEL = 10


def put_blob(connection: Connection, kind: str, content: bytes) -> str:
    """Keep *content* (once); returns its SHA-256."""
    return put_blobs(connection, kind, [content])[0]


def put_blobs(connection: Connection, kind: str, contents: Sequence[bytes]) -> list[str]:
    """Keep each of *contents* (once); returns their SHA-256 in the same order."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=LEVEL)
    keys = [hashlib.sha256(content).hexdigest() for content in contents]
    rows = [
        {
            "sha256": sha256,
            "kind": kind,
            "bytes": len(content),
            "content": compressor.compress(content),
            "created_at": datetime.now(tz=UTC),
        }
        for sha256, content in dict(zip(keys, contents, strict=True)).items()
    ]
    insert_missing(connection, BLOBS, rows)
    return keys


def get_blob(connection: Connection, sha256: str) -> bytes:
    """Return the content with this *sha256*; raises FormulaCodeError if it is missing or corrupt."""
    import zstandard

    stored = connection.execute(select(BLOBS.c.content).where(BLOBS.c.sha256 == sha256)).scalar_one_or_none()
    if stored is None:
        raise FormulaCodeError(f"no blob {sha256}", remedy="Materialize pull_requests of that month again with force")
    try:
        content = zstandard.ZstdDecompressor().decompress(stored)
    except zstandard.ZstdError as error:
        raise _damaged(sha256) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise _damaged(sha256)
    return bytes(content)


def has_blob(connection: Connection, sha256: str) -> bool:
    """Return True if content with this *sha256* is stored."""
    return connection.execute(select(BLOBS.c.sha256).where(BLOBS.c.sha256 == sha256)).first() is not None


def _damaged(sha256: str) -> FormulaCodeError:
    return FormulaCodeError(f"blob {sha256} is damaged", remedy="Restore the database from a backup")


def put_log(
    connection: Connection,
    *,
    stage: Stage,
    month: str,
    item: str,
    attempt: int,
    state: ItemState,
    run_id: str,
    text: str,
) -> None:
    """Keep the whole log of one attempt."""
    sha256 = put_blob(connection, "log", text.encode(errors="replace"))
    row = {
        "stage": stage.value,
        "month": month,
        "item": item,
        "attempt": attempt,
        "state": state.value,
        "run_id": run_id,
        "sha256": sha256,
        "written_at": datetime.now(tz=UTC),
    }
    upsert(connection, LOGS, [row])


def get_log(connection: Connection, *, stage: Stage, month: str, item: str) -> str:
    """Return the log that was written last, empty if there is none: new inputs count attempts from 1 again."""
    sha256 = connection.execute(
        select(LOGS.c.sha256)
        .where(LOGS.c.month == month, LOGS.c.stage == stage.value, LOGS.c.item == item)
        .order_by(LOGS.c.written_at.desc(), LOGS.c.attempt.desc())
        .limit(1)
    ).scalar_one_or_none()
    return get_blob(connection, sha256).decode(errors="replace") if sha256 else ""
