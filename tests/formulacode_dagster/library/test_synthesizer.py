"""One repository that no rule mends: an agent does, its fix is a recipe of the commit and of the next one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import delete

from formulacode_dagster.building.agents.protocol import AgentOutcome
from formulacode_dagster.library import PR, DockerContext, SmokeVerifier, Synthesizer
from formulacode_dagster.library.predecessor import SynthesizeImagesRunner
from formulacode_dagster.models.attempt import Rung
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import ContextOrigin
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import ENVIRONMENTS, IMAGES
from formulacode_dagster.operating.store.attempts import contexts_of
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import spending_of
from formulacode_dagster.releasing.reporting.facts import month_facts
from tests.support.agents import COST, StubAgent, edited, ended
from tests.support.documents import blocks_of
from tests.support.planned import KEYED, MONTH, plan_month

pytestmark = [pytest.mark.network, pytest.mark.slow]

DOCUMENTED = {
    'owner="astropy", repo="astropy"': 'owner="Acme", repo="tiny"',
    "issue_number=16222": "issue_number=5",
    'SmokeVerifier("astropy")': 'SmokeVerifier("tinypure")',
}
"""Names in the example of the documentation, and their stand-ins here."""


@pytest.fixture
def month(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database with two pull requests of a repository that no rule mends, and the environment of each."""
    plan_month(database, tmp_path, monkeypatch, engine="process", files=KEYED)
    done = {"month": MONTH.key, "state": ItemState.DONE}
    with database.transaction() as connection:
        ledger.record(
            connection,
            [
                LedgerEntry(stage=stage, item=f"Acme/tiny#{number}", **done)
                for stage in (Stage.CLASSIFICATIONS, Stage.ENVIRONMENTS)
                for number in (5, 6)
            ],
        )
    return database


def test_an_agents_fix_is_a_recipe_for_the_next_commit(
    month: Database,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    helpless = Synthesizer(agent=StubAgent(ended(AgentOutcome.GAVE_UP)), max_attempts=1, database=month)
    assert helpless.run("Acme", "tiny", 5) is None
    assert [attempt.rung for attempt in helpless.trace] == [Rung.RULES, Rung.AGENT]
    with month.transaction() as connection:
        entry, other = ledger.entries_of(connection, MONTH.key, Stage.IMAGES)
        assert other.state is ItemState.SKIPPED
        assert (entry.state, entry.reason) == (ItemState.FAILED, FailureKind.AGENT_GAVE_UP)
        assert (entry.cost.tokens_in, entry.cost.dollars) == (COST.tokens_in, COST.dollars)
        assert IMAGES.read(connection, MONTH.key) == []

    agent = StubAgent(edited(environment={"TINY_KEY": "2"}), edited(environment={"TINY_KEY": "1"}))
    able = Synthesizer(agent=agent, database=month)
    context = able.run("Acme", "tiny", 5, verifier=SmokeVerifier("tinypure"))
    assert context is not None
    assert [(attempt.rung, attempt.kind) for attempt in able.trace] == [
        (Rung.RULES, "build"),
        (Rung.AGENT, "build"),
        (Rung.AGENT, ""),
    ]
    assert [past.rule for past in agent.tasks[0].attempts] == ["", "agent:stub", ""], "what was tried before is shown"
    assert "say which key" in agent.tasks[0].attempts[0].log
    assert "export TINY_KEY=1" in context.files["docker_build_pkg.sh"]
    assert context.stored is not None
    assert (context.stored.provenance, context.stored.made_by) == (ContextOrigin.AGENT, "agent:stub")

    again = Synthesizer(agent="none", database=month)
    assert again.run("Acme", "tiny", 5) == context
    assert again.trace == (), "what is built is not built again"
    following = Synthesizer(agent="none", database=month)
    nearest = following.run("Acme", "tiny", 6)
    assert [(attempt.rung, attempt.kind) for attempt in following.trace] == [(Rung.NEAREST, "")]
    assert nearest is not None
    prs = [PR(repository="Acme/tiny", issue_number=number) for number in (5, 6)]
    runner = SynthesizeImagesRunner(
        Synthesizer(agent="none", database=month), SmokeVerifier("tinypure"), n_concurrent=8
    )
    assert asyncio.run(runner.run(prs)) == [context, nearest]

    with month.transaction() as connection:
        ends = {entry.item: (entry.state, entry.cost.dollars) for entry in ledger.entries_of(connection, MONTH.key)}
        assert ends == {"Acme/tiny#5": (ItemState.DONE, 2 * COST.dollars), "Acme/tiny#6": (ItemState.DONE, 0)}
        images = IMAGES.read(connection, MONTH.key)
        assert [[fix.rule for fix in image.spec.fixes] for image in images] == [["agent:stub"], ["agent:stub"]]
        assert {kept.number for kept in contexts_of(connection, 7)} == {5, 6}
        assert spending_of(connection, MONTH.key)[Stage.IMAGES].dollars == 3 * COST.dollars
        ((item, use),) = month_facts(connection, MONTH, "").agents
    assert (item, use.agent, use.attempts, use.held) == ("Acme/tiny#5", "agent:stub", 3, True)
    assert use.cost.seconds == 3 * COST.seconds

    (example,) = (block for block in blocks_of("python") if "Synthesizer" in block)
    for documented, here in DOCUMENTED.items():
        assert documented in example
        example = example.replace(documented, here)
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    exec(compile(example, "example", "exec"), {"__name__": "__main__"})  # noqa: S102 - the code is our own
    assert "'Dockerfile', 'docker_build_base.sh'" in capsys.readouterr().out


def test_what_cannot_be_synthesized_is_said(month: Database) -> None:
    with pytest.raises(ConfigurationError, match="not a known pull request"):
        Synthesizer(database=month).run("Acme", "tiny", 9)
    with pytest.raises(ConfigurationError, match="is based on"):
        Synthesizer(database=month).run("Acme", "tiny", 5, sha="c0ffee")
    with pytest.raises(ConfigurationError, match="no agent 'copilot'"):
        Synthesizer(agent="copilot", database=month).run("Acme", "tiny", 5)


def test_a_failed_environment_is_replanned_and_built_by_an_import(
    month: Database,
) -> None:
    failed = LedgerEntry(stage=Stage.ENVIRONMENTS, month=MONTH.key, item="Acme/tiny#5", state=ItemState.FAILED)
    with month.transaction() as connection:
        connection.execute(delete(ENVIRONMENTS.table).where(ENVIRONMENTS.table.c.number == 5))
        ledger.record(connection, [failed])
    imported = DockerContext({"docker_build_pkg.sh": "export TINY_KEY=1\n"}, "mine")
    made = Synthesizer(agent="none", database=month).run("Acme", "tiny", 5, base_context=imported)
    assert made is not None
    assert made.stored is not None
    assert made.stored.provenance is ContextOrigin.IMPORTED
    with month.transaction() as connection:
        entries = ledger.entries_of(connection, MONTH.key, Stage.ENVIRONMENTS)
        (entry,) = (each for each in entries if each.item == "Acme/tiny#5")
    assert entry.state is ItemState.DONE
