"""The model answers garbage, 429, 500, or never: no verdict is requested again, and the next run finishes."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.items import ItemState, Stage
from sandbox.model.app import MODEL
from sandbox.model.faults import Fault, ModelFaults

CANDIDATES = 18
JUDGED = {ItemState.DONE: 14, ItemState.REJECTED: 8}

pytestmark = [pytest.mark.slow, pytest.mark.variant("fault of a model in a month", most=3)]


def seeded_platform(seeded):
    return seeded(Stage.REPOSITORIES, Stage.PULL_REQUESTS)


@pytest.mark.variant("useless answer of a model", most=1)
@pytest.mark.parametrize("fault", [Fault.GARBAGE, Fault.REFUSAL])
def test_a_useless_answer_fails_only_its_item_and_is_retried(seeded, fault) -> None:
    platform = seeded_platform(seeded)
    with platform.serve(model_faults=ModelFaults(by_call={1: fault, 2: fault})) as served:
        first = platform.run(Stage.CLASSIFICATIONS, concurrency=1)
        assert served.calls("model") == CANDIDATES + 1
    assert first.succeeded, first.text
    (failed,) = [entry for entry in platform.entries(Stage.CLASSIFICATIONS).values() if entry.state is ItemState.FAILED]
    assert failed.reason == "model_answer"
    assert "gave no usable answer in 2 attempts" in failed.detail
    assert failed.cost.tokens_in > 0, "what was paid for nothing is on the books"
    with platform.serve() as served:
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
        assert served.calls("model") == 1
    assert platform.states(Stage.CLASSIFICATIONS) == JUDGED
    assert platform.entries(Stage.CLASSIFICATIONS)[failed.item].attempt == 2


def test_a_busy_model_is_waited_for_and_nothing_is_lost(seeded) -> None:
    platform = seeded_platform(seeded)
    busy = dict.fromkeys((2, 3, 9), Fault.RATE_LIMITED) | {14: Fault.SERVER_ERROR}
    with platform.serve(model_faults=ModelFaults(by_call=busy, retry_after_seconds=0.1)) as served:
        said = platform.run(Stage.CLASSIFICATIONS)
        assert served.calls("model") == CANDIDATES + len(busy)
    assert said.succeeded, said.text
    assert platform.states(Stage.CLASSIFICATIONS) == JUDGED


def test_a_model_without_sense_stops_the_stage_and_fails_no_item(seeded) -> None:
    platform = seeded_platform(seeded)
    with platform.serve(model_faults=ModelFaults(every=Fault.GARBAGE)) as served:
        said = platform.run(Stage.CLASSIFICATIONS, concurrency=1)
        assert served.calls("model") < CANDIDATES * 2
    assert not said.succeeded
    said.tells("failed: classifications: llm: ", "gave no usable answer in 2 attempts")
    assert platform.states(Stage.CLASSIFICATIONS).keys() == {ItemState.REJECTED}
    with platform.serve() as served:
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
        assert served.calls("model") == CANDIDATES
    assert platform.states(Stage.CLASSIFICATIONS) == JUDGED


def test_a_model_that_only_answers_500_stops_the_stage_and_keeps_verdicts(seeded) -> None:
    platform = seeded_platform(seeded)
    good = 4
    with platform.serve(
        model_faults=ModelFaults(by_call=dict.fromkeys(range(good + 1, 200), Fault.SERVER_ERROR))
    ) as served:
        said = platform.run(Stage.CLASSIFICATIONS, concurrency=32)
        assert served.calls("model") < 100
    assert not said.succeeded
    said.tells("failed: classifications: llm: ", "HTTP 500")
    assert ItemState.FAILED not in platform.states(Stage.CLASSIFICATIONS), "it is not the items' failure"
    assert said.text.splitlines()[-1].startswith("To know more: fc-data ")
    assert len(said.complaints) == 1
    assert platform.count("classifications") == good
    with platform.serve() as served:
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
        assert served.calls("model") == CANDIDATES - good
    assert platform.states(Stage.CLASSIFICATIONS) == JUDGED


def test_a_used_up_credit_stops_the_stage_at_once(seeded) -> None:
    platform = seeded_platform(seeded)
    with platform.serve(model_faults=ModelFaults(every=Fault.OUT_OF_QUOTA)) as served:
        said = platform.run(Stage.CLASSIFICATIONS, concurrency=1)
        assert served.calls("model") == 1
    assert not said.succeeded
    said.tells("says the credit of this key is used up", "Add credit")
    with platform.serve():
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
    assert platform.states(Stage.CLASSIFICATIONS) == JUDGED


def test_a_question_without_an_answer_fails_with_timeout(seeded) -> None:
    platform = seeded_platform(seeded)
    platform.settings["LLM_SECONDS"] = "1"
    with platform.serve(model_faults=ModelFaults(by_call={1: Fault.HANG, 2: Fault.HANG})) as served:
        said = platform.run(Stage.CLASSIFICATIONS, concurrency=1)
        assert served.calls("model") == CANDIDATES + 1
    assert said.succeeded, said.text
    (failed,) = [entry for entry in platform.entries(Stage.CLASSIFICATIONS).values() if entry.state is ItemState.FAILED]
    assert failed.reason == "timeout"
    assert "no answer within 1 s" in failed.detail
    with platform.serve() as served:
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
        assert served.calls("model") == 1
    assert platform.states(Stage.CLASSIFICATIONS) == JUDGED


def test_a_model_that_is_not_there_is_said_to_be_unreachable(seeded) -> None:
    platform = seeded_platform(seeded)
    with platform.serve():
        platform.settings["LLM_BASE_URL"] = "http://127.0.0.1:9/v1"
        said = platform.run(Stage.CLASSIFICATIONS)
        assert not said.succeeded
        said.tells("http://127.0.0.1:9/v1 cannot be reached", "Check LLM_BASE_URL")
        screened = platform.states(Stage.CLASSIFICATIONS)
        assert screened[ItemState.REJECTED] > 0, "what needs no model is decided all the same"
    with platform.serve() as served:
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
        assert served.calls("model") == CANDIDATES
    assert platform.states(Stage.CLASSIFICATIONS) == JUDGED


def test_a_stage_is_tried_once_more_by_itself_when_that_is_set(seeded) -> None:
    platform = seeded_platform(seeded)
    platform.settings["FC_RETRY_SECONDS"] = "1"
    with platform.serve(model_faults=ModelFaults(by_call={1: Fault.OUT_OF_QUOTA})):
        said = platform.run(Stage.CLASSIFICATIONS, concurrency=1)
    assert said.succeeded, said.text
    assert platform.states(Stage.CLASSIFICATIONS) == JUDGED


def test_what_is_judged_is_asked_about_again_by_request_alone(seeded) -> None:
    platform = seeded_platform(seeded)
    platform.settings["FC_CLASSIFICATION_JUDGE"] = MODEL
    with platform.serve() as served:
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
        asked = served.calls("model")
        assert asked >= CANDIDATES + JUDGED[ItemState.DONE], "each yes is judged twice"
        assert platform.run(Stage.CLASSIFICATIONS, force=True).succeeded
        assert served.calls("model") == asked
        assert platform.run(Stage.CLASSIFICATIONS, force=True, reask=True).succeeded
        assert served.calls("model") == 2 * asked
    assert platform.states(Stage.CLASSIFICATIONS) == JUDGED
