"""Differences of servers that call themselves OpenAI-compatible: accepted requests, and the place of the answer.

The table follows the documentation and issue trackers of servers; each row has the behaviour that breaks clients, and
nothing else.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.completion import OutputMode
from formulacode_dagster.selection.classification.requests import TokenField
from sandbox.model.app import Server


class Place(StrEnum):
    """Place of the answer in a message."""

    CONTENT = "content"
    PARTS = "parts"
    """In the content, as a list of parts after one of thoughts."""
    REASONING = "reasoning"
    REASONING_CONTENT = "reasoning_content"


class PeculiarServer(Frozen, Server):
    """Peculiarities of one kind of server. The defaults are those of OpenAI's own."""

    modes: frozenset[OutputMode] = frozenset(OutputMode)
    """Accepted ones; else it answers *refuses_with*."""
    enforces: frozenset[OutputMode] = frozenset(OutputMode)
    """Those that return an object; others that it accepts return prose."""
    token_fields: frozenset[TokenField] = frozenset(TokenField)
    sets_temperature: bool = True
    refuses_with: int = 400
    place: Place = Place.CONTENT
    before: str = ""
    after: str = ""
    """Text around the answer: thoughts, fences, words."""
    wants_the_word_json: bool = False
    moderates: str = ""
    """A word for which it refuses a text."""
    moderation: tuple[int, str, str] = (403, "", "")
    """Status, words and code of that refusal."""

    def complaint(self, question: dict[str, Any]) -> tuple[int, str, str] | None:
        """Return status, message and code of its refusal of *question*; None if it accepts it."""
        said = json.dumps(question["messages"])
        if self.moderates and self.moderates in said:
            return self.moderation
        for field in TokenField:
            if field in question and field not in self.token_fields:
                return self.refuses_with, f"Unsupported parameter: '{field}'", "unsupported_parameter"
        if "temperature" in question and not self.sets_temperature:
            words = "Unsupported value: 'temperature' does not support 0 with this model"
            return self.refuses_with, words, "unsupported_value"
        mode = mode_of(question)
        if mode not in self.modes:
            return self.refuses_with, f"{mode} is not supported here", "invalid_request_error"
        if mode is OutputMode.JSON_OBJECT and self.wants_the_word_json and "json" not in said.lower():
            return self.refuses_with, "Prompt must contain the word 'json'", "invalid_request_error"
        return None

    def message(self, question: dict[str, Any], content: str) -> dict[str, Any]:
        """The message with the answer *content* to *question*."""
        mode = mode_of(question)
        if mode not in self.enforces:
            return {"content": "Certainly! The fields you ask for are as follows, in my own words."}
        if mode is OutputMode.TOOLS:
            return super().message(question, content)
        wrapped = f"{self.before}{content}{self.after}"
        match self.place:
            case Place.CONTENT:
                return {"content": wrapped}
            case Place.PARTS:
                thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}]}
                return {"content": [thoughts, {"type": "text", "text": wrapped}]}
            case Place.REASONING:
                return {"content": None, "reasoning": wrapped}
            case Place.REASONING_CONTENT:
                return {"content": "", "reasoning_content": wrapped}


def mode_of(question: dict[str, Any]) -> OutputMode:
    """Return the form that *question* requests for its answer."""
    if question.get("tools"):
        return OutputMode.TOOLS
    form = (question.get("response_format") or {}).get("type", "text")
    return OutputMode.PLAIN if form == "text" else OutputMode(form)


_OBJECTS = frozenset({OutputMode.JSON_OBJECT, OutputMode.PLAIN})
_OLD = frozenset({TokenField.MAX_TOKENS})
_THOUGHT = '<think>\nIs {"total": 5} right? No.\n</think>\n\n'

SERVERS: dict[str, PeculiarServer] = {
    "openai": PeculiarServer(),
    "openai-reasoning": PeculiarServer(
        token_fields=frozenset({TokenField.MAX_COMPLETION_TOKENS}), sets_temperature=False
    ),
    "azure": PeculiarServer(
        moderates="forbidden fruit",
        moderation=(400, "The response was filtered due to the content management policy", "content_filter"),
    ),
    "openrouter": PeculiarServer(
        moderates="forbidden fruit",
        moderation=(403, "Your chosen model requires moderation and your input was flagged", "403"),
    ),
    "gateway": PeculiarServer(moderates="forbidden fruit", moderation=(403, "Forbidden", "")),
    "mistral": PeculiarServer(token_fields=_OLD, refuses_with=422, place=Place.PARTS),
    "vllm-reasoning": PeculiarServer(place=Place.REASONING),
    "sglang-without-parser": PeculiarServer(before=_THOUGHT),
    "template-that-opens-the-thought": PeculiarServer(before="Is it 5? No.\n</think>\n"),
    "llama.cpp": PeculiarServer(modes=_OBJECTS, token_fields=_OLD),
    "ollama": PeculiarServer(modes=_OBJECTS | {OutputMode.JSON_SCHEMA}),
    "ollama-cloud": PeculiarServer(enforces=_OBJECTS, before="```json\n", after="\n```"),
    "deepseek": PeculiarServer(modes=_OBJECTS, token_fields=_OLD, wants_the_word_json=True),
    "lm-studio": PeculiarServer(place=Place.REASONING_CONTENT),
    "tools-alone": PeculiarServer(modes=frozenset({OutputMode.TOOLS})),
    "chat-alone": PeculiarServer(
        modes=frozenset({OutputMode.PLAIN}),
        token_fields=_OLD,
        before="Sure!\n\n```json\n",
        after="\n```\nAnything else?",
    ),
    "prose-alone": PeculiarServer(enforces=frozenset()),
}
"""By name."""
