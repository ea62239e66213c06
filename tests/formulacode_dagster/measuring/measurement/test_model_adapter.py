"""The writer of benchmarks, asked from a thread over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from types import SimpleNamespace

import pytest

from formulacode_dagster.measuring.measurement.model_adapter import SyncModelAdapter, with_cost
from formulacode_dagster.measuring.measurement.stage import MeasurementTools
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.reasons import FailureKind, RejectionReason
from formulacode_dagster.operating.cancellation.loops import in_thread, run_loop
from formulacode_dagster.operating.cancellation.stopping import Stopped, interrupted_once, signals_heard
from formulacode_dagster.operating.runner.work import Outcome
from formulacode_dagster.selection.prompting.sections import sectioned
from resources.defaults import default_resources
from sandbox.model.app import MODEL, app
from sandbox.server import serving
from tests.support.asked_model import MemoryCache

SOON = 60.0
FUNCTIONS = json.dumps([{"module": "pkg.core", "name": "total", "arguments": ["n", "values"]}])


@pytest.fixture
def drafted(monkeypatch):
    """Output of the model of FC_WORKLOAD_WRITER, and its cost, twice; None without one."""

    async def ask(booked, name):
        llm = default_resources()["llm"]
        tools = MeasurementTools(None, None, None, None, models=llm.models(MemoryCache()), writer=name)
        account = SimpleNamespace(month="2026-02", spent=Cost, book=booked.append, note=print)
        async with tools.connected_writer(account) as model:
            if model is None:
                return None
            loop = asyncio.get_running_loop()
            writers = [SyncModelAdapter(model, loop) for _ in range(2)]
            material = sectioned([("functions", FUNCTIONS)])
            drafts = [await in_thread(writer.draft, "Write.", material) for writer in writers]
            return writers, drafts

    def run(name):
        booked = []
        with serving(app()) as url:
            variables = {"LLM_BASE_URL": f"{url}/v1", "LLM_API_KEY": "any", "FC_WORKLOAD_WRITER": name}
            for variable, value in variables.items():
                monkeypatch.setenv(variable, value)
            return asyncio.run(ask(booked, name)), booked

    return run


def test_a_thread_gets_the_models_draft_and_nothing_is_paid_for_twice(drafted):
    (writers, drafts), booked = drafted(MODEL)
    assert [writer.name for writer in writers] == [MODEL, MODEL]
    assert drafts[0] == drafts[1]
    assert "return pkg.core.total(*self.arguments)" in drafts[0].code
    assert "(size, list(range(size)),)" in drafts[0].code
    assert [writer.cost.model_calls for writer in writers] == [2, 0], "the endpoint is probed for the first"
    assert [cost.model_calls for cost in booked] == [1, 1]


class Thinking:
    """A model that never answers."""

    name = "thinking"

    def __init__(self):
        self.asked, self.given_up = threading.Event(), threading.Event()

    async def answer(self, *_):
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up.set()


def test_a_stop_ends_the_wait_for_a_draft_and_the_question_itself():
    model = Thinking()

    async def draft():
        writer = SyncModelAdapter(model, asyncio.get_running_loop())
        return await in_thread(writer.draft, "Write.", "", left_after=600)

    with signals_heard() as request, interrupted_once(None):
        stopper = threading.Thread(target=lambda: model.asked.wait(SOON) and request.request())
        stopper.start()
        started = time.monotonic()
        with pytest.raises(Stopped):
            run_loop(draft())
        assert time.monotonic() - started < SOON, "it was not left behind, it ended"
        stopper.join()
    assert model.given_up.is_set()


def test_without_a_name_no_model_writes(drafted):
    assert drafted("") == (None, [])


PAID = Cost(model_calls=3, tokens_in=900, dollars=0.5)


def asked_for(price=PAID):
    return SyncModelAdapter(Thinking(), None, price)


def ending(end):
    raise end


def test_what_a_model_cost_is_told_however_the_task_ends():
    assert with_cost(asked_for(), lambda: Outcome("row", Cost(bytes=1))) == Outcome("row", PAID + Cost(bytes=1))
    rejection = Rejection(RejectionReason.NO_RELEVANT_WORKLOAD, "nothing executes it")
    rejection.log = "the log"
    assert with_cost(asked_for(), lambda: ending(rejection)) == Outcome(cost=PAID, log="the log", rejection=rejection)
    failure = ItemFailure(FailureKind.MODEL_ANSWER, "no JSON", cost=Cost(model_calls=1))
    with pytest.raises(ItemFailure) as caught:
        with_cost(asked_for(), lambda: ending(failure))
    assert caught.value is failure
    assert caught.value.cost == PAID + Cost(model_calls=1)


def test_a_draft_that_fails_costs_the_same_whether_or_not_the_task_goes_on():
    class Failing:
        name = "failing"

        async def answer(self, *_):
            raise ItemFailure(FailureKind.MODEL_ANSWER, "no JSON", cost=Cost(model_calls=2))

    async def drafted():
        writer = SyncModelAdapter(Failing(), asyncio.get_running_loop())
        with pytest.raises(ItemFailure) as caught:
            await in_thread(writer.draft, "Write.", "")
        return writer, caught.value

    writer, failure = run_loop(drafted())
    assert with_cost(writer, lambda: Outcome("row")).cost == Cost(model_calls=2)
    with pytest.raises(ItemFailure):
        with_cost(writer, lambda: ending(failure))
    assert failure.cost == Cost(model_calls=2)
