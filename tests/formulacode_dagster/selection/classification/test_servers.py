"""Each kind of server in the sandbox's table is understood, and what it does to an answer is undone."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from formulacode_dagster.models.completion import OutputMode
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.backoff import Backoff
from formulacode_dagster.selection.classification.budget import Prices, TokenBudget
from formulacode_dagster.selection.classification.endpoint import ModelRetries, OpenAIEndpoint
from formulacode_dagster.selection.classification.language_model import LanguageModel, ModelAnswer
from formulacode_dagster.selection.classification.prompts import Judgement
from formulacode_dagster.selection.classification.requests import Capabilities, Message, TokenField
from sandbox.model.app import MODEL, app
from sandbox.model.faults import Fault, ModelFaults
from sandbox.server import serving
from tests.support.asked_model import MemoryCache
from tests.support.model_servers import SERVERS, PeculiarServer

OLD = TokenField.MAX_TOKENS
UNDERSTOOD = {
    "openai": Capabilities(),
    "openai-reasoning": Capabilities(takes_temperature=False),
    "azure": Capabilities(),
    "openrouter": Capabilities(),
    "gateway": Capabilities(),
    "mistral": Capabilities(token_field=OLD),
    "vllm-reasoning": Capabilities(),
    "sglang-without-parser": Capabilities(),
    "template-that-opens-the-thought": Capabilities(),
    "llama.cpp": Capabilities(mode=OutputMode.JSON_OBJECT, token_field=OLD),
    "ollama": Capabilities(),
    "ollama-cloud": Capabilities(mode=OutputMode.JSON_OBJECT),
    "deepseek": Capabilities(mode=OutputMode.JSON_OBJECT, token_field=OLD),
    "lm-studio": Capabilities(),
    "tools-alone": Capabilities(mode=OutputMode.TOOLS),
    "chat-alone": Capabilities(mode=OutputMode.PLAIN, token_field=OLD),
}
NO_FORM = {"prose-alone"}
MODERATING = ("azure", "openrouter", "gateway")


def model_at(url: str, cache: MemoryCache, capabilities: Capabilities | None = None) -> LanguageModel:
    endpoint = OpenAIEndpoint(
        base_url=f"{url}/v1",
        api_key="key",
        model=MODEL,
        max_tokens=300,
        temperature=0.5,
        capabilities=capabilities,
        timeout_seconds=20.0,
        retries=ModelRetries(backoff=Backoff(first_seconds=0.01, longest_seconds=0.02)),
    )
    return LanguageModel(endpoint, cache=cache, budget=TokenBudget("2026-02"), prices=Prices())


def question(title: str) -> list[Message]:
    material = f"<title>\n{title}\n</title>\n<body>\n</body>\n<patch>\n</patch>"
    return [Message(role="system", content="Judge."), Message(role="user", content=material)]


async def ask(model: LanguageModel, *titles: str) -> list[ModelAnswer[Judgement] | BaseException]:
    try:
        asked = (model.ask(question(title), Judgement) for title in titles)
        return await asyncio.gather(*asked, return_exceptions=True)
    finally:
        await model.close()


def probes(url: str) -> int:
    return int(httpx.get(f"{url}/_sandbox/calls").json()["probes"])


def test_every_server_of_the_table_is_tried() -> None:
    assert SERVERS.keys() == UNDERSTOOD.keys() | NO_FORM


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_a_server_is_understood_and_its_answer_read(name: str) -> None:
    cache = MemoryCache()
    with serving(app(server=SERVERS[name])) as url:
        model = model_at(url, cache)
        (answered,) = asyncio.run(ask(model, "Faster merge"))
    assert isinstance(answered, ModelAnswer), answered
    assert model.endpoint.capabilities == UNDERSTOOD[name]
    assert answered.answer.is_performance
    assert answered.mode is UNDERSTOOD[name].mode
    assert answered.temperature == (0.5 if UNDERSTOOD[name].takes_temperature else None)
    assert len(cache.kept) == 2, "of the probe and of the question"


def test_a_server_without_any_usable_form_stops_the_stage_with_details() -> None:
    with serving(app(server=SERVERS["prose-alone"])) as url:
        (error,) = asyncio.run(ask(model_at(url, MemoryCache()), "Faster merge"))
        assert probes(url) == len(OutputMode)
    assert isinstance(error, OutsideSystemError)
    assert all(f"{mode}: " in str(error) for mode in OutputMode)


def test_the_probe_runs_once_for_an_address_and_a_model() -> None:
    cache = MemoryCache()
    with serving(app(server=SERVERS["llama.cpp"])) as url:
        asyncio.run(ask(model_at(url, cache), "Faster one", "Faster two", "Faster three"))
        first = probes(url)
        again = model_at(url, cache)
        asyncio.run(ask(again, "Faster four"))
        assert probes(url) == first == 6, "in each of three modes the field is swapped; two modes it refuses"
        assert again.endpoint.capabilities == UNDERSTOOD["llama.cpp"]
    with serving(app()) as elsewhere:
        asyncio.run(ask(model_at(elsewhere, cache), "Faster five"))
        assert probes(elsewhere) == 1


def test_what_the_probe_costs_is_of_the_question_that_needed_it() -> None:
    with serving(app()) as url:
        model = model_at(url, MemoryCache())
        (answered,) = asyncio.run(ask(model, "Faster merge"))
    assert isinstance(answered, ModelAnswer)
    assert answered.cost.model_calls == 2
    assert model.budget.spent == answered.cost


def test_a_server_that_changes_its_mind_is_followed() -> None:
    with serving(app(server=SERVERS["mistral"])) as url:
        model = model_at(url, MemoryCache(), Capabilities())
        answers = asyncio.run(ask(model, "Faster merge"))
        assert httpx.get(f"{url}/_sandbox/calls").json()["chat_completions"] == 2
    assert isinstance(answers[0], ModelAnswer)
    assert model.endpoint.capabilities == Capabilities(token_field=OLD)


def test_a_server_that_takes_neither_field_refuses_the_request() -> None:
    with serving(app(server=PeculiarServer(token_fields=frozenset()))) as url:
        (failure,) = asyncio.run(ask(model_at(url, MemoryCache(), Capabilities()), "Faster merge"))
        assert httpx.get(f"{url}/_sandbox/calls").json()["chat_completions"] == 2
    assert isinstance(failure, ItemFailure)
    assert failure.kind is FailureKind.MODEL_REQUEST


@pytest.mark.parametrize("name", MODERATING)
def test_one_moderated_text_is_its_items_failure_and_no_other_ones(name: str) -> None:
    with serving(app(server=SERVERS[name])) as url:
        outcomes = asyncio.run(
            ask(model_at(url, MemoryCache()), "Faster fruit", "A faster forbidden fruit", "Faster merge")
        )
    assert [type(outcome) for outcome in (outcomes[0], outcomes[2])] == [ModelAnswer, ModelAnswer]
    assert isinstance(outcomes[1], ItemFailure)
    assert outcomes[1].kind is FailureKind.MODERATED
    # unless it is said to be for the text, it may be for the key
    assert isinstance(outcomes[1], SuspectedOutage) is (name == "gateway")


def test_a_403_before_any_answer_is_for_the_key() -> None:
    with serving(app(server=SERVERS["gateway"])) as url:
        (error,) = asyncio.run(ask(model_at(url, MemoryCache(), Capabilities()), "A faster forbidden fruit"))
    assert isinstance(error, OutsideSystemError)
    assert "LLM_API_KEY" in str(error)


def test_an_empty_answer_is_asked_for_again_and_never_a_no() -> None:
    faults = ModelFaults(every=Fault.EMPTY)
    with serving(app(faults, server=SERVERS["deepseek"])) as url:
        (failure,) = asyncio.run(ask(model_at(url, MemoryCache()), "Faster merge"))
        assert httpx.get(f"{url}/_sandbox/calls").json()["chat_completions"] == 2
    assert isinstance(failure, ItemFailure)
    assert failure.kind is FailureKind.MODEL_ANSWER
    assert "it was empty" in str(failure)
