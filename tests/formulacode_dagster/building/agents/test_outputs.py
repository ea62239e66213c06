"""The adapters' interpretation of their programs' output."""

from __future__ import annotations

import json

import pytest

from formulacode_dagster.building.agents.claude import Claude
from formulacode_dagster.building.agents.cli import Cli
from formulacode_dagster.building.agents.codex import Codex
from formulacode_dagster.building.agents.gemini import Gemini
from formulacode_dagster.building.agents.program import AnyProgram
from formulacode_dagster.building.agents.protocol import AgentOutcome
from formulacode_dagster.building.engines.protocol import Completed

LIMIT = "You've hit your usage limit. Try again at 3:15 PM."


def _claude(**fields: object) -> str:
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "done", "total_cost_usd": 0.25}
    return json.dumps({**result, **fields})


def _codex(kind: str, **fields: object) -> str:
    return f'{{"type": "thread.started"}}\nno JSON\n{json.dumps({"type": kind, **fields})}\n'


@pytest.mark.parametrize(
    ("cli", "rc", "stdout", "stderr", "outcome"),
    [
        (Claude(), 0, _claude(), "", None),
        (Claude(), 0, _claude(is_error=True, result="Invalid API key"), "", AgentOutcome.BAD_KEY),
        (Claude(), 1, _claude(is_error=True, result=LIMIT), "", AgentOutcome.LIMITED),
        (Claude(), 1, _claude(is_error=True, subtype="error_max_turns"), "", AgentOutcome.BUDGET),
        (Claude(), 1, _claude(is_error=True, subtype="error_max_budget_usd"), "", AgentOutcome.BUDGET),
        (Claude(), 0, "", "", AgentOutcome.CRASHED),
        (Codex(), 0, _codex("item.completed", item={"type": "agent_message", "text": "done"}), "", None),
        (Codex(), 1, _codex("turn.failed", error={"message": LIMIT}), "", AgentOutcome.LIMITED),
        (Codex(), 1, _codex("error", message="server_is_overloaded"), "", AgentOutcome.OVERLOADED),
        (Codex(), 1, "", "panicked", AgentOutcome.CRASHED),
        (Gemini(), 0, '{"response": "done", "stats": {}}', "", None),
        (Gemini(), 145, "", '{"error": {"message": "API key not valid", "code": 400}}', AgentOutcome.BAD_KEY),
        (Gemini(), 53, "", "", AgentOutcome.BUDGET),
        (Gemini(), 41, "", "something", AgentOutcome.CRASHED),
        (AnyProgram("x"), 0, "done", "", None),
        (AnyProgram("x"), 3, "", "Traceback", AgentOutcome.CRASHED),
    ],
)
def test_how_a_program_ended(cli: Cli, rc: int, stdout: str, stderr: str, outcome: AgentOutcome | None) -> None:
    said = cli.read(Completed(rc, stdout.encode(), stderr.encode(), 1.0))
    assert (said.ended.outcome if said.ended is not None else None) == outcome
    if outcome is AgentOutcome.LIMITED:
        assert said.ended is not None
        assert said.ended.until is not None


@pytest.mark.parametrize(("cost", "dollars"), [(0.25, 0.25), (-1, 0.0), ("free", 0.0), (1e9, 0.0)])
def test_what_claude_says_it_cost_is_taken_where_it_can_be(cost: object, dollars: float) -> None:
    said = Claude().read(Completed(0, _claude(total_cost_usd=cost).encode(), b"", 1.0))
    assert said.dollars == dollars
