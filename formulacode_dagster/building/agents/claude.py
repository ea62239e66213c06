"""Claude Code: https://docs.claude.com/en/docs/claude-code/cli-reference."""

from __future__ import annotations

from datetime import UTC, datetime

from formulacode_dagster.building.engines.protocol import Completed

from .cli import BASE_URL, INSTALLED, AgentReport, Program, Start, binary, last_json, on_path, version_beside
from .limits import RunEnd, ended_by_text
from .protocol import AgentBudget, AgentName, AgentOutcome
from .wire import Wire

_USED_UP = frozenset({"error_max_turns", "error_max_budget_usd"})


class Claude:
    """Implements `Cli`."""

    name = AgentName.CLAUDE
    wire = Wire.ANTHROPIC

    def find(self) -> Program | None:
        """Path of the binary that npm installs next to its wrapper."""
        start = on_path("claude")
        path = binary(start, "@anthropic-ai/claude-code-linux-x64/claude") if start is not None else None
        if path is None:
            return None
        inside = f"{INSTALLED}/claude"
        return Program((inside,), {path: inside}, version_beside(path, "@anthropic-ai/claude-code"))

    def start(self, budget: AgentBudget, *, model: str, key: str) -> Start:
        """Bash, Edit and Read, without confirmation; it applies limits of its own in addition to the forwarder's."""
        arguments = ["--bare", "-p", "--output-format", "json", "--allowedTools", "Bash,Edit,Read"]
        arguments += ["--max-turns", str(budget.turns), "--max-budget-usd", f"{max(budget.dollars, 0.01):.2f}"]
        arguments += ["--model", model] if model else []
        environment = {
            "ANTHROPIC_BASE_URL": BASE_URL,
            "ANTHROPIC_API_KEY": key,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "4",
            "API_TIMEOUT_MS": "180000",
            "BASH_DEFAULT_TIMEOUT_MS": "600000",
        }
        return Start(tuple(arguments), environment)

    def read(self, completed: Completed) -> AgentReport:
        """Its one object at the end. On errors of the API `subtype` is still `success`: `is_error` counts."""
        output = completed.stdout.decode(errors="replace")
        result = last_json(output)
        text = str(result.get("result", "")) or output or completed.stderr.decode(errors="replace")
        cost = result.get("total_cost_usd")
        dollars = float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e6 else 0.0
        if completed.rc == 0 and result.get("is_error") is False:
            return AgentReport(None, dollars)
        subtype = str(result.get("subtype", ""))
        if subtype in _USED_UP:
            return AgentReport(RunEnd(AgentOutcome.BUDGET, subtype), dollars)
        limited = ended_by_text(f"{text}\n{output}", now=datetime.now(tz=UTC))
        return AgentReport(limited or RunEnd(AgentOutcome.CRASHED, f"status {completed.rc}: {text[:300]}"), dollars)
