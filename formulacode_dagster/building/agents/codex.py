"""Codex CLI: https://github.com/openai/codex/blob/main/docs/config.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from formulacode_dagster.building.engines.protocol import Completed

from .cli import BASE_URL, INSTALLED, AgentReport, Program, Start, binary, on_path, version_beside
from .limits import RunEnd, ended_by_text
from .protocol import AgentBudget, AgentName, AgentOutcome
from .wire import Wire

_CONFIG = """\
model_provider = "forwarder"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"

[analytics]
enabled = false

[features]
plugins = false
apps = false

[model_providers.forwarder]
name = "forwarder"
base_url = "{url}/v1"
env_key = "FC_AGENT_KEY"
wire_api = "responses"
request_max_retries = 3
stream_max_retries = 2
stream_idle_timeout_ms = 180000
"""


class Codex:
    """Implements `Cli`."""

    name = AgentName.CODEX
    wire = Wire.RESPONSES

    def find(self) -> Program | None:
        """Path of the static binary that npm installs next to its wrapper."""
        start = on_path("codex")
        path = binary(start, "@openai/codex-linux-x64/vendor/*/bin/codex") if start is not None else None
        if path is None:
            return None
        inside = f"{INSTALLED}/codex"
        return Program((inside,), {path: inside}, version_beside(path, "@openai/codex"))

    def start(self, budget: AgentBudget, *, model: str, key: str) -> Start:
        """Without a sandbox of its own, which the container cannot support; only the forwarder enforces *budget*."""
        del budget
        arguments = ["exec", "--json", "--ephemeral", "--skip-git-repo-check", "-C", "/ws"]
        arguments += ["--dangerously-bypass-approvals-and-sandbox", *(["--model", model] if model else []), "-"]
        return Start(tuple(arguments), {"FC_AGENT_KEY": key}, {".codex/config.toml": _CONFIG.format(url=BASE_URL)})

    def read(self, completed: Completed) -> AgentReport:
        """Its lines of JSON, for the error of a turn that failed. It knows no prices."""
        failed = ""
        for event in _events(completed.stdout):
            if event.get("type") in ("turn.failed", "error"):
                error = event.get("error")
                failed = str(error.get("message", "") if isinstance(error, dict) else event.get("message", ""))
        if completed.rc == 0:
            return AgentReport()
        failed = failed or completed.stderr.decode(errors="replace")[-2000:]
        limited = ended_by_text(failed, now=datetime.now(tz=UTC))
        return AgentReport(limited or RunEnd(AgentOutcome.CRASHED, f"status {completed.rc}: {failed[:300]}"))


def _events(output: bytes) -> Iterator[dict[str, Any]]:
    for line in output.decode(errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
