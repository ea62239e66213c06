"""A plan without a lock: recipes that bear on locks, then an agent, whose edits every gate judges as anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.agents.edit import SpecEdit
from formulacode_dagster.building.agents.gates import EditRefused, require_honest
from formulacode_dagster.building.agents.protocol import (
    AgentBudget,
    AgentOutcome,
    AgentRun,
    AgentTask,
    BuildRelay,
    EditGate,
)
from formulacode_dagster.building.environments.lock_attempts import LockAttempts, lock_otherwise
from formulacode_dagster.building.environments.stage import EnvironmentTools, detail_of, run
from formulacode_dagster.building.images.recipes import lock_recipes_for
from formulacode_dagster.building.images.repairs.attempts import Recipe
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.building.planning.lock import digest
from formulacode_dagster.building.planning.resolution import Refusal, Resolution, ResolutionRequest, Unsolvable
from formulacode_dagster.building.synthesis.agent_request import AgentDispatcher
from formulacode_dagster.building.synthesis.month import MonthAuthors
from formulacode_dagster.models.attempt import BuildAttempt, Rung
from formulacode_dagster.models.environment import DroppedRequirement, Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.items import ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Fix
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import ENVIRONMENTS, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.attempts import agents_used, attempts_of, engines_of, summary_of
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from formulacode_dagster.operating.store.spending import spending_of
from tests.formulacode_dagster.building.images.repairs.failing import FailingEngine, make_environment, make_task
from tests.formulacode_dagster.building.images.test_recipes import GSL, HERE, make_context
from tests.support.agents import COST, StubAgent, edited, ended
from tests.support.declarations import DictReader

OLD_ATTRS = Fix(rule="old_attrs", evidence="attrs 2", constraints=("attrs<2",))
WORDS = "attrs 2 cannot be had"
NO_LOCK = Unsolvable(Refusal(what="no lock for Python 3.12", log_tail=WORDS))


def _replan(fixes: Sequence[Fix]) -> Environment:
    if not any("attrs<2" in fix.constraints for fix in fixes):
        raise NO_LOCK
    return make_environment(fixes)


def _otherwise(
    *recipes: Recipe, agent: StubAgent | None = None
) -> tuple[list[BuildAttempt], Environment | ItemFailure]:
    """The attempts at a lock, and what they ended with."""
    kept: list[BuildAttempt] = []
    attempts = LockAttempts(FailingEngine("never built"), make_task(_replan), "run", 1, kept.append)  # type: ignore[arg-type]  # only its name is asked
    author = None if agent is None else AgentDispatcher(agent, max_attempts=2).author()
    try:
        return kept, lock_otherwise(attempts, NO_LOCK, recipes=recipes, author=author)
    except ItemFailure as failure:
        return kept, failure


def test_without_recipe_and_agent_nothing_changes() -> None:
    assert _otherwise() == ([], NO_LOCK)


def test_an_agent_reads_why_there_is_no_lock_and_its_bound_makes_one() -> None:
    agent = StubAgent(edited(system_packages=["libffi-dev"]), edited(constraints=["attrs<2"], reason="attrs 2"))
    kept, environment = _otherwise(agent=agent)
    assert isinstance(environment, Environment)
    assert [(fix.rule, fix.constraints) for fix in environment.fixes] == [("agent:stub", ("attrs<2",))]
    assert [(attempt.rung, attempt.stage, attempt.kind) for attempt in kept] == [
        (Rung.RULES, "plan", "lock"),
        (Rung.AGENT, "plan", "lock"),
        (Rung.AGENT, "locked", ""),
    ]
    assert {attempt.made_in for attempt in kept} == {Stage.ENVIRONMENTS}
    assert [past.log for past in agent.tasks[0].attempts] == [WORDS]
    assert "b" in agent.tasks[0].own_names
    assert agent.tasks[0].pythons == ("3.12", "3.11", "3.10", "3.9")


def test_an_agents_attempt_is_a_lock_and_its_outcome_is_reported() -> None:
    told: list[tuple[bool, str]] = []

    def run(_: AgentTask, build: BuildRelay) -> AgentRun:
        for bound in ("attrs<3", "attrs<2"):
            relayed = build(SpecEdit(constraints=(bound,)))
            told.append((relayed.ok, relayed.stage))
        return edited(constraints=["attrs<2"])

    kept, environment = _otherwise(agent=StubAgent(run))
    assert told == [(False, "plan"), (True, "locked")]
    assert isinstance(environment, Environment)
    assert len(kept) == 4


@pytest.mark.parametrize(
    ("edit", "gate"),
    [
        (SpecEdit(constraints=("b==2.0",)), EditGate.OWN_PACKAGE),
        (SpecEdit(requirements=("attrs @ https://example.org/attrs.whl",)), EditGate.REQUIREMENT),
        (SpecEdit(constraints=("attrs<2",), environment={"UV_INDEX_URL": "https://example.org"}), EditGate.ENVIRONMENT),
        (SpecEdit(constraints=("asv_runner<1",)), EditGate.MEASURING_TOOL),
    ],
)
def test_an_edit_that_a_gate_stops_is_never_resolved(edit: SpecEdit, gate: EditGate) -> None:
    def run(task: AgentTask, _: BuildRelay) -> AgentRun:
        try:
            require_honest(edit, task.spec, task.own_names)
        except EditRefused as refused:
            return ended(AgentOutcome.REFUSED, gate=refused.gate)
        return edited(**edit.model_dump())

    kept, failure = _otherwise(agent=StubAgent(run))
    assert isinstance(failure, ItemFailure)
    assert failure.kind is FailureKind.AGENT_REFUSED
    assert [attempt.stage for attempt in kept] == ["plan", gate, gate]


def test_a_recipe_that_bears_on_locks_spares_the_agent() -> None:
    agent = StubAgent(edited(constraints=["attrs<2"]))
    kept, environment = _otherwise(Recipe(Rung.NEAREST, (GSL,)), Recipe(Rung.NEAREST, (OLD_ATTRS, GSL)), agent=agent)
    assert isinstance(environment, Environment)
    assert environment.fixes == (OLD_ATTRS, GSL)
    assert [(attempt.rung, attempt.stage) for attempt in kept[1:]] == [(Rung.NEAREST, "plan"), (Rung.NEAREST, "locked")]
    assert agent.tasks == []


def test_recipes_for_locks_are_those_that_bear_on_them_wherever_they_stand() -> None:
    contexts = [make_context("b", days=1), make_context("c", GSL, days=2), make_context("d", OLD_ATTRS, GSL, days=3)]
    assert [recipe.fixes for recipe in lock_recipes_for(contexts, "a" * 40, HERE)] == [(OLD_ATTRS, GSL)]


class _OldIndex:
    """A resolver of an index that has no lock unless `attrs` is bounded."""

    def resolve(self, request: ResolutionRequest, **_: object) -> Resolution:
        if "attrs<2" not in request.constraints:
            raise NO_LOCK
        lock = "attrs==1.0 --hash=sha256:" + "0" * 64 + "\n"
        return Resolution(lock=lock, pylock="", cut_off=request.exclude_newer, resolver="uv 0")

    def first_wheel(self, *_: object, **__: object) -> None:
        """Nothing is there as a wheel."""


class _Cache:
    def __init__(self, reader: DictReader) -> None:
        self._reader = reader

    def ensure(self, *_: object, **__: object) -> DictReader:
        return self._reader


class _Engine(FailingEngine):
    def interpreters(self) -> frozenset[str]:
        return frozenset({"3.12"})


FILES = {
    "pyproject.toml": "[project]\nname = 'fast'\nversion = '1'\nrequires-python = '>=3.12'\ndependencies = ['attrs']\n",
    "fast/__init__.py": "",
    "asv.conf.json": '{"repo": ".", "benchmark_dir": "benchmarks"}',
    "benchmarks/bench.py": "",
}


def test_the_stage_records_the_agents_cost_and_offers_the_item_to_another(
    database: Database, reader_of: Callable[..., DictReader], pull_request: Callable[..., PullRequest]
) -> None:
    pr = pull_request(datetime(2026, 1, 15, tzinfo=UTC))
    month = pr.facts.month
    stage = StageRun(database, Stage.ENVIRONMENTS, month, "run", RunOptions())
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [pr.facts])
        save_changes(connection, [(pr.change, b"diff\n")])
        entry = LedgerEntry(stage=Stage.CLASSIFICATIONS, month=month, item=pr.item, state=ItemState.DONE)
        ledger.record(connection, [entry])

    def planned_by(agent: StubAgent) -> LedgerEntry:
        authors = MonthAuthors.of(stage, agent, AgentBudget(), {}, 1)
        parts = (_Engine("never built"), _Cache(reader_of(FILES)), _OldIndex(), "os:{python}", authors)
        (entry,) = run_loop(run(stage, EnvironmentTools(*parts))).standing  # type: ignore[arg-type]  # stand-ins
        return entry

    helpless = StubAgent(ended(AgentOutcome.GAVE_UP))
    failed = planned_by(helpless)
    assert (failed.state, failed.reason) == (ItemState.FAILED, FailureKind.AGENT_GAVE_UP)
    assert failed.cost.dollars == COST.dollars
    (task,) = helpless.tasks
    assert (task.spec.lock, task.spec.lock_sha256, task.spec.package_name) == ("", digest(""), "fast")
    assert sorted(task.declared) == ["asv.conf.json", "pyproject.toml"]
    assert MonthAuthors.of(stage, helpless, AgentBudget(), {}, 1).unasked([pr]) == []
    able = StubAgent(edited(constraints=["attrs<2"]))
    able.name = "another"

    assert planned_by(able).state is ItemState.DONE
    with database.transaction() as connection:
        (planned,) = ENVIRONMENTS.read(connection, month)
    assert (planned.python, "attrs==1.0" in planned.lock) == ("3.12", True)
    assert [fix.rule for fix in planned.fixes] == ["agent:another"]
    assert [past.rule for past in able.tasks[0].attempts] == ["", "agent:stub", ""], "what was tried before is shown"
    with database.transaction() as connection:
        kept = attempts_of(connection, month, pr.key)
        assert [(attempt.attempt, attempt.stage) for attempt in kept] == [
            (1, "plan"),
            (2, "agent"),
            (3, "plan"),
            (4, "locked"),
        ]
        assert spending_of(connection, month)[Stage.ENVIRONMENTS].dollars == 2 * COST.dollars
        assert {use.agent: use.held for use in agents_used(connection, month)} == {
            "agent:stub": False,
            "agent:another": False,
        }, "a lock is no image"
        assert (summary_of(connection, month, "run").attempts, engines_of(connection, month)) == (0, set())


def test_recipes_of_images_stand_on_what_the_environment_was_planned_with() -> None:
    planned = replace(make_task(_replan), environment=make_environment((OLD_ATTRS,)))
    engine = FailingEngine("error: own words")
    with pytest.raises(ItemFailure):
        build_until_it_holds(engine, planned, run_id="run", recipes=[Recipe(Rung.NEAREST, (GSL,))])  # type: ignore[arg-type]  # only builds
    assert [spec.fixes for spec in engine.built] == [(OLD_ATTRS, GSL), (OLD_ATTRS,)]


def test_dropped_requirements_are_named() -> None:
    dropped = tuple(DroppedRequirement(requirement=name, source="setup.py", reason="gone") for name in ("b>2", "a"))
    environment = make_environment(())
    assert detail_of(environment.model_copy(update={"dropped": dropped})).endswith("2 requirements dropped: a, b>2")
    assert detail_of(environment.model_copy(update={"dropped": ()})).endswith("0 requirements dropped")


class _NoIndex(_OldIndex):
    def resolve(self, request: ResolutionRequest, **_: object) -> Resolution:
        raise AssertionError(request)


class _HoleyMirror(DictReader):
    holes = True

    def require(self, *commits: str) -> None:
        if self.holes:
            raise ItemFailure(FailureKind.FILES_MISSING, f"a file is missing from {commits[0]}")


def test_files_missing_from_the_mirror_are_found_before_locking_and_the_next_run_tries_again(
    database: Database, pull_request: Callable[..., PullRequest]
) -> None:
    pr = pull_request(datetime(2026, 1, 15, tzinfo=UTC))
    stage = StageRun(database, Stage.ENVIRONMENTS, pr.facts.month, "run", RunOptions())
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [pr.facts])
        save_changes(connection, [(pr.change, b"diff\n")])
        entry = LedgerEntry(stage=Stage.CLASSIFICATIONS, month=pr.facts.month, item=pr.item, state=ItemState.DONE)
        ledger.record(connection, [entry])
    mirror = _HoleyMirror({pr.change.base_sha: FILES, pr.facts.merge_commit_sha: FILES})

    def planned(resolver: _OldIndex) -> LedgerEntry:
        parts = (_Engine("never built"), _Cache(mirror), resolver, "os:{python}")
        (entry,) = run_loop(run(stage, EnvironmentTools(*parts))).worked  # type: ignore[arg-type]  # stand-ins
        return entry

    assert [planned(_NoIndex()).reason for _ in range(4)] == [FailureKind.FILES_MISSING] * 4
    mirror.holes = False
    assert planned(_OldIndex()).reason == FailureKind.LOCK
