"""Probes which form of question an endpoint supports, with one small question."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import Field, ValidationError

from formulacode_dagster.models.base import Frozen, first_fault
from formulacode_dagster.models.completion import OutputMode
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind

from .replies import Reply
from .requests import Capabilities, Message

PROBE_VERSION = "1"


class Probe(Frozen):
    """The form of the probe's answer."""

    total: int
    word: str = Field(description="lower case")


QUESTION = (
    Message(role="system", content="You answer in JSON, with the fields total and word."),
    Message(role="user", content="total: what is 2 + 2? word: the opposite of no."),
)


@dataclass(frozen=True)
class Probed:
    """The capabilities, and whether to store them: not if a transient error may have affected them."""

    capabilities: Capabilities
    is_certain: bool


def probe_key(address: str, model: str) -> str:
    """Return the key under which the capabilities of *model* at *address* are stored."""
    return hashlib.sha256("\0".join(("probe", PROBE_VERSION, address, model)).encode()).hexdigest()


async def probe(ask: Callable[[Capabilities], Awaitable[tuple[Reply, Capabilities]]], place: str) -> Probed:
    """The strictest mode in which *ask* brings a valid answer.

    *ask* sends the question, and returns the capabilities that worked. Raises OutsideSystemError if no mode works;
    ItemFailure `timeout`, and OutsideSystemError, of *ask*.
    """
    said, certain = [], True
    for mode in OutputMode:
        try:
            reply, capabilities = await ask(Capabilities(mode=mode))
            Probe.model_validate_json(reply.content)
        except ItemFailure as failure:
            if failure.kind is FailureKind.TIMEOUT:
                raise
            certain = certain and failure.kind is FailureKind.MODEL_REQUEST
            said.append(f"{mode}: {failure.why}")
        except ValidationError as error:
            cut = "cut at the limit of tokens, LLM_MAX_TOKENS" if reply.cut else first_fault(error)
            said.append(f"{mode}: {reply.refusal or cut}")
        else:
            return Probed(capabilities, certain)
    raise OutsideSystemError(
        "llm",
        f"{place} answers a question of two fields in no form",
        why="; ".join(said),
        remedy="Use another LLM_MODEL, or raise LLM_MAX_TOKENS where answers are cut",
    )
