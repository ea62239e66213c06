from __future__ import annotations

from itertools import pairwise

import pytest

from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reasons import SCREENED_OUT, RejectionReason
from formulacode_dagster.operating.store.usage import UsageTotal
from formulacode_dagster.releasing.reporting.funnel import Funnel, count_funnel
from tests.formulacode_dagster.releasing.reporting.conftest import spent_on
from tests.support.entries import enter

MONTH = "2026-02"


@pytest.fixture
def funnel(ledger_of_a_month: tuple[LedgerEntry, ...], usage: tuple[UsageTotal, ...]) -> Funnel:
    return count_funnel(MONTH, ledger_of_a_month, usage, spent_on(ledger_of_a_month))


def test_every_step_counts_the_pull_requests_that_got_so_far(funnel: Funnel) -> None:
    assert {step.name: step.count for step in funnel.steps} == {
        "pull_requests": 10,
        "candidates": 7,
        "performance": 6,
        "environments": 5,
        "images": 4,
        "measured": 3,
        "faster": 2,
        "right": 2,
        # neither images published nor gradings: this month ran without Docker
        "published": 2,
    }


def test_a_step_that_does_not_apply_is_left_out_and_one_that_all_failed_stays() -> None:
    entries = [enter(Stage.MEASUREMENTS, "a/b#1"), enter(Stage.PUBLISHED_IMAGES, "a/b#1", "failed push")]
    names = [step.name for step in count_funnel(MONTH, entries).steps]
    assert "published_images" in names
    assert "gradings" in names
    entries += [enter(Stage.PUBLISHED_DATASET, "a/b#2")]
    funnel = count_funnel(MONTH, entries)
    assert "published_images" not in [step.name for step in funnel.steps]
    assert funnel.count("published_images") == 0


def test_no_speedup_is_a_measurement_and_a_timeout_is_none(funnel: Funnel) -> None:
    assert funnel.count("images") - funnel.count("measured") == 1
    missed = {loss.reason: loss.step for loss in funnel.losses if loss.stage is Stage.MEASUREMENTS}
    assert missed == {"timeout": "measured", "no_speedup": "faster"}


def test_a_faster_oracle_that_breaks_tests_is_measured_but_not_correct() -> None:
    broken = count_funnel(MONTH, [enter(Stage.MEASUREMENTS, "a/b#1", "rejected oracle_breaks_tests")])
    assert (broken.count("measured"), broken.count("faster"), broken.count("right")) == (1, 1, 0)
    assert [loss.reason for loss in broken.lost_before("right")] == ["oracle_breaks_tests"]


def test_what_each_step_lost_is_what_it_is_smaller_by(funnel: Funnel) -> None:
    by_name = {step.name: step.count for step in funnel.steps}
    chain = ["pull_requests", "candidates", "performance", "environments", "images", "measured", "faster"]
    for before, name in pairwise(chain):
        assert by_name[before] - by_name[name] == sum(loss.count for loss in funnel.lost_before(name)), name
    assert {loss.reason for loss in funnel.lost_before("candidates")} == {"title", "no_core_file", "patch_mismatch"}
    assert [loss.reason for loss in funnel.lost_before("published_images")] == ["process_engine"]


def test_repositories_and_the_release_are_no_pull_requests(funnel: Funnel) -> None:
    assert all("#" in example for loss in funnel.losses for example in loss.examples)
    assert "fork" not in {loss.reason for loss in funnel.losses}


def test_usage_of_a_run_that_failed_before_its_first_item_counts(usage: tuple[UsageTotal, ...]) -> None:
    (cost,) = count_funnel(MONTH, [], usage[:1]).costs
    assert (cost.stage, cost.cost) == (Stage.REPOSITORIES, Cost(api_points=18, api_requests=20))


def test_what_they_cost_counts_all_the_same(funnel: Funnel) -> None:
    costs = {cost.stage: cost.cost for cost in funnel.costs}
    assert costs[Stage.REPOSITORIES] == Cost(api_points=18, api_requests=20)
    assert costs[Stage.CLASSIFICATIONS].model_calls == 7
    assert funnel.cost == Cost.total(costs.values())
    assert (funnel.cost.api_points, funnel.cost.tokens_in, funnel.cost.dollars) == (99, 700, 3.5)
    assert list(costs) == [stage for stage in Stage if stage in costs]


def test_skipped_pull_requests_are_lost_but_never_counted_as_reached() -> None:
    entries = [
        enter(Stage.PULL_REQUESTS, "a/b#1"),
        enter(Stage.PULL_REQUESTS, "a/b#2", "skipped not_asked"),
        enter(Stage.CLASSIFICATIONS, "a/b#1", "skipped not_asked"),
    ]
    funnel = count_funnel(MONTH, entries)
    assert (funnel.count("pull_requests"), funnel.count("candidates"), funnel.count("performance")) == (1, 0, 0)
    assert [(loss.stage, loss.state, loss.count, loss.step) for loss in funnel.losses] == [
        (Stage.PULL_REQUESTS, ItemState.SKIPPED, 1, "candidates"),
        (Stage.CLASSIFICATIONS, ItemState.SKIPPED, 1, "candidates"),
    ]


@pytest.mark.parametrize("reason", [reason for reason in RejectionReason if reason not in SCREENED_OUT])
def test_only_what_the_symbolic_filter_rejects_was_never_a_candidate(reason: RejectionReason) -> None:
    entries = [enter(Stage.CLASSIFICATIONS, "a/b#1", f"rejected {reason}")]
    entries += [enter(Stage.CLASSIFICATIONS, f"a/b#{n}", f"rejected {one}") for n, one in enumerate(SCREENED_OUT, 2)]
    assert count_funnel(MONTH, entries).count("candidates") == 1


def test_a_classification_that_failed_was_a_candidate() -> None:
    funnel = count_funnel(MONTH, [enter(Stage.CLASSIFICATIONS, "a/b#1", "failed model_answer")])
    assert (funnel.count("candidates"), funnel.count("performance")) == (1, 0)


def test_losses_come_by_stage_most_frequent_first_with_three_examples() -> None:
    entries = [enter(Stage.IMAGES, "a/b#1", "failed build")]
    entries += [enter(Stage.CLASSIFICATIONS, f"a/b#{n}", "rejected title") for n in range(2, 7)]
    entries += [enter(Stage.CLASSIFICATIONS, f"a/b#{n}", "rejected no_core_file") for n in range(7, 16)]
    losses = count_funnel(MONTH, entries).losses
    assert [(loss.reason, loss.count, len(loss.examples)) for loss in losses] == [
        ("no_core_file", 9, 3),
        ("title", 5, 3),
        ("build", 1, 1),
    ]


def test_one_months_losses_are_found_in_anothers(funnel: Funnel) -> None:
    earlier = count_funnel("2026-01", [enter(Stage.IMAGES, f"a/b#{n}", "failed build") for n in range(3)])
    build = next(loss for loss in funnel.losses if loss.reason == "build")
    title = next(loss for loss in funnel.losses if loss.reason == "title")
    assert (earlier.lost(build), earlier.lost(title), funnel.lost(build)) == (3, 0, 1)


def test_a_month_that_nobody_ran_is_empty() -> None:
    empty = count_funnel(MONTH, [])
    assert empty.is_empty
    assert {step.count for step in empty.steps} == {0}
    assert empty.cost == Cost()
