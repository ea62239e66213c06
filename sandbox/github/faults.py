"""Faults on purpose: at a call that a test names, or at random."""

from __future__ import annotations

import random
from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field

from formulacode_dagster.models.base import Frozen

from .context import Failure

ANY = "*"
WENT_WRONG = "Something went wrong while executing your query. Please include the request ID when reporting this issue."


class Fault(StrEnum):
    """One way in which GitHub fails its client."""

    BAD_GATEWAY = "bad_gateway"
    """502 with an HTML page."""
    UNAVAILABLE = "unavailable"
    """503 with JSON."""
    PRIMARY_LIMIT = "primary_limit"
    """As with an exhausted budget: 403 for REST, 200 with an error for GraphQL."""
    SECONDARY_LIMIT = "secondary_limit"
    """403 with `Retry-After`."""
    UNAUTHORIZED = "unauthorized"
    """401 Bad credentials."""
    GONE = "gone"
    """404 for REST, an error NOT_FOUND without data for GraphQL."""
    TRUNCATED = "truncated"
    """The right answer, its second half missing, framed as if it were whole."""
    DROPPED = "dropped"
    """The same, and the connection is closed before the length that was promised."""
    RESET = "reset"
    """The connection is closed after the head, before the first byte of the body."""
    SLOW = "slow"
    """The right answer, late."""
    HANG = "hang"
    """No answer, the connection open."""
    HALF_PAGE = "half_page"
    """A list that lacks its second half and claims to be complete."""
    NULL_NODE = "null_node"
    """GraphQL: a node of the first list is null, with an error at its path. REST: like `half_page`."""
    TIMED_OUT = "timed_out"
    """GraphQL: 200 with `Something went wrong while executing your query`, no data. REST: 504."""
    FIELD = "field"
    """GraphQL: one part of the response, `path`, is an error; by default the last top-level field. Where the schema
    allows no null, the object around it becomes null, too, up to all of `data`. REST: `half_page`.
    """
    INCOMPLETE = "incomplete"
    """REST search: half of the results, with `incomplete_results`. GraphQL: no fault."""


class ScriptedFault(Frozen):
    """The *call*-th call to *endpoint*, counted from 1, goes wrong.

    *endpoint* is a name of the accounting (`graphql`, `GET /search/code`, `graphql Name` for one operation) or `*` for
    any call. With *answer_status* the call is answered by exactly that status, headers and body. *path*, *error_type*
    and *message* are those of the error that `field` makes of a part of the answer.
    """

    endpoint: str = ANY
    call: int = Field(default=1, ge=1)
    times: int = Field(default=1, ge=1, description="so many calls in a row, from the *call*-th on")
    fault: Fault | None = None
    answer_status: int | None = None
    answer_headers: Mapping[str, str] = Field(default_factory=dict)
    answer_body: str = ""
    path: tuple[str | int, ...] = ()
    error_type: str = ""
    message: str = WENT_WRONG

    @property
    def failure(self) -> Failure | None:
        """The part of a GraphQL answer that fails."""
        return Failure(self.path, self.error_type, self.message) if self.fault is Fault.FIELD else None

    def hits(self, counts: Mapping[str, int]) -> bool:
        """Return True for the call that has just been counted in *counts* (by endpoint name)."""
        count = counts.get(self.endpoint)
        return count is not None and self.call <= count < self.call + self.times


class Faults(Frozen):
    """Chooses calls to fail: first those `scripted`, then at random with a fixed seed."""

    scripted: tuple[ScriptedFault, ...] = ()
    chances: Mapping[Fault, float] = Field(default_factory=dict, description="probability of each kind, per call")
    seed: int = 0
    slow_seconds: float = 2.0
    latency_seconds: float = Field(default=0.0, description="that every answer takes at least")
    work_seconds: float = Field(default=0.0, description="that GitHub works on every answer, as its limits count them")
    hang_seconds: float = 3_600.0

    @classmethod
    def at(cls, endpoint: str, call: int, fault: Fault) -> Faults:
        """One fault at one call."""
        return cls(scripted=(ScriptedFault(endpoint=endpoint, call=call, fault=fault),))


class FaultSource:
    """Decides call by call; not thread-safe, used from the event loop only."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.restart()

    def restart(self) -> None:
        """Restart the random sequence from the seed."""
        self._chance = random.Random(self.faults.seed)  # noqa: S311 - reproducible faults, no secret

    def next(self, counts: Mapping[str, int]) -> ScriptedFault | None:
        """The fault of the call just counted; *counts* are its endpoint names with how often each was called."""
        for scripted in self.faults.scripted:
            if scripted.hits(counts):
                return scripted
        if not self.faults.chances:
            return None
        draw = self._chance.random()
        for fault, chance in self.faults.chances.items():
            if draw < chance:
                return ScriptedFault(fault=fault)
            draw -= chance
        return None
