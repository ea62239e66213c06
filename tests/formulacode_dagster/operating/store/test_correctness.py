from __future__ import annotations

import json

from sqlalchemy import text

from formulacode_dagster.measuring.measurement.persistence import MeasuredPullRequest, save
from formulacode_dagster.operating.store.artifacts import CORRECTNESS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.measurements import save_correctness
from formulacode_dagster.operating.store.migrations import migrate, read_migrations
from tests.records import make_measurement
from tests.support.correctness import correctness_of, correctness_row, reaching_test

BROKEN, GOOD = correctness_row(reaching_test("...", "FFF")), correctness_row(reaching_test("...", "..."))
TASK = (GOOD.repository_id, GOOD.number)


def test_test_results_are_never_replaced_and_the_newest_is_read(database: Database) -> None:
    with database.transaction() as connection:
        assert correctness_of(connection, GOOD.month, TASK) == []
        save_correctness(connection, BROKEN, measurement=1)
        save_correctness(connection, GOOD, measurement=2)
        # a measurement that was kept is tested again without being taken again
        save_correctness(connection, BROKEN, measurement=2)
    with database.transaction() as connection:
        assert correctness_of(connection, GOOD.month, TASK) == [(1, BROKEN), (2, GOOD), (2, BROKEN)]
        assert CORRECTNESS.read(connection, GOOD.month) == [BROKEN]


def test_the_stage_adds_what_tests_said_by_the_number_of_the_measurement(database: Database) -> None:
    measured = make_measurement({"bench.a": 2.0}, repository_id=TASK[0], number=TASK[1])
    with database.transaction() as connection:
        save(connection, [MeasuredPullRequest(measured, BROKEN)])
        save(connection, [MeasuredPullRequest(measured)])
        save(connection, [MeasuredPullRequest(measured, GOOD)])
        assert correctness_of(connection, GOOD.month, TASK) == [(1, BROKEN), (3, GOOD)]


def test_old_test_results_stay_and_compiled_ones_are_no_longer_strong(
    empty_database_url: str,
) -> None:
    database = Database(empty_database_url)
    migrate(database.engine, tuple(migration for migration in read_migrations() if migration.name < "0032"))
    compiled = correctness_row(reaching_test("...", "..."), untraceable=("src/a.c",), weak_tests=False)
    other = GOOD.model_copy(update={"number": 13})
    key = {"repository_id": TASK[0], "number": TASK[1]}
    with database.transaction() as connection:
        save(
            connection,
            [MeasuredPullRequest(make_measurement({"bench.a": speedup}, **key)) for speedup in (1.0, 2.0, 1.0)],
        )
        for row in (compiled, other):
            statement = "INSERT INTO correctness_documents VALUES (:month, :repository_id, :number, :document)"
            document = row.model_dump(mode="json")
            columns = {name: document[name] for name in ("month", "repository_id", "number")}
            connection.execute(text(statement), {**columns, "document": json.dumps(document)})
    database.migrate()
    with database.transaction() as connection:
        assert correctness_of(connection, GOOD.month, TASK) == [(2, compiled)]
        assert correctness_of(connection, GOOD.month, (TASK[0], 13)) == [(0, other)]
        assert [row.weak_tests for row in CORRECTNESS.read(connection, GOOD.month)] == [True, False]
    database.close()
