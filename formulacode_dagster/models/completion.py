"""A paid answer of the model, and the cache of such answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from pydantic import Field

from .base import Frozen


class OutputMode(StrEnum):
    """How an answer is bound to its schema, in the order in which modes are tried: strictest first."""

    JSON_SCHEMA = "json_schema"
    """`response_format` with the schema."""
    TOOLS = "tools"
    """The arguments of a function that has to be called."""
    JSON_OBJECT = "json_object"
    """`response_format` for any object; the schema is in the prompt."""
    PLAIN = "plain"
    """By the prompt only."""


class Completion(Frozen):
    """One answer, addressed by the content of the question."""

    key: str = Field(description="SHA-256 over endpoint-independent content: model, messages, schema, parameters")
    model: str
    content: str
    mode: OutputMode = Field(default=OutputMode.JSON_SCHEMA, description="how it was bound to its schema")
    temperature: float | None = Field(default=None, description="as it was asked for; null: left to the endpoint")
    tokens_in: int
    tokens_out: int
    dollars: float = 0.0


class CompletionCache(Protocol):
    """A cache of completions, so that nothing is paid for twice. Calls block; run them in a thread."""

    def get(self, key: str) -> Completion | None:
        """The stored answer, or None."""

    def put(self, completion: Completion) -> None:
        """Keep an answer; keeping it twice is harmless."""


class Forgetful:
    """A `CompletionCache` that is always empty, for questions that must be asked again."""

    def get(self, key: str) -> None:
        """Return nothing."""

    def put(self, completion: Completion) -> None:
        """Let it go."""
