from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import ExitStack

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from formulacode_dagster.models.completion import Completion
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.items import Cost
from formulacode_dagster.operating.cancellation.last_answers import has_answered_since
from formulacode_dagster.selection.classification.budget import Prices, TokenBudget
from formulacode_dagster.selection.classification.prompts import Judgement
from sandbox.model.app import app
from sandbox.model.faults import Fault, ModelFaults
from sandbox.server import serving
from tests.support.asked_model import KEY, QUICK, MemoryCache, ask_once, model_at, question, sandbox


def test_an_answer_is_typed_and_accounted() -> None:
    with sandbox() as (url, _):
        prices = Prices(dollars_per_million_in=1.0, dollars_per_million_out=2.0)
        budget = TokenBudget("2026-02", dollars=1.0)
        answer, cost = asyncio.run(ask_once(url, prices=prices, budget=budget))
    assert answer.is_performance
    assert cost.model_calls == 1
    assert cost.tokens_in > 0
    assert cost.dollars == pytest.approx((cost.tokens_in + 2 * cost.tokens_out) / 1_000_000)
    assert budget.spent == cost


def test_a_question_may_name_a_file_whose_name_is_no_text() -> None:
    async def ask(url: str) -> Cost:
        async with model_at(url) as model:
            return (await model.ask(question("caf\udce9.py is slow"), Judgement)).cost

    with sandbox() as (url, calls):
        assert asyncio.run(ask(url)).model_calls == calls() == 1


def test_nothing_is_paid_for_twice_even_by_another_client() -> None:
    with sandbox() as (url, calls):
        cache, begun = MemoryCache(), time.monotonic()
        first, _ = asyncio.run(ask_once(url, cache=cache))
        answered = time.monotonic()
        second, cost = asyncio.run(ask_once(url, cache=cache, budget=TokenBudget("2026-02", tokens=0)))
        assert calls() == 1
    # a cached answer says nothing about the endpoint's health
    assert has_answered_since("llm", begun)
    assert not has_answered_since("llm", answered)
    assert second == first
    assert cost == Cost()


@pytest.mark.parametrize(
    "fault", [Fault.GARBAGE, Fault.TRUNCATED, Fault.LENGTH, Fault.WRONG_SCHEMA, Fault.REFUSAL, Fault.EMPTY]
)
def test_a_useless_answer_is_asked_for_again_and_both_are_paid(fault: Fault) -> None:
    with sandbox(ModelFaults(by_call={1: fault})) as (url, calls):
        answer, cost = asyncio.run(ask_once(url))
        assert calls() == 2
    assert answer.is_performance
    assert cost.model_calls == 2


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault.GARBAGE, "Well, it depends"),
        (Fault.TRUNCATED, "sandbox rule"),
        (Fault.LENGTH, "LLM_MAX_TOKENS"),
        (Fault.WRONG_SCHEMA, "category"),
        (Fault.REFUSAL, "I would rather not say"),
        (Fault.EMPTY, "it was empty"),
    ],
)
def test_a_second_useless_answer_fails_with_a_quote_and_is_not_cached(fault: Fault, said: str) -> None:
    cache = MemoryCache()
    with sandbox(ModelFaults(every=fault)) as (url, calls):
        with pytest.raises(ItemFailure, match=said) as caught:
            asyncio.run(ask_once(url, cache=cache))
        assert calls() == 2
    assert caught.value.kind == "model_answer"
    assert caught.value.cost.model_calls == 2
    assert not cache.kept


@pytest.mark.slow
def test_retry_after_is_honoured_by_all_questions_and_heard_of() -> None:
    heard: list[str] = []

    async def two(url: str) -> None:
        async with model_at(url, on_wait=heard.append) as model:
            first = asyncio.create_task(model.ask(question("One faster"), Judgement))
            await asyncio.sleep(0.3)
            await asyncio.gather(first, model.ask(question("Two faster"), Judgement))

    with sandbox(ModelFaults(by_call={1: Fault.RATE_LIMITED}, retry_after_seconds=1.5)) as (url, calls):
        started = time.monotonic()
        asyncio.run(two(url))
        assert time.monotonic() - started >= 1.4
        assert calls() == 3
    assert heard == ["the model answers HTTP 429; waiting 2 s"]


def test_a_server_error_is_retried() -> None:
    with sandbox(ModelFaults(by_call={1: Fault.SERVER_ERROR, 2: Fault.SERVER_ERROR})) as (url, calls):
        answer, cost = asyncio.run(ask_once(url))
        assert calls() == 3
    assert answer.is_performance
    assert cost.model_calls == 3, "each call counts"


def test_waiting_for_a_limit_is_no_failed_attempt() -> None:
    busy = dict.fromkeys(range(1, 7), Fault.RATE_LIMITED)
    with sandbox(ModelFaults(by_call=busy, retry_after_seconds=0.01)) as (url, calls):
        answer, _ = asyncio.run(ask_once(url))
        assert calls() == 7
    assert answer.is_performance


def test_retries_end_in_a_failure_of_the_item() -> None:
    with sandbox(ModelFaults(every=Fault.SERVER_ERROR)) as (url, calls):
        with pytest.raises(ItemFailure, match="no answer in 4 attempts: HTTP 500") as caught:
            asyncio.run(ask_once(url))
        assert calls() == 4
    assert caught.value.kind == "model_answer"


def test_a_model_that_never_answers_is_a_timeout_of_the_item() -> None:
    with sandbox(ModelFaults(every=Fault.HANG)) as (url, calls):
        with pytest.raises(ItemFailure, match=r"no answer within 0\.3 s") as caught:
            asyncio.run(ask_once(url, timeout_seconds=0.3))
        assert calls() == 2
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.HANG, Fault.BAD_REQUEST])
def test_an_endpoint_that_answers_nobody_stops_the_stage(fault: Fault) -> None:
    async def many(url: str) -> list[BaseException | object]:
        async with model_at(url, timeout_seconds=0.1, retries=QUICK) as model:
            asked = [model.ask(question(f"Faster {n}"), Judgement) for n in range(5)]
            return await asyncio.gather(*asked, return_exceptions=True)

    with sandbox(ModelFaults(every=fault)) as (url, _):
        outcomes = asyncio.run(many(url))
    assert [type(outcome) for outcome in outcomes].count(SuspectedOutage) == 4
    (dead,) = (outcome for outcome in outcomes if isinstance(outcome, OutsideSystemError))
    assert "did not answer the last 5 questions" in str(dead)
    assert dead.system == "llm"


def test_a_request_the_endpoint_refuses_fails_its_item_for_good() -> None:
    with sandbox(ModelFaults(by_call={1: Fault.BAD_REQUEST})) as (url, calls):
        with pytest.raises(ItemFailure, match="maximum context length") as caught:
            asyncio.run(ask_once(url))
        assert calls() == 1
    assert caught.value.kind == "model_request"


def test_a_dead_endpoint_stops_the_stage() -> None:
    refused = r"cannot be reached \(4 attempts in a row\).*LLM_BASE_URL"
    with socket.socket() as closed:
        # bound, so that no other process listens there, and not listening
        closed.bind(("127.0.0.1", 0))
        url = f"http://someone:hidden@127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(OutsideSystemError, match=refused) as caught:
            asyncio.run(ask_once(url))
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("faults", "settings", "message"),
    [
        (None, {"api_key": "another-secret"}, r"refuses the API key \(HTTP 401\).*LLM_API_KEY"),
        (None, {"model": "gpt-0"}, "has no model 'gpt-0'.*LLM_MODEL"),
        (ModelFaults(every=Fault.OUT_OF_QUOTA), {}, "credit of this key is used up"),
        (ModelFaults(every=Fault.RATE_LIMITED, retry_after_seconds=86_400), {}, "a pause of 86,400 s"),
    ],
)
def test_what_no_retry_cures_stops_the_stage_at_once(
    faults: ModelFaults | None, settings: dict[str, object], message: str
) -> None:
    with serving(app(faults, api_key=KEY)) as url:
        with pytest.raises(OutsideSystemError, match=message) as caught:
            asyncio.run(ask_once(url, **settings))
        assert httpx.get(f"{url}/_sandbox/calls").json()["chat_completions"] <= 1
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"api_key": ""}, "LLM_API_KEY missing.*LLM_BASE_URL"),
        ({"model": " "}, "LLM_MODEL missing"),
        ({"api_key": "", "model": ""}, "LLM_API_KEY and LLM_MODEL missing"),
        ({"base_url": "localhost:1"}, "LLM_BASE_URL is 'localhost:1'"),
        ({"budget": TokenBudget("2026-02", dollars=5.0)}, "LLM_DOLLARS_PER_MONTH is set, but no price"),
    ],
)
def test_missing_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        asyncio.run(ask_once("http://127.0.0.1:1", **settings))


@pytest.mark.parametrize(
    "body",
    [
        PlainTextResponse("<html>a gateway says hello</html>", media_type="text/html"),
        Response('{"choices": [', media_type="application/json"),
        Response(json.dumps({"choices": []}), media_type="application/json"),
        Response(json.dumps({"choices": [{"finish_reason": "stop"}]}), media_type="application/json"),
    ],
)
def test_an_answer_that_is_no_completion_at_all_is_a_failure_of_the_item(body: Response) -> None:
    async def answer(request: Request) -> Response:
        return body

    with ExitStack() as stack:
        url = stack.enter_context(serving(Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])))
        with pytest.raises(ItemFailure) as caught:
            asyncio.run(ask_once(url))
    assert caught.value.kind == "model_answer"


def test_the_cache_is_asked_off_the_event_loop() -> None:
    asked, answers = threading.Event(), threading.Event()

    class SlowCache(MemoryCache):
        def get(self, key: str) -> Completion | None:
            asked.set()
            assert answers.wait(30), "the loop stood still meanwhile"
            return super().get(key)

    async def ask_and_go_on(url: str) -> None:
        async with model_at(url, cache=SlowCache()) as model:
            asking = asyncio.create_task(model.ask(question(), Judgement))
            await asyncio.to_thread(asked.wait)
            answers.set()
            await asking

    with sandbox() as (url, _):
        asyncio.run(ask_and_go_on(url))
