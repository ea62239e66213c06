"""The real programs, in the container, against a scripted model: nothing of them is stood in for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from formulacode_dagster.building.agents.claude import Claude
from formulacode_dagster.building.agents.cli import Cli
from formulacode_dagster.building.agents.codex import Codex
from formulacode_dagster.building.agents.confined import ConfinedAgent
from formulacode_dagster.building.agents.container import Confinement
from formulacode_dagster.building.agents.edit import SpecEdit
from formulacode_dagster.building.agents.forwarder import UpstreamEndpoint
from formulacode_dagster.building.agents.gemini import Gemini
from formulacode_dagster.building.agents.protocol import (
    AgentBudget,
    AgentOutcome,
    AgentTask,
    EditGate,
    PastAttempt,
    RelayedBuild,
)
from formulacode_dagster.building.agents.workspace import WorkspacePaths
from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.images.repairs.propose import FailureLog, RepairContext, propose
from formulacode_dagster.building.specs.fixes import with_fixes
from formulacode_dagster.models.image import BuildSpec
from sandbox.server import serving
from tests.support.confined_agents import IMAGE, ITEM, edit_with, make_task
from tests.support.images import PURE, Sample, build_sample, make_sample, make_spec
from tests.support.scripted_model import TOKENS_IN, TOKENS_OUT, Refusal, Script, app

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]

INSTALLED = Path(".ci/agents/node_modules/.bin").absolute()
KEY = "sk-the-real-key-of-nobody"
CLIS = (Claude(), Codex(), Gemini())
MODELS = {"claude": "claude-sonnet-4-5", "codex": "gpt-5.5", "gemini": "gemini-2.5-pro"}
BUDGET = AgentBudget(seconds=600, builds=2)

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
            endpoint = UpstreamEndpoint(cli.wire, serve(script), KEY, 2.0, 10.0)
            return ConfinedAgent(cli, program, daemon, Confinement(IMAGE), endpoint, MODELS[cli.name.value])

        yield make


@contextmanager
def _servers() -> Iterator[Callable[[Script], str]]:
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(serving(app(script)))


PICKY = {
    **PURE,
    "setup.py": """
import os

from setuptools import setup

if os.environ.get("TINY_BACKEND") not in ("plain", "fast"):
    raise SystemExit("TINY_BACKEND is to be plain or fast, not " + os.environ.get("TINY_BACKEND", "unset"))
setup(packages=["tinypure"])
""",
}
"""A package that no rule mends: only its own setup.py knows what it wants."""


@dataclass(frozen=True)
class Workshop:
    """That package, its failed build, and builds for agents' requests, by a real engine with all verifications."""

    engine: ProcessEngine
    sample: Sample
    spec: BuildSpec
    failure: BuildFailure

    def task(self) -> AgentTask:
        """Input of an agent after the rules gave up."""
        attempt = PastAttempt(attempt=1, stage=self.failure.stage, detail=str(self.failure), log=self.failure.log)
        return AgentTask(item=ITEM, spec=self.spec, own_names=("tinypure",), attempts=(attempt,))

    def build(self, edit: SpecEdit) -> RelayedBuild:
        """Build it with the fix of *edit*."""
        try:
            build_sample(self.engine, with_fixes(self.spec, [edit.as_fix("tried")]), self.sample)
        except BuildFailure as failure:
            return RelayedBuild(ok=False, stage=failure.stage, log=failure.log)
        return RelayedBuild(ok=True, stage="done", log="")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, engine: ProcessEngine, lock: str) -> Workshop:
    sample = make_sample(tmp_path_factory.mktemp("picky") / "tinypure", "tinypure", PICKY, {"README.md": "x"})
    spec = make_spec(sample, lock)
    with pytest.raises(BuildFailure) as failure:
        build_sample(engine, spec, sample)
    log = FailureLog(failure.value.stage, failure.value.log)
    assert propose(log, RepairContext(spec)) is None
    return Workshop(engine, sample, spec, failure.value)


def one_of_the_programs(does: str) -> pytest.MarkDecorator:
    """test_outputs.py and test_limits.py cover their output case by case."""
    return pytest.mark.variant(f"a program that {does}", most=1)


@pytest.mark.parametrize("cli", CLIS, ids=[cli.name.value for cli in CLIS])
class TestAProgram:
    @one_of_the_programs("mends in one try")
    def test_mends_in_one_try(self, scripted: Scripted, cli: Cli, workshop: Workshop) -> None:
        script = Script(["cat /task/attempts/001.log", edit_with('environment = { TINY_BACKEND = "plain" }')])
        run = scripted(cli, script).run(workshop.task(), budget=BUDGET)
        assert run.outcome is AgentOutcome.EDITED, (run.detail, run.transcript)
        assert run.edit == SpecEdit(environment={"TINY_BACKEND": "plain"})
        assert workshop.build(run.edit).ok
        # what the tool printed reached the model, and the key did; the agent itself held another one
        assert "TINY_BACKEND is to be plain or fast, not unset" in str(script.requests[-1])
        assert set(script.keys) == {KEY}
        assert KEY not in run.transcript
        answers = run.cost.model_calls
        assert (run.cost.tokens_in, run.cost.tokens_out) == (answers * TOKENS_IN, answers * TOKENS_OUT)
        assert run.cost.dollars == pytest.approx((answers * TOKENS_IN * 2 + answers * TOKENS_OUT * 10) / 1e6)

    @one_of_the_programs("mends in the second")
    def test_reads_the_log_of_its_build_and_mends_in_the_second(
        self, scripted: Scripted, cli: Cli, workshop: Workshop
    ) -> None:
        wrong, right = (edit_with(f'environment = {{ TINY_BACKEND = "{name}" }}') for name in ("quick", "fast"))
        script = Script([f"{edit}\n{WorkspacePaths().bridge}" for edit in (wrong, right)])
        run = scripted(cli, script).run(workshop.task(), budget=BUDGET, build=workshop.build)
        assert run.outcome is AgentOutcome.EDITED, (run.detail, run.transcript)
        assert run.edit == SpecEdit(environment={"TINY_BACKEND": "fast"})
        said = str(script.requests[-1])
        assert "TINY_BACKEND is to be plain or fast, not quick" in said
        assert "ended at: done" in said

    @one_of_the_programs("gives up")
    def test_gives_up(self, scripted: Scripted, cli: Cli) -> None:
        run = scripted(cli, Script(last="I see no way")).run(make_task(), budget=BUDGET)
        assert (run.outcome, run.edit) == (AgentOutcome.GAVE_UP, None)
        assert "I see no way" in run.transcript

    @one_of_the_programs("has no key")
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
