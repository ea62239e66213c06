"""The real programs, in the container, against a scripted model: nothing of them is stood in for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from formulacode_dagster.agents.claude import Claude
from formulacode_dagster.agents.cli import Cli
from formulacode_dagster.agents.codex import Codex
from formulacode_dagster.agents.confined import ConfinedAgent
from formulacode_dagster.agents.container import Confinement
from formulacode_dagster.agents.edit import SpecEdit
from formulacode_dagster.agents.forwarder import Endpoint
from formulacode_dagster.agents.gemini import Gemini
from formulacode_dagster.agents.protocol import AgentBudget, AgentOutcome, EditGate, RelayedBuild
from formulacode_dagster.engines.docker.daemon import DockerDaemon
from sandbox.scripted import TOKENS_IN, TOKENS_OUT, Refusal, Script, app
from sandbox.server import serving
from tests.support.confined_agents import IMAGE, LOG, edit_with, make_task

pytestmark = [pytest.mark.docker, pytest.mark.slow]

INSTALLED = Path(".ci/agents/node_modules/.bin").absolute()
KEY = "sk-the-real-key-of-nobody"
CLIS = (Claude(), Codex(), Gemini())
MODELS = {"claude": "claude-sonnet-4-5", "codex": "gpt-5.5", "gemini": "gemini-2.5-pro"}
BUDGET = AgentBudget(seconds=120, builds=2, turns=10)

Scripted = Callable[[Cli, Script], ConfinedAgent]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, daemon: DockerDaemon) -> Iterator[Scripted]:
    """`scripted(cli, script)`: the program, with a model that follows the script."""
    if not INSTALLED.is_dir():
        pytest.skip("no coding agents: .ci/install-agents")
    monkeypatch.setenv("PATH", f"{INSTALLED}{os.pathsep}{os.environ['PATH']}")
    with _servers() as serve:

        def make(cli: Cli, script: Script) -> ConfinedAgent:
            program = cli.find()
            assert program is not None
            assert program.version
            assert cli.wire is not None
            endpoint = Endpoint(cli.wire, serve(script), KEY, 2.0, 10.0)
            return ConfinedAgent(cli, program, daemon, Confinement(IMAGE), endpoint, MODELS[cli.name.value])

        yield make


@contextmanager
def _servers() -> Iterator[Callable[[Script], str]]:
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(serving(app(script)))


def _build(edit: SpecEdit) -> RelayedBuild:
    ok = edit.system_packages == ("libyaml-dev",)
    return RelayedBuild(ok=ok, stage="done" if ok else "base", log="" if ok else "E: Unable to locate package yaml-dev")


@pytest.mark.parametrize("cli", CLIS, ids=[cli.name.value for cli in CLIS])
class TestAProgram:
    def test_mends_in_one_try(self, scripted: Scripted, cli: Cli) -> None:
        script = Script(["cat /task/attempts/001.log", edit_with('system_packages = ["libyaml-dev"]')])
        run = scripted(cli, script).run(make_task(), budget=BUDGET)
        assert run.outcome is AgentOutcome.EDITED, (run.detail, run.transcript)
        assert run.edit == SpecEdit(system_packages=("libyaml-dev",))
        # what the tool printed reached the model, and the key did; the agent itself held another one
        assert LOG.strip() in str(script.requests[-1])
        assert set(script.keys) == {KEY}
        assert KEY not in run.transcript
        answers = run.cost.model_calls
        assert (run.cost.tokens_in, run.cost.tokens_out) == (answers * TOKENS_IN, answers * TOKENS_OUT)
        assert run.cost.dollars == pytest.approx((answers * TOKENS_IN * 2 + answers * TOKENS_OUT * 10) / 1e6)

    def test_reads_the_log_of_its_build_and_mends_in_the_second(self, scripted: Scripted, cli: Cli) -> None:
        build = "/run/formulacode/bridge.py"
        wrong, right = (edit_with(f'system_packages = ["{name}"]') for name in ("yaml-dev", "libyaml-dev"))
        script = Script([f"{wrong}\n{build}", f"{right}\n{build}"])
        run = scripted(cli, script).run(make_task(), budget=BUDGET, build=_build)
        assert run.outcome is AgentOutcome.EDITED, (run.detail, run.transcript)
        assert (run.edit, run.builds) == (SpecEdit(system_packages=("libyaml-dev",)), 2)
        assert "Unable to locate package yaml-dev" in str(script.requests[-1])

    def test_gives_up(self, scripted: Scripted, cli: Cli) -> None:
        run = scripted(cli, Script(last="I see no way")).run(make_task(), budget=BUDGET)
        assert (run.outcome, run.edit) == (AgentOutcome.GAVE_UP, None)
        assert "I see no way" in run.transcript

    def test_is_ended_at_once_where_its_key_is_refused(self, scripted: Scripted, cli: Cli) -> None:
        script = Script(always=Refusal(401, {"error": {"type": "authentication_error", "message": "invalid key"}}))
        run = scripted(cli, script).run(make_task(), budget=BUDGET)
        assert run.outcome is AgentOutcome.BAD_KEY, (run.detail, run.transcript)
        assert len(script.requests) == 1


def test_a_key_that_an_agent_reads_is_not_the_real_one_and_goes_nowhere(scripted: Scripted) -> None:
    script = Script(['echo "reason = \\"$FC_AGENT_KEY\\"" >/ws/edit.toml; cat /ws/edit.toml /proc/*/environ'])
    run = scripted(Codex(), script).run(make_task(), budget=BUDGET)
    assert (run.outcome, run.gate) == (AgentOutcome.REFUSED, EditGate.CREDENTIAL), (run.detail, run.transcript)
    assert "reason = " in str(script.requests[-1])
    assert KEY not in f"{script.requests}{run}"
