"""The asset over real HTTP and a real Postgres: GitHub is asked once, or not at all, and the metadata say which."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
import pytest

from assets.discussions import STORED, WALKED, discussions
from assets.problem_statements import problem_statements
from assets.stage_asset import StageAsset
from formulacode_dagster.models.identity import stand_in_number
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import CandidateSource, LinkedIssue
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import CHANGES, MERGED_PULL_REQUESTS, PROBLEM_STATEMENTS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from formulacode_dagster.sources.git.command import git
from resources.defaults import default_resources
from sandbox.github import app
from sandbox.server import serving
from tests.records import make_change, make_merged
from tests.support.gates import open_gates

MONTH, HOME, TOKEN = "2026-02", "acme/wheels", "one"
BEFORE, OPENED = "2026-02-01T00:00:00Z", "2026-02-08T00:00:00Z"
MERGED, AFTER = "2026-02-10T12:00:00Z", "2026-02-11T00:00:00Z"
PATCH = (
    b"diff --git a/wheels.py b/wheels.py\n--- a/wheels.py\n+++ b/wheels.py\n@@ -1 +1 @@\n"
    b"-    return [row for row in rows if row.key in keys]\n+    return lookup_rows(frozenset(keys), rows)\n"
)
FACTS = {
    HOME: {
        "issues": [
            {"number": 1, "title": "Merge is slow", "body": "As in other/loom#5, #404", "created_at": BEFORE},
        ],
        "pull_requests": [
            {"number": 7, "title": "Faster", "body": "Fixes #1", "created_at": OPENED, "merged_at": MERGED}
            | {"edits": [{"edited_at": AFTER, "body": "Fixes #1. It is 40 times faster."}]}
        ],
    },
    "other/loom": {
        "issues": [
            {
                "number": 5,
                "title": "Weaving is slow",
                "body": "Try\n\n```python\nreturn lookup_rows(frozenset(keys), rows)\n```\n",
                "created_at": BEFORE,
            }
        ]
    },
}
Run = Callable[..., tuple[dg.ExecuteInProcessResult, dict[str, Any]]]


@pytest.fixture
def seeded(database: Database) -> Database:
    """A month in which `acme/wheels#7` was found to be a performance pull request, all gates open."""
    issue = LinkedIssue(repository=HOME, number=1, title="Merge is slow", body="stored", created_at=BEFORE)
    facts = make_merged(
        month=MONTH,
        repository_id=1,
        repository=HOME,
        number=7,
        title="Faster",
        body="Fixes #1. It is 40 times faster.",
        author="ada",
        created_at=OPENED,
        merged_at=MERGED,
        linked_issues=(issue,),
    )
    change = make_change(PATCH, month=MONTH, repository_id=1, number=7)
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [facts])
        save_changes(connection, [(change, PATCH)])
        entry = LedgerEntry(stage=Stage.CLASSIFICATIONS, month=MONTH, item=facts.item, state=ItemState.DONE)
        ledger.record(connection, [entry])
    for asset in (discussions, problem_statements):
        open_gates(database, asset, MONTH)
    return database


@pytest.fixture
def run(
    seeded: Database,
    database_url: str,
    github_folder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dagster_instance: dg.DagsterInstance,
) -> Iterator[Run]:
    """Materialize; returns the result and what the sandbox was asked."""
    folder = github_folder(FACTS)
    begin = git(folder / f"{HOME}.git", "rev-list", "--max-parents=0", "HEAD").decode().strip()
    with seeded.transaction() as connection:
        change = make_change(PATCH, month=MONTH, repository_id=1, number=7, base_sha=begin)
        save_changes(connection, [(change, PATCH)])
    monkeypatch.setenv("GITHUB_CLONE_URL", folder.as_uri())
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)

    def materialize(
        token: str = TOKEN, offline: str = "", **config: Any
    ) -> tuple[dg.ExecuteInProcessResult, dict[str, Any]]:
        named = {"GH_TOKENS": token, "FC_OFFLINE_SOURCE": offline}
        with serving(app(folder)) as url, environment(GITHUB_API_URL=url, **named):
            known = default_resources()
            checks = [check.definition(discussions.stage) for check in discussions.checks]
            done = dg.materialize(
                [discussions.definition, *checks, problem_statements.definition],
                partition_key=MONTH,
                instance=dagster_instance,
                resources={name: known[name] for name in ("intake", "llm", "mirrors", "postgres")},
                run_config={"ops": {asset: {"config": config} for asset in ("discussions", "problem_statements")}},
                raise_on_error=False,
            )
            assert done.success
            return done, httpx.get(f"{url}/_sandbox/calls").json()

    return materialize


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def statement(database: Database) -> ProblemStatement:
    with database.transaction() as connection:
        (row,) = PROBLEM_STATEMENTS.read(connection, MONTH)
    return row


def metadata(done: dg.ExecuteInProcessResult, asset: StageAsset = discussions) -> dict[str, Any]:
    (event,) = done.asset_materializations_for_node(asset.stage)
    return {name: value.value for name, value in event.metadata.items()}


@pytest.mark.slow
def test_the_issues_behind_it_are_in_the_statement_and_the_solution_is_not(run: Run, seeded: Database) -> None:
    done, books = run()
    row = statement(seeded)
    assert row.issues == ("acme/wheels#1",)
    assert "Merge is slow" in row.final_md
    assert "40 times" not in row.final_md
    assert "Weaving is slow" not in row.final_md
    assert {leak.where for leak in row.left_out} == {"other/loom#5"}
    assert {leak.kind for leak in row.left_out} >= {"line", "identifier"}
    assert row.walk is not None
    assert [link.name for link in row.walk.unreadable] == ["acme/wheels#404"]
    told = metadata(done)
    assert (told["issues_from"], told["linked_issues"], told["unreadable_links"]) == (WALKED, 2, 1)
    assert (told["github_requests"], told["github_points"]) == (4, 4)
    assert (told["api_requests"], told["api_points"]) == (books["total"], books["points"]["graphql"]) == (4, 4)


@pytest.mark.slow
def test_a_second_run_asks_nothing_even_where_it_renders_again(run: Run, seeded: Database) -> None:
    run()
    first = statement(seeded)
    assert run()[1]["total"] == 0
    with seeded.transaction() as connection:
        (facts,) = MERGED_PULL_REQUESTS.read(connection, MONTH)
        MERGED_PULL_REQUESTS.save(connection, [facts.model_copy(update={"author": "somebody"})])
    done, books = run()
    assert (metadata(done, problem_statements)["worked_in_this_run"], books["total"]) == (1, 0)
    assert statement(seeded) == first


@pytest.mark.slow
def test_force_asks_again(run: Run) -> None:
    run()
    assert run(force=True)[1]["total"] == 4


@pytest.mark.parametrize("alone", [{"token": ""}, {"offline": "somewhere"}])
def test_alone_the_stored_closing_issues_serve_and_the_metadata_says_so(
    run: Run, seeded: Database, alone: dict[str, str]
) -> None:
    done, books = run(**alone)
    assert books["total"] == 0
    assert metadata(done)["issues_from"] == STORED
    row = statement(seeded)
    assert (row.issues, row.walk) == (("acme/wheels#1",), None)
    assert "stored" in row.final_md


@pytest.mark.slow
def test_what_was_rendered_without_a_token_is_walked_once_there_is_one(run: Run, seeded: Database) -> None:
    run(token="")
    assert run()[1]["total"] == 4
    assert statement(seeded).walk is not None
    assert run(token="")[1]["total"] == 0
    assert statement(seeded).walk is not None


@pytest.mark.slow
def test_a_commit_without_a_pull_request_has_no_thread(run: Run, seeded: Database) -> None:
    number = stand_in_number("abcdef0")
    with seeded.transaction() as connection:
        (facts,) = MERGED_PULL_REQUESTS.read(connection, MONTH)
        (change,) = CHANGES.read(connection, MONTH)
        pushed = {"number": number, "linked_issues": (), "source": CandidateSource.DASHBOARD}
        MERGED_PULL_REQUESTS.save(connection, [facts.model_copy(update=pushed)])
        save_changes(connection, [(change.model_copy(update={"number": number}), PATCH)])
        done = LedgerEntry(stage=Stage.CLASSIFICATIONS, month=MONTH, item=f"{HOME}#{number}", state=ItemState.DONE)
        ledger.record(connection, [done])
    run()
    with seeded.transaction() as connection:
        walks = {row.number: row.walk for row in PROBLEM_STATEMENTS.read(connection, MONTH)}
    assert walks.keys() == {7, number}
    assert walks[7] is not None
    assert walks[number] is None
    again, _ = run()
    assert [metadata(again, asset)["worked_in_this_run"] for asset in (discussions, problem_statements)] == [0, 0]
