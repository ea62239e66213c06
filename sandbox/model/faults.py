"""Faults on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field

from formulacode_dagster.models.base import Frozen


class Fault(StrEnum):
    """One way in which a model endpoint fails its client."""

    GARBAGE = "garbage"
    """Prose instead of the requested JSON."""
    TRUNCATED = "truncated"
    """The right JSON, cut in the middle, as if it were whole."""
    LENGTH = "length"
    """The same, with `finish_reason: length`."""
    WRONG_SCHEMA = "wrong_schema"
    """Valid JSON with a category that does not exist."""
    EMPTY = "empty"
    """No content at all, with `finish_reason: stop`."""
    INVENTED_EVIDENCE = "invented_evidence"
    """Valid JSON with a quote that is not in the diff."""
    OPPOSITE = "opposite"
    """The other verdict, as another model may give it."""
    REFUSAL = "refusal"
    """The model declines."""
    RATE_LIMITED = "rate_limited"
    """429 with `Retry-After`."""
    OUT_OF_QUOTA = "out_of_quota"
    """429 that no waiting cures."""
    SERVER_ERROR = "server_error"
    """500."""
    BAD_REQUEST = "bad_request"
    """400, the context is too long."""
    HANG = "hang"
    """No answer, the connection open."""


class ModelFaults(Frozen):
    """Calls that fail. Calls to `/v1/chat/completions` are counted from 1."""

    by_call: Mapping[int, Fault] = Field(default_factory=dict)
    every: Fault | None = Field(default=None, description="the fault of all calls that `by_call` does not name")
    retry_after_seconds: float = 1.0
    hang_seconds: float = 3600.0

    def of(self, call: int) -> Fault | None:
        """The fault of the *call*-th call, None when it goes well."""
        return self.by_call.get(call, self.every)
