"""A paid-for answer of the model, and where it is kept."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from .base import Frozen


class Completion(Frozen):
    """One answer, addressed by the content of the question."""

    key: str = Field(description="SHA-256 over endpoint-independent content: model, messages, schema, parameters")
    model: str
    content: str
    tokens_in: int
    tokens_out: int
    dollars: float = 0.0


class CompletionCache(Protocol):
    """Where completions are kept so that nothing is paid for twice. Calls block; wrap them in a thread."""

    def get(self, key: str) -> Completion | None:
        """The stored answer, or None."""

    def put(self, completion: Completion) -> None:
        """Keep an answer; keeping it twice is harmless."""
