from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, text
from sqlalchemy.exc import IntegrityError

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.pull_request import ChangedFile, IntakeCount, LinkedIssue, MergedPullRequest
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.operating.store.artifacts import (
    CHANGES,
    INTAKE_COUNTS,
    MERGED_PULL_REQUESTS,
    SEARCH_GAPS,
    Artifact,
)
from formulacode_dagster.operating.store.blobs import put_blob
from formulacode_dagster.operating.store.database import Database
from tests.records import make_change, make_merged
from tests.support.strategies import rows_of

MONTH = "2026-02"
ALL = {name: value for name, value in vars(artifacts).items() if isinstance(value, Artifact)}
MOMENT = datetime(2026, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
PATCH = b"diff --git a/x b/x\n"


def merged(number: int, **fields: object) -> MergedPullRequest:
    given: dict[str, object] = {
        "month": MONTH,
        "repository_id": 7,
        "repository": "a/b",
        "number": number,
        "title": f"Speed up {number}",
        "created_at": MOMENT,
        "merged_at": MOMENT,
    }
    return make_merged(**given | fields)


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Statements sent to the server meanwhile; a pipelined batch counts once."""
    sent: list[str] = []

    def note(_connection, _cursor, statement, _parameters, _context, executemany) -> None:
        sent.append(f"{'batch: ' if executemany else ''}{statement}")

    event.listen(database.engine, "before_cursor_execute", note)
    yield sent
    event.remove(database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_row_comes_back_equal(data: st.DataObject, name: str, database: Database) -> None:
    artifact = ALL[name]
    with database.engine.connect() as connection:
        fixed = {"month": MONTH}
        if artifact is CHANGES:
            fixed["patch_sha256"] = put_blob(connection, "patch", PATCH)
        if artifact is SEARCH_GAPS:
            fixed |= {"counted": 1001, "found": 1000, "ran_out": False}
        row = data.draw(rows_of(artifact.model, **fixed))
        artifact.save(connection, [row])
        assert artifact.read(connection, MONTH) == [row]
        assert artifact.read_all(connection) == [row]


def test_every_artifact_is_covered_and_holds_a_model_of_its_own() -> None:
    assert len({artifact.model for artifact in ALL.values()}) == len(ALL) == 24


@pytest.mark.parametrize(
    "hostile",
    ["nul \x00 nul", "half an emoji \ud83d", "\udcff.py", "\x00", "\ufeffbom", "a\r\nb\u2028c", "😀", "' OR 1"],
)
def test_no_text_kills_its_batch(database: Database, hostile: str) -> None:
    issue = LinkedIssue(repository="a/b", number=1, title=hostile, body=hostile, created_at=MOMENT)
    bad = merged(1, title=hostile, body=hostile, author=hostile, labels=(hostile,), linked_issues=(issue,))
    expected = "".join(
        "\ufffd" if character == "\x00" or "\ud800" <= character <= "\udfff" else character for character in hostile
    )
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [merged(0), bad, merged(2)])
        file = ChangedFile(path=hostile, status="R", old_path=hostile)
        sha256 = put_blob(connection, "patch", PATCH)
        CHANGES.save(connection, [make_change(PATCH, month=MONTH, patch_sha256=sha256, files=(file,))])
    with database.transaction() as connection:
        before, kept, after = MERGED_PULL_REQUESTS.read(connection, MONTH)
        (file,) = CHANGES.read(connection, MONTH)[0].files
    assert (before, after) == (merged(0), merged(2))
    assert {kept.title, kept.body, kept.author, *kept.labels, kept.linked_issues[0].title} == {expected}
    assert (file.path, file.old_path) == (expected, expected)


def test_a_month_that_cannot_be_replaced_keeps_its_rows(database: Database) -> None:
    with database.transaction() as connection:
        old = make_change(PATCH, month=MONTH, patch_sha256=put_blob(connection, "patch", PATCH))
        CHANGES.save(connection, [old])
    good = old.model_copy(update={"number": 2})
    bad = old.model_copy(update={"number": 3, "patch_sha256": "nowhere"})
    with pytest.raises(IntegrityError), database.transaction() as connection:
        CHANGES.replace_month(connection, MONTH, [good, bad])
    with database.transaction() as connection:
        assert CHANGES.read(connection, MONTH) == [old]


def test_a_server_that_dies_between_delete_and_insert_has_lost_nothing(database: Database) -> None:
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [merged(1)])

    def replace_while_the_server_dies() -> None:
        with database.transaction() as connection:
            MERGED_PULL_REQUESTS.replace_month(connection, MONTH, [])
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
            MERGED_PULL_REQUESTS.save(connection, [merged(2)])

    with pytest.raises(OutsideSystemError):
        replace_while_the_server_dies()
    with database.transaction() as connection:
        assert MERGED_PULL_REQUESTS.read(connection, MONTH) == [merged(1)]


def test_replacing_a_month_leaves_the_others_alone(database: Database) -> None:
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [merged(1), merged(2), merged(1, month="2026-01")])
        MERGED_PULL_REQUESTS.replace_month(connection, MONTH, [merged(3)])
        assert MERGED_PULL_REQUESTS.read(connection, MONTH) == [merged(3)]
        assert MERGED_PULL_REQUESTS.read(connection, "2026-01") == [merged(1, month="2026-01")]


def test_saving_again_replaces_by_key_even_within_one_batch(database: Database) -> None:
    count = IntakeCount(month=MONTH, repository_id=7, repository="a/b", reported=5, stored=3)
    newer = count.model_copy(update={"stored": 5})
    with database.transaction() as connection:
        INTAKE_COUNTS.save(connection, [count, newer])
        assert INTAKE_COUNTS.read(connection, MONTH) == [newer]
        INTAKE_COUNTS.save(connection, [])
        INTAKE_COUNTS.save(connection, [count])
        assert INTAKE_COUNTS.read(connection, MONTH) == [count]


@pytest.mark.slow
def test_twenty_thousand_rows_are_one_merge_and_readable_by_key(database: Database) -> None:
    rows = [merged(number) for number in range(1, 20_001)]
    with statements(database) as sent, database.transaction() as connection:
        MERGED_PULL_REQUESTS.replace_month(connection, MONTH, rows)
    words = [" ".join(request.split()[:2]) for request in sent if "pg_catalog" not in request]
    assert words == ["DELETE FROM", "CREATE TEMPORARY", "INSERT INTO", "DROP TABLE"]
    # 40,000 keys are 80,000 numbers, more than Postgres takes as parameters
    keys = [(7, number) for number in range(1, 40_001)]
    with statements(database) as sent, database.transaction() as connection:
        found = MERGED_PULL_REQUESTS.read_keys(connection, MONTH, keys)
    assert len(sent) == 1
    assert len(found) == 20_000
    assert list(found) == keys[:20_000]
    assert found[7, 20_000] == rows[-1]


def test_rows_are_read_by_key_within_their_month(database: Database) -> None:
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(
            connection, [merged(1), merged(2), merged(2, repository_id=8), merged(3, month="2026-01")]
        )
        assert MERGED_PULL_REQUESTS.read_keys(connection, MONTH, []) == {}
        assert MERGED_PULL_REQUESTS.read_keys(connection, MONTH, [(7, 2), (8, 1), (7, 3)]) == {(7, 2): merged(2)}
