"""`fc-data synthesize`, and the options of `fc-data run` about agents, as the documentation has them."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from assets.images import images
from formulacode_dagster.cli.app import app
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.store.database import Database
from tests.support.command_line import FcData
from tests.support.gates import open_gates

MONTH = ("run", "--month", "2026-02", "--stage", "images")


@pytest.mark.slow
def test_a_month_is_run_with_the_agent_that_the_options_name(
    database: Database, database_url: str, call_fc_data: FcData
) -> None:
    open_gates(database, images, "2026-02")
    options = ("--agent", "codex", "--agent-concurrency", "2", "--agent-tasks-per-repository", "3")
    ran = call_fc_data(*MONTH, *options, FC_DATABASE_URL=database_url, FC_ENGINE="process", PATH="/usr/bin:/bin")
    assert ran.returncode == 1
    assert "FC_AGENT=codex: codex is not on PATH" in ran.stdout.replace("\n", " ")


def test_the_command_of_the_documentation_tells_what_is_missing(database_url: str, call_fc_data: FcData) -> None:
    ran = call_fc_data("synthesize", "owner/repo#123", "--agent", "codex", FC_DATABASE_URL=database_url)
    assert ran.returncode == 1
    assert "owner/repo#123 is not a known pull request" in ran.stderr.replace("\n", " ")


def test_a_repository_is_no_pull_request() -> None:
    ran = CliRunner().invoke(app, ["synthesize", "owner/repo"])
    assert isinstance(ran.exception, ConfigurationError)
    with pytest.raises(ConfigurationError, match="is a repository"):
        raise ran.exception
