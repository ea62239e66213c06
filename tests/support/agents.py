"""An agent with scripted outcomes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from formulacode_dagster.building.agents.edit import SpecEdit
from formulacode_dagster.building.agents.protocol import (
    AgentBudget,
    AgentOutcome,
    AgentRun,
    AgentTask,
    BuildRelay,
    EditGate,
)
from formulacode_dagster.models.items import Cost

COST = Cost(tokens_in=100, tokens_out=20, dollars=0.5, seconds=3.0)


class StubAgent:
    """Implements `agents.protocol.Agent`: each run is the next of *runs*, or of what they make of the task."""

    name = "stub"

    def __init__(self, *runs: AgentRun | Callable[[AgentTask, BuildRelay], AgentRun]) -> None:
        self._runs = list(runs)
        self.tasks: list[AgentTask] = []
        self.budgets: list[AgentBudget] = []

    def run(self, task: AgentTask, *, budget: AgentBudget, build: BuildRelay | None = None) -> AgentRun:
        """The next run; the last again and again."""
        self.tasks.append(task)
        self.budgets.append(budget)
        run = self._runs.pop(0) if len(self._runs) > 1 else self._runs[0]
        if isinstance(run, AgentRun):
            return run
        assert build is not None
        return run(task, build)


def ended(outcome: AgentOutcome, *, until: datetime | None = None, gate: EditGate | None = None) -> AgentRun:
    """A run without an edit that ended so."""
    return AgentRun(agent="stub 1", outcome=outcome, until=until, gate=gate, detail="own words", cost=COST)


def edited(**edit: object) -> AgentRun:
    """A run that asks for this."""
    asked = SpecEdit.model_validate(edit)
    return AgentRun(agent="stub 1", outcome=AgentOutcome.EDITED, edit=asked, cost=COST, transcript="I looked")
