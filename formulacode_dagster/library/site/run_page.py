"""The page of a run: the agent's changes and its steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formulacode_dagster.models.agent_run import AgentRun

from .markup import patch_lines

if TYPE_CHECKING:
    from markupsafe import Markup

RUNS = "runs"
"""Folder of the runs' pages."""
MOST_STEPS = 500
MOST_TEXT = 20_000
"""Characters of a text of a step; the middle of longer ones is left out."""


@dataclass(frozen=True)
class RunFiles:
    """What an agent left: its changes, a patch, and its trajectory; empty if there is none."""

    changes: str = ""
    trajectory: str = ""


@dataclass(frozen=True)
class AgentStep:
    """One step of a trajectory."""

    number: int
    source: str
    texts: tuple[tuple[str, str], ...]
    """Each with what it is: a message, reasoning, the call of a tool, or its output."""


@dataclass(frozen=True)
class RunView:
    """All that the page of a run shows."""

    run: AgentRun
    changes: tuple[tuple[str, Markup], ...]
    steps: tuple[AgentStep, ...]
    left_out: int
    """Steps after the last one that is shown."""


def page_of(run: AgentRun) -> str:
    """Return the name of the page of *run*."""
    return run.run_id[:20]


def run_view(run: AgentRun, files: RunFiles) -> RunView:
    """Content of the page of *run*."""
    steps = steps_of(files.trajectory)
    changes = tuple(patch_lines(files.changes)) if files.changes else ()
    return RunView(run, changes, steps[:MOST_STEPS], max(0, len(steps) - MOST_STEPS))


def steps_of(trajectory: str) -> tuple[AgentStep, ...]:
    """Return the steps of a *trajectory* in ATIF; any other text is one step."""
    if not trajectory:
        return ()
    try:
        told = json.loads(trajectory)
    except (ValueError, RecursionError):
        told = None
    steps = told.get("steps") if isinstance(told, dict) else None
    if not isinstance(steps, list):
        return (AgentStep(1, "", (("text", _shortened(trajectory)),)),)
    return tuple(_step(number, step) for number, step in enumerate(steps, start=1) if isinstance(step, dict))


def _step(number: int, step: Mapping[str, Any]) -> AgentStep:
    texts = [("reasoning", _text(step.get("reasoning_content"))), ("message", _text(step.get("message")))]
    calls = step.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            texts.append((f"call of {_text(call.get('function_name'))[:80]}", _text(call.get("arguments"))))
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    for result in results if isinstance(results, list) else ():
        if isinstance(result, dict):
            texts.append(("output", _text(result.get("content"))))
    return AgentStep(number, _text(step.get("source")), tuple((kind, text) for kind, text in texts if text))


def _text(value: Any) -> str:
    """*value* as text: parts of a message joined, anything else as JSON."""
    if value is None or isinstance(value, str):
        return _shortened(value or "")
    if isinstance(value, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value):
        return _shortened("\n".join(part["text"] for part in value))
    return _shortened(json.dumps(value, ensure_ascii=False, indent=1))


def _shortened(text: str) -> str:
    half = MOST_TEXT // 2
    return text if len(text) <= MOST_TEXT else f"{text[:half]}\n… {len(text) - MOST_TEXT} characters …\n{text[-half:]}"
