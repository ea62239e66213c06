from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from formulacode_dagster.models.attempt import BuildAttempt, Rung
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.recipe import Fix
from formulacode_dagster.operating.store.artifacts import IMAGES, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.attempts import (
    agent_costs,
    asked_of,
    attempts_of,
    engines_of,
    ineffective_fixes,
    last_attempt,
    log_of_attempt,
    save_attempt,
    summary_of,
)
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.tables import BLOBS
from tests import records
from tests.records import make_image, make_merged, make_spec

MONTH = "2026-02"
MOMENT = datetime(2026, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
KEY = (7, 5)
GSL = Fix(rule="missing_header", evidence="gsl/gsl_math.h", apt_packages=("libgsl-dev",))


def make_attempt(attempt: int, **fields: object) -> BuildAttempt:
    given: dict[str, object] = {
        "month": MONTH,
        "repository_id": 7,
        "number": 5,
        "attempt": attempt,
        "run_id": "run",
        "started_at": MOMENT,
        "seconds": 1.5,
        "stage": "task",
        "rc": 2,
        "kind": "build",
        "detail": "it failed",
        "log": f"log of {attempt}\n" * 1000,
        **fields,
    }
    return records.make_attempt(**given)


def test_attempts_are_kept_with_their_whole_logs_compressed(database: Database) -> None:
    first, second = make_attempt(1), make_attempt(2, rc=None, rule="missing_header", spec=make_spec(fixes=(GSL,)))
    for attempt in (first, second):
        with database.transaction() as connection:
            save_attempt(connection, attempt)
    with database.transaction() as connection:
        assert last_attempt(connection, MONTH, KEY) == 2
        assert last_attempt(connection, MONTH, (7, 6)) == 0
        without_log = [attempt.model_copy(update={"log": ""}) for attempt in (first, second)]
        assert attempts_of(connection, MONTH, KEY) == without_log
        assert log_of_attempt(connection, MONTH, KEY, 2) == second.log
        assert log_of_attempt(connection, MONTH, KEY, 3) is None
        assert max(len(content) for content in connection.execute(select(BLOBS.c.content)).scalars()) < 200


def test_no_attempt_takes_the_place_of_another(database: Database) -> None:
    with database.transaction() as connection:
        save_attempt(connection, make_attempt(1))
    with pytest.raises(IntegrityError), database.transaction() as connection:
        save_attempt(connection, make_attempt(1))


def test_losses_are_counted_by_stage_and_by_the_rule_that_followed(database: Database) -> None:
    with database.transaction() as connection:
        save_attempt(connection, make_attempt(1))
        repaired = make_attempt(2, rule="missing_header", stage="done", kind="", rc=0, spec=make_spec(fixes=(GSL,)))
        save_attempt(connection, repaired)
        save_attempt(connection, make_attempt(1, number=6))
        save_attempt(connection, make_attempt(1, number=7))
        save_attempt(connection, make_attempt(1, number=8, run_id="another"))
    with database.transaction() as connection:
        summary = summary_of(connection, MONTH, "run")
    assert (summary.attempts, summary.seconds) == (4, 6.0)
    assert summary.losses == ((("task", "build", ""), 2), (("task", "build", "missing_header"), 1))
    assert summary.rules == (("missing_header", 1),)


def test_fixes_that_won_nothing_for_an_image_that_held_are_remembered(database: Database) -> None:
    held = {"stage": "done", "kind": "", "rc": 0}
    with database.transaction() as connection:
        save_attempt(connection, make_attempt(1, **held))
        save_attempt(connection, make_attempt(2, rule="missing_header", spec=make_spec(fixes=(GSL,))))
        save_attempt(connection, make_attempt(1, number=6, **held))
        save_attempt(connection, make_attempt(2, number=6, rule="missing_header", spec=make_spec(fixes=(GSL,)), **held))
        assert ineffective_fixes(connection, 7) == (), "no image is kept yet"
    _keep_image(database, 6, MOMENT, GSL)
    with database.transaction() as connection:
        assert ineffective_fixes(connection, 7) == ()
    _keep_image(database, 5, MOMENT)
    with database.transaction() as connection:
        assert ineffective_fixes(connection, 7) == (GSL,)
        assert ineffective_fixes(connection, 8) == ()


def _keep_image(database: Database, number: int, merged_at: datetime, *fixes: Fix) -> None:
    month = f"{merged_at:%Y-%m}"
    facts = make_merged(month=month, repository_id=7, number=number, merged_at=merged_at)
    image = make_image(month=month, repository_id=7, number=number, spec=make_spec(fixes=fixes))
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [facts])
        IMAGES.save(connection, [image])


def test_a_months_engines_are_those_that_tried_and_those_that_built(database: Database) -> None:
    with database.transaction() as connection:
        assert engines_of(connection, MONTH) == set()
        save_attempt(connection, make_attempt(1, engine="docker"))
        IMAGES.save(connection, [make_image(month=MONTH, number=6, engine="process")])
        assert engines_of(connection, MONTH) == {EngineName.DOCKER, EngineName.PROCESS}
        assert engines_of(connection, "2026-01") == set()


def test_agents_costs_are_summed_by_pull_request_with_their_names(
    database: Database,
) -> None:
    by_agent = {"rung": Rung.AGENT, "rule": "agent:codex", "tokens_in": 90, "tokens_out": 10, "dollars": 0.25}
    attempts = [
        make_attempt(1),
        make_attempt(2, agent_seconds=30.0, **by_agent),
        make_attempt(3, agent_seconds=12.0, run_id="another", **by_agent),
        make_attempt(1, number=6, kind="agent_limited", **by_agent),
        make_attempt(1, number=7, month="2026-03", **by_agent),
    ]
    with database.transaction() as connection:
        for attempt in attempts:
            save_attempt(connection, attempt)
        costs = agent_costs(connection, MONTH)
        assert costs == {
            KEY: Cost(tokens_in=180, tokens_out=20, dollars=0.5, seconds=42.0),
            (7, 6): Cost(tokens_in=90, tokens_out=10, dollars=0.25),
        }
        assert asked_of(connection, MONTH, Stage.IMAGES, "agent:codex") == {KEY}, "a limit is no answer"
        assert asked_of(connection, MONTH, Stage.IMAGES, "agent:claude") == set()
        assert asked_of(connection, MONTH, Stage.ENVIRONMENTS, "agent:codex") == set(), "it was asked for an image"
