"""The agent's rung: its input, the use of its answers, and when it is not asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from formulacode_dagster.building.agents.edit import SpecEdit
from formulacode_dagster.building.agents.protocol import (
    AgentOutcome,
    AgentRun,
    AgentTask,
    BuildRelay,
    EditGate,
    PastAttempt,
)
from formulacode_dagster.building.images.repairs.attempts import Task
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.building.synthesis.agent_request import PATIENCE_SECONDS, AgentAuthor, AgentDispatcher
from formulacode_dagster.building.synthesis.budgets import Limits, Purse, Scope
from formulacode_dagster.models.attempt import BuildAttempt, Rung
from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError, ItemFailure
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.reasons import FailureKind
from tests.formulacode_dagster.building.images.repairs.failing import NO_GSL, FailingEngine, make_task
from tests.formulacode_dagster.building.images.test_recipes import FFI, GSL, make_context
from tests.support.agents import StubAgent, edited, ended

OWN_WORDS = "error: own words"


def climbed(
    agent: StubAgent, *ends: str, author: AgentAuthor | None = None, task: Task | None = None, **desk: object
) -> tuple[list[BuildAttempt], Exception, FailingEngine]:
    """The attempts at a build that ends with *ends*, what was raised, and the engine."""
    kept: list[BuildAttempt] = []
    engine = FailingEngine(*(ends or (OWN_WORDS,)))
    author = author or AgentDispatcher(agent, **desk).author()  # type: ignore[arg-type]  # fields of the desk
    with pytest.raises(FormulaCodeError) as caught:
        build_until_it_holds(engine, task or make_task(), run_id="run", author=author, keep=kept.append)  # type: ignore[arg-type]  # only builds
    return kept, caught.value, engine


def test_an_agent_starts_from_what_the_rules_made_and_reads_every_attempt() -> None:
    agent = StubAgent(edited(constraints=["setuptools<81"], reason="pkg_resources"), edited(environment={"A": "1"}))
    author = AgentDispatcher(agent, max_attempts=2).author(
        [make_context("b", FFI), make_context("d", GSL, held=False), make_context("e")],
        [PastAttempt(attempt=1, stage="task", detail="of an earlier run", rule="agent:other")],
    )
    kept, _, engine = climbed(agent, NO_GSL, OWN_WORDS, author=author)
    assert [(attempt.rung, attempt.rule) for attempt in kept] == [
        (Rung.RULES, ""),
        (Rung.RULES, "missing_header"),
        (Rung.AGENT, "agent:stub"),
        (Rung.AGENT, "agent:stub"),
    ]
    first, second = agent.tasks
    assert [past.detail for past in first.attempts] == ["of an earlier run", *(each.detail for each in kept[:2])]
    assert [past.log for past in second.attempts[1:]] == [each.log for each in kept[:3]]
    assert [nearby.fixes for nearby in first.nearby] == [(FFI,)]
    assert (first.edit, second.edit.constraints) == (SpecEdit(), ("setuptools<81",))
    assert "b" in first.own_names
    specs = engine.built
    assert [fix.rule for fix in specs[2].fixes] == ["missing_header", "agent:stub"]
    assert specs[2].fixes[-1].constraints == ("setuptools<81",)
    assert [fix.environment for fix in specs[3].fixes if fix.rule == "agent:stub"] == [{"A": "1"}], "one edit, not two"
    assert kept[2].log.startswith("agent stub 1: edited")
    assert (kept[2].agent, kept[2].tokens_in, kept[2].dollars) == ("stub 1", 100, 0.5)


def test_a_rejected_edit_is_an_attempt_that_ends_at_its_gate() -> None:
    agent = StubAgent(ended(AgentOutcome.REFUSED, gate=EditGate.OWN_PACKAGE))
    kept, error, engine = climbed(agent, max_attempts=1)
    assert (kept[-1].stage, kept[-1].kind) == ("own_package", FailureKind.AGENT_REFUSED)
    assert len(engine.built) == 1
    assert isinstance(error, ItemFailure)
    assert (error.kind, "own_package" in str(error)) == (FailureKind.AGENT_REFUSED, True)


@pytest.mark.parametrize(
    "outcome", [AgentOutcome.GAVE_UP, AgentOutcome.TIMED_OUT, AgentOutcome.BUDGET, AgentOutcome.CRASHED]
)
def test_a_run_that_ends_without_an_edit_is_an_attempt_of_its_own_kind(outcome: AgentOutcome) -> None:
    kept, error, _ = climbed(StubAgent(ended(outcome)), max_attempts=2)
    assert [attempt.kind for attempt in kept] == ["build", f"agent_{outcome}", f"agent_{outcome}"]
    assert isinstance(error, ItemFailure)
    assert error.kind == f"agent_{outcome}"


def test_builds_requested_by_an_agent_are_attempts_with_an_outcome() -> None:
    told: list[str] = []

    def run(_: AgentTask, build: BuildRelay) -> AgentRun:
        built = build(SpecEdit(system_packages=("libgsl-dev",)))
        told.append(f"{built.ok} {built.stage} {built.log}")
        return ended(AgentOutcome.GAVE_UP)

    kept, _, engine = climbed(StubAgent(run), max_attempts=1)
    assert [(attempt.rung, attempt.stage) for attempt in kept[1:]] == [(Rung.AGENT, "task"), (Rung.AGENT, "agent")]
    assert engine.built[1].apt_packages == ("libgsl-dev",)
    assert told[0].startswith(f"False task {OWN_WORDS}")
    assert kept[1].dollars == 0, "what it cost is told once"


def test_what_no_spec_can_cure_is_shown_to_no_agent() -> None:
    agent = StubAgent(ended(AgentOutcome.GAVE_UP))
    engine, author = FailingEngine("no such object", kind=FailureKind.MIRROR), AgentDispatcher(agent).author()
    with pytest.raises(ItemFailure, match="failed") as caught:
        build_until_it_holds(engine, make_task(), run_id="run", author=author)  # type: ignore[arg-type]  # only builds
    assert (caught.value.kind, agent.tasks) == (FailureKind.MIRROR, [])


def test_a_limit_is_waited_for_and_uses_up_no_attempt() -> None:
    until = datetime.now(tz=UTC) + timedelta(seconds=500)
    agent = StubAgent(ended(AgentOutcome.LIMITED, until=until), edited(constraints=["a<1"]))
    slept: list[float] = []
    kept, _, _ = climbed(agent, max_attempts=1, sleep=slept.append)
    assert [attempt.kind for attempt in kept] == ["build", "agent_limited", "build"]
    assert len(slept) == 1
    assert 400 < slept[0] <= 500


def test_an_overloaded_endpoint_stops_the_dispatcher_for_others_too() -> None:
    agent, slept, notes = StubAgent(ended(AgentOutcome.OVERLOADED)), [], []
    desk = AgentDispatcher(agent, sleep=slept.append, note=notes.append)
    kept, error, _ = climbed(agent, author=desk.author())
    assert slept == [60, 120, 240]
    assert [attempt.kind for attempt in kept[1:]] == ["agent_overloaded"] * 4
    assert isinstance(error, ItemFailure)
    assert error.kind is FailureKind.AGENT_OVERLOADED
    kept, error, _ = climbed(agent, author=desk.author())
    assert [attempt.rung for attempt in kept] == [Rung.RULES]
    assert notes[-1] == "no agent runs: stub is overloaded: own words"


def test_a_limit_that_lasts_too_long_is_not_waited_for() -> None:
    until = datetime.now(tz=UTC) + timedelta(seconds=2 * PATIENCE_SECONDS)
    agent, slept = StubAgent(ended(AgentOutcome.LIMITED, until=until)), []
    kept, _, _ = climbed(agent, sleep=slept.append)
    assert (slept, [attempt.kind for attempt in kept]) == ([], ["build", "agent_limited"])


def test_a_key_that_is_refused_stops_the_stage() -> None:
    _, error, _ = climbed(StubAgent(ended(AgentOutcome.BAD_KEY)))
    assert isinstance(error, ConfigurationError)


def test_an_agent_is_not_asked_beyond_the_budget_and_each_run_is_charged() -> None:
    purse = Purse({Scope.ITEM: Limits(dollars=0.9)})
    agent = StubAgent(ended(AgentOutcome.GAVE_UP))
    kept, _, _ = climbed(agent, purse=purse, max_attempts=5)
    assert [budget.dollars for budget in agent.budgets] == [0.9, pytest.approx(0.4)]
    assert len(kept) == 3
    assert purse.spent[make_task().pr.key].dollars == 1.0, "the last turn may overshoot"


def test_a_run_that_breaks_off_is_charged_with_its_time_at_least() -> None:
    def broken(_: AgentTask, __: BuildRelay) -> AgentRun:
        raise ConfigurationError("no image of the agent")

    purse = Purse()
    climbed(StubAgent(broken), purse=purse)
    assert purse.spent[make_task().pr.key].seconds > 0
    assert purse.spent[make_task().pr.key].model_copy(update={"seconds": 0.0}) == Cost()


def test_an_agent_is_asked_for_so_many_pull_requests_of_a_repository() -> None:
    agent = StubAgent(ended(AgentOutcome.GAVE_UP))
    desk = AgentDispatcher(agent, tasks_per_repository=1, max_attempts=2)
    assert [len(climbed(agent, author=desk.author())[0]) for _ in range(2)] == [3, 3], "the same pull request"
    assert not desk.admits((7, 6))
    assert desk.admits((8, 6))
