"""Gemini CLI: https://github.com/google-gemini/gemini-cli/blob/main/docs/reference/configuration.md."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from formulacode_dagster.building.engines.protocol import Completed

from .cli import BASE_URL, INSTALLED, AgentReport, Program, Start, last_json, on_path, version_beside
from .limits import RunEnd, ended_by_text
from .protocol import AgentBudget, AgentName, AgentOutcome
from .wire import Wire

_TURNS_USED_UP = 53
"""Its status when `maxSessionTurns` is reached."""


class Gemini:
    """Implements `Cli`."""

    name = AgentName.GEMINI
    wire = Wire.GEMINI

    def find(self) -> Program | None:
        """Its folder of JavaScript, and the Node that runs it; both have to be here."""
        path, node = on_path("gemini"), on_path("node")
        if path is None or node is None:
            return None
        program = f"{INSTALLED}/{path.parent.name}/{path.name}"
        mounts = {node: f"{INSTALLED}/node", path.parent: f"{INSTALLED}/{path.parent.name}"}
        return Program((f"{INSTALLED}/node", program), mounts, version_beside(path, "@google/gemini-cli"))

    def start(self, budget: AgentBudget, *, model: str, key: str) -> Start:
        """Without a question, and with every tool: without `--yolo` those that write are silently missing."""
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False, "maxAttempts": 3},
            "model": {"maxSessionTurns": budget.turns},
        }
        arguments = ["--yolo", "--skip-trust", "-o", "json", *(["-m", model] if model else [])]
        environment = {"GEMINI_API_KEY": key, "GOOGLE_GEMINI_BASE_URL": BASE_URL}
        return Start(tuple(arguments), environment, {".gemini/settings.json": json.dumps(settings)})

    def read(self, completed: Completed) -> AgentReport:
        """Parse its one JSON object, or the one at the end of stderr for an error. It reports no prices."""
        output, errors = (stream.decode(errors="replace") for stream in (completed.stdout, completed.stderr))
        result = last_json(output)
        if completed.rc == 0 and "error" not in result:
            return AgentReport()
        if completed.rc == _TURNS_USED_UP:
            return AgentReport(RunEnd(AgentOutcome.BUDGET, "its turns are used up"))
        failed = json.dumps(result["error"]) if "error" in result else errors[-4000:]
        limited = ended_by_text(failed, now=datetime.now(tz=UTC))
        detail = f"status {completed.rc}: {failed[-300:]}"
        return AgentReport(limited or RunEnd(AgentOutcome.CRASHED, detail))
