"""`fc-data repositories`, as a person types it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from formulacode_dagster.cli.repositories import app
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store.artifacts import REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.listed import listed
from formulacode_dagster.operating.store.repositories import withdraw
from formulacode_dagster.sources.github.tracking import TrackingRules
from formulacode_dagster.sources.intake.repositories.tracked import decide, tracking_items

MONTH = "2026-02"
Call = Callable[..., str]


@pytest.fixture
def call(database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Output of a command."""
    monkeypatch.setenv("FC_DATABASE_URL", database_url)

    def run(*arguments: str) -> str:
        result: Result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def names(database: Database) -> dict[str, tuple[str, str]]:
    with database.transaction() as connection:
        return {name: (repository.verdict.value, repository.reason) for name, repository in listed(connection).items()}


def test_a_repository_is_allowed_denied_and_forgotten_in_any_case(call, database):
    assert "Owner/Repo is allowed" in call("allow", "Owner/Repo", "--reason", " good benchmarks ")
    assert names(database) == {"owner/repo": ("allow", "good benchmarks")}
    assert "owner/REPO is denied" in call("deny", "owner/REPO", "--reason", "asked to")
    assert names(database) == {"owner/repo": ("deny", "asked to")}
    assert "off the list" in call("forget", "OWNER/repo")
    assert names(database) == {}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["allow", "nonsense", "--reason", "x"], "nonsense"),
        (["deny", "owner/repo#3", "--reason", "x"], "is a pull request"),
        (["allow", "owner/repo", "--reason", "  "], "the reason is empty"),
        (["forget", "owner/repo"], "owner/repo is not on the list"),
        (["show", "--month", "2026-13"], "is not a month"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_do(call, database, arguments, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        call(*arguments)
    assert names(database) == {}


def test_the_list_is_shown_with_reasons_that_look_like_markup(call):
    assert "The list is empty" in call("show")
    call("allow", "b/two", "--reason", "see [bold]their[/] issue")
    call("deny", "a/one", "--reason", "asked to")
    shown = call("show")
    assert shown.index("a/one") < shown.index("b/two")
    assert "see [bold]their[/] issue" in shown


def test_a_month_tells_how_each_line_and_everything_else_ended(call, database):
    rows = [
        Repository(
            month=MONTH,
            id=number,
            node_id="R",
            full_name=name,
            aliases=aliases,
            state=RepositoryState.ACTIVE,
            stars=number,
            config_path="asv.conf.json",
        )
        for number, (name, aliases) in enumerate([("a/new", ("a/old",)), ("b/few", ()), ("c/fewer", ())], 1)
    ]
    call("allow", "A/Old", "--reason", "good")
    call("deny", "x/unseen", "--reason", "asked to")
    with database.transaction() as connection:
        REPOSITORIES.replace_month(connection, MONTH, rows)
        lines = listed(connection)
    items = tracking_items(rows, TrackingRules(minimum_stars=9), lines)
    stage = StageRun(database, Stage.REPOSITORIES, MONTH, "run")
    asyncio.run(
        run_items(
            stage,
            ItemKind.REPOSITORY,
            items,
            decide,
            lambda connection, rows: withdraw(connection, MONTH, rows) and None,
        )
    )
    told = {line.split()[0]: line for line in call("show", "--month", MONTH).splitlines() if line.strip()}
    assert told["A/Old"].split()[-1] == "done"
    assert told["x/unseen"].rstrip().endswith("not seen yet")
    assert "c/fewer: 3 < 9; b/few: 2 < 9" in told["few_stars"]


def test_a_month_nobody_materialized_says_so(call):
    assert "No data on 2026-01" in call("show", "--month", "2026-01")
