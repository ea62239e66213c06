"""Cost of a model's calls: it is always recorded, and a month's budget is never passed."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.items import Cost
from formulacode_dagster.selection.classification.budget import Prices, TokenBudget
from formulacode_dagster.selection.classification.language_model import ModelAnswer
from formulacode_dagster.selection.classification.prompts import Judgement
from sandbox.model.faults import Fault, ModelFaults
from tests.support.asked_model import ask_once, model_at, question, sandbox


@pytest.mark.parametrize(
    ("budget", "setting"),
    [
        (TokenBudget("2026-02", tokens=1000, spent=Cost(tokens_in=950)), "LLM_TOKENS_PER_MONTH"),
        (TokenBudget("2026-02", dollars=1.0, spent=Cost(dollars=0.9999)), "LLM_DOLLARS_PER_MONTH"),
    ],
)
def test_a_spent_budget_stops_the_stage_before_the_call(budget: TokenBudget, setting: str) -> None:
    with sandbox() as (url, calls):
        with pytest.raises(OutsideSystemError, match=rf"budget of 2026-02 is spent.*Raise {setting}"):
            asyncio.run(ask_once(url, budget=budget, prices=Prices(dollars_per_million_out=10.0)))
        assert calls() == 0


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.SERVER_ERROR, Fault.GARBAGE])
def test_what_is_spent_for_nothing_is_booked_and_counts_in_the_budget(fault: Fault) -> None:
    booked: list[Cost] = []
    budget = TokenBudget("2026-02")
    with sandbox(ModelFaults(every=fault)) as (url, calls):
        with pytest.raises(ItemFailure) as caught:
            asyncio.run(ask_once(url, budget=budget, book=booked.append, timeout_seconds=0.3))
        assert caught.value.cost.model_calls == calls()
    assert Cost.total(booked) == budget.spent == caught.value.cost
    # an answer that came too late was worked on, one that never began was not
    assert (budget.spent.tokens_in > 0) is (fault is not Fault.SERVER_ERROR)
    assert budget.spent.tokens_out == (2 * 200 if fault is Fault.HANG else budget.spent.tokens_out)


def test_a_call_that_is_broken_off_is_booked_at_its_worst() -> None:
    async def broken_off(url: str, calls: Callable[[], int]) -> None:
        async with model_at(url, budget=budget, book=booked.append) as model:
            asked = asyncio.create_task(model.ask(question(), Judgement))
            for _ in range(1000):
                if await asyncio.to_thread(calls):
                    break
                await asyncio.sleep(0.01)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked

    booked: list[Cost] = []
    budget = TokenBudget("2026-02", tokens=1000)
    with sandbox(ModelFaults(every=Fault.HANG)) as (url, calls):
        asyncio.run(broken_off(url, calls))
    assert Cost.total(booked) == budget.spent
    assert (budget.spent.model_calls, budget.spent.tokens_out) == (1, 200)


@contextmanager
def dropping() -> Iterator[tuple[str, list[bytes]]]:
    """An endpoint that reads each request and closes the connection, and what it has read."""
    read: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    read.append(connection.recv(1 << 20))

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1", read
        finally:
            server.shutdown(socket.SHUT_RDWR)


def test_a_dropped_connection_is_booked_as_a_call_that_timed_out() -> None:
    booked: list[Cost] = []
    with dropping() as (url, read):
        with pytest.raises(ItemFailure, match="no answer in 2 attempts: the connection broke") as caught:
            asyncio.run(ask_once(url, book=booked.append))
        assert len(read) == 2
    assert caught.value.kind == "timeout"
    assert Cost.total(booked) == caught.value.cost
    assert (caught.value.cost.model_calls, caught.value.cost.tokens_out) == (2, 2 * 200)


def test_what_other_runs_spend_of_the_budget_is_learnt_with_each_call() -> None:
    async def asking(url: str) -> None:
        async with model_at(url, budget=budget, book=book, prices=Prices(dollars_per_million_out=1.0)) as model:
            await model.ask(question("One"), Judgement)
            with pytest.raises(OutsideSystemError, match="dollar budget of 2026-02 is spent"):
                await model.ask(question("Two"), Judgement)

    def book(cost: Cost) -> Cost:
        # a helper has spent all the rest meanwhile
        return cost + Cost(dollars=1.0)

    budget = TokenBudget("2026-02", dollars=1.0)
    with sandbox() as (url, calls):
        asyncio.run(asking(url))
        assert calls() == 1


def test_calls_that_time_out_use_up_the_budget_and_stop_the_stage() -> None:
    budget = TokenBudget("2026-02", tokens=600)
    with sandbox(ModelFaults(every=Fault.HANG)) as (url, calls):
        with pytest.raises(OutsideSystemError, match="token budget of 2026-02 is spent"):
            asyncio.run(ask_once(url, budget=budget, timeout_seconds=0.3, max_tokens=400))
        assert calls() == 1


def test_concurrent_calls_never_pass_the_budget_and_use_all_of_it() -> None:
    async def many(url: str, budget: TokenBudget) -> list[object]:
        async with model_at(url, budget=budget, max_tokens=500) as model:
            asked = [model.ask(question(f"Faster {n}"), Judgement) for n in range(20)]
            return await asyncio.gather(*asked, return_exceptions=True)

    with sandbox() as (url, _):
        budget = TokenBudget("2026-02", tokens=1500)
        outcomes = asyncio.run(many(url, budget))
    spent = budget.spent.tokens_in + budget.spent.tokens_out
    assert 1500 - 600 < spent <= 1500
    assert {type(outcome) for outcome in outcomes} == {ModelAnswer, OutsideSystemError}
