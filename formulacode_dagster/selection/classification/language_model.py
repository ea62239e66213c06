"""Questions with typed answers: cached by content, within a budget, validated."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from formulacode_dagster.models.base import first_fault
from formulacode_dagster.models.completion import Completion, CompletionCache, OutputMode
from formulacode_dagster.models.errors import ItemFailure, SuspectedOutage
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.last_answers import note_answer

from .budget import Prices, TokenBudget
from .endpoint import SYSTEM, OpenAIEndpoint
from .probing import QUESTION, Probe, probe, probe_key
from .replies import Reply
from .requests import Capabilities, Message

Answer = TypeVar("Answer", bound=BaseModel)
Book = Callable[[Cost], Cost | None]
"""Records spending; returns the total of the month by then if others spend from the same budget."""


@dataclass(frozen=True)
class Requirement(Generic[Answer]):
    """A requirement of an answer beyond its form."""

    objection: Callable[[Answer], str]
    """Returns the objection to an answer, worded for the model; empty if there is none."""
    kind: FailureKind
    """Kind of the failure if the second answer is wrong too."""


_ASKED = 2
_BEGINNING = 200
# dense text such as code; a high estimate, since it is what a call reserves of the budget
_CHARACTERS_PER_TOKEN = 3


@dataclass(frozen=True)
class ModelAnswer(Generic[Answer]):
    """An answer, its cost now, and how it was requested when it was paid."""

    answer: Answer
    cost: Cost
    mode: OutputMode
    temperature: float | None
    """None if it was left to the endpoint."""


@dataclass
class LanguageModel:
    """A model that answers in pydantic models. Lives in one event loop; call `close` when done.

    Raises ConfigurationError for a dollar budget without prices.
    """

    endpoint: OpenAIEndpoint
    cache: CompletionCache
    budget: TokenBudget
    prices: Prices
    book: Book | None = None
    """Receives all spending, also without a result; it may block."""
    _probing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self.budget.require_prices(self.prices)
        self.name = self.endpoint.model

    async def close(self) -> None:
        """Close the connections."""
        await self.endpoint.close()

    async def ask(
        self, messages: Sequence[Message], answer: type[Answer], requirement: Requirement[Answer] | None = None
    ) -> ModelAnswer[Answer]:
        """Return the model's answer to *messages* as an *answer*, and its cost; nothing for a cached one.

        An answer that *requirement* objects to is requested again, like an unusable one. Raises ItemFailure
        (`model_answer` for a second one in a row, or the kind of *requirement*; `timeout`, `model_request`,
        `moderated`) with the spending; OutsideSystemError if the endpoint is dead or the month's budget spent.
        """
        schema = strict_schema(answer)
        key = await asyncio.to_thread(self._key, messages, schema)
        cached = await asyncio.to_thread(self.cache.get, key)
        if cached is not None and (kept := _parse(cached.content, answer, requirement)[0]) is not None:
            return ModelAnswer(kept, Cost(), cached.mode, cached.temperature)
        capabilities, cost = await self.probe()
        talk, said, problem = list(messages), "", _Problem(FailureKind.MODEL_ANSWER, "")
        for _ in range(_ASKED):
            reply, capabilities, price = await self._send(talk, answer.__name__, schema, cost, capabilities)
            self.endpoint.capabilities = capabilities
            cost += price
            parsed, problem = _judge(reply, answer, requirement)
            if parsed is not None:
                note_answer(SYSTEM)
                completion = self._completion(key, reply.content, cost, capabilities)
                await asyncio.to_thread(self.cache.put, completion)
                return ModelAnswer(parsed, cost, completion.mode, completion.temperature)
            said = reply.refusal or reply.content
            talk = [*messages, *_correction(reply, problem)]
        failure = self._useless(said, problem)
        failure.cost = cost
        raise failure

    async def probe(self) -> tuple[Capabilities, Cost]:
        """Return the endpoint's capabilities, probed once for its address and this model, and the cost.

        Raises as `ask`, and OutsideSystemError when no form of question brings an answer.
        """
        async with self._probing:
            if self.endpoint.capabilities is not None:
                return self.endpoint.capabilities, Cost()
            key = probe_key(self.endpoint.place, self.name)
            kept = await asyncio.to_thread(self.cache.get, key)
            if kept is not None:
                self.endpoint.capabilities = Capabilities.model_validate_json(kept.content)
                return self.endpoint.capabilities, Cost()
            spent = Cost()

            async def ask(capabilities: Capabilities) -> tuple[Reply, Capabilities]:
                nonlocal spent
                reply, understood, price = await self._send(
                    QUESTION, Probe.__name__, strict_schema(Probe), spent, capabilities
                )
                spent += price
                return reply, understood

            probed = await probe(ask, self.endpoint.place)
            self.endpoint.capabilities = probed.capabilities
            if probed.is_certain:
                content = probed.capabilities.model_dump_json()
                await asyncio.to_thread(self.cache.put, self._completion(key, content, spent, probed.capabilities))
            return probed.capabilities, spent

    def _useless(self, said: str, problem: _Problem) -> ItemFailure:
        what = f"{self.name} gave no usable answer in {_ASKED} attempts"
        why = f"{problem.text}; it said: {said[:_BEGINNING]!r}"
        remedy = "Run again to ask again, or use another LLM_MODEL"
        if problem.kind is FailureKind.MODEL_ANSWER:
            return SuspectedOutage(SYSTEM, problem.kind, what, why=why, remedy=remedy, log_tail=said)
        return ItemFailure(problem.kind, what, why=why, remedy=remedy, log_tail=said)

    async def answer(self, instructions: str, material: str, form: type[Answer]) -> tuple[Answer, Cost]:
        """Return the answer of `ask` to *instructions* about *material*, which was written by others."""
        messages = [Message(role="system", content=instructions), Message(role="user", content=material)]
        answered = await self.ask(messages, form)
        return answered.answer, answered.cost

    async def _send(
        self,
        messages: Sequence[Message],
        name: str,
        schema: dict[str, Any],
        so_far: Cost,
        capabilities: Capabilities,
    ) -> tuple[Reply, Capabilities, Cost]:
        size = sum(len(message.content) for message in messages)
        worst = self.prices.cost(size // _CHARACTERS_PER_TOKEN, self.endpoint.max_tokens)
        spent = Cost()

        def charge(cost: Cost) -> None:
            nonlocal spent
            spent += cost
            self.budget.charge(cost)

        def lose(timed_out: bool) -> None:
            # the cost of a late answer is unknown, and it is paid for anyway
            charge(worst if timed_out else Cost(model_calls=1))
            self.budget.require_left()

        async with self.budget.hold(worst):
            try:
                reply, understood = await self.endpoint.send(messages, name, schema, lose, capabilities)
                # an endpoint that reports no usage must not escape the budget
                tokens_in = reply.tokens_in or size // _CHARACTERS_PER_TOKEN
                tokens_out = reply.tokens_out or len(reply.content or reply.refusal) // _CHARACTERS_PER_TOKEN
                charge(self.prices.cost(tokens_in, tokens_out))
            except ItemFailure as failure:
                failure.cost = so_far + spent
                raise
            finally:
                if self.book is not None and spent != Cost():
                    booked = await asyncio.to_thread(self.book, spent)
                    if booked is not None:
                        self.budget.learn(booked)
        return reply, understood, spent

    def _key(self, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        question = [
            self.name,
            [message.model_dump() for message in messages],
            schema,
            {"max_tokens": self.endpoint.max_tokens, "temperature": self.endpoint.temperature},
        ]
        return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()

    def _completion(self, key: str, content: str, cost: Cost, capabilities: Capabilities) -> Completion:
        return Completion(
            key=key,
            model=self.name,
            content=content,
            mode=capabilities.mode,
            temperature=self.endpoint.temperature if capabilities.takes_temperature else None,
            tokens_in=cost.tokens_in,
            tokens_out=cost.tokens_out,
            dollars=cost.dollars,
        )


def strict_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of *answer* in the strict form that OpenAI's endpoints ask for."""
    from openai import pydantic_function_tool

    return dict(pydantic_function_tool(answer)["function"]["parameters"])


@dataclass(frozen=True)
class _Problem:
    """Why an answer is unusable."""

    kind: FailureKind
    text: str


def _judge(
    reply: Reply, answer: type[Answer], requirement: Requirement[Answer] | None
) -> tuple[Answer | None, _Problem]:
    if reply.refusal:
        return None, _Problem(FailureKind.MODEL_ANSWER, "it declined")
    if reply.cut:
        return None, _Problem(FailureKind.MODEL_ANSWER, "it was cut at the limit of tokens, LLM_MAX_TOKENS")
    if not reply.content:
        return None, _Problem(FailureKind.MODEL_ANSWER, "it was empty")
    return _parse(reply.content, answer, requirement)


def _parse(
    content: str, answer: type[Answer], requirement: Requirement[Answer] | None
) -> tuple[Answer | None, _Problem]:
    try:
        parsed = answer.model_validate_json(content)
    except ValidationError as error:
        return None, _Problem(FailureKind.MODEL_ANSWER, first_fault(error))
    if requirement is not None and (objection := requirement.objection(parsed)):
        return None, _Problem(requirement.kind, objection)
    return parsed, _Problem(FailureKind.MODEL_ANSWER, "")


def _correction(reply: Reply, problem: _Problem) -> list[Message]:
    said = [Message(role="assistant", content=reply.content[:_BEGINNING])] if reply.content else []
    again = (
        f"That is no valid answer ({problem.text}). Answer again, with nothing but the JSON object that was asked for."
    )
    return [*said, Message(role="user", content=again)]
