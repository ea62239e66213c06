"""The table of results, and the verdicts about it, each of which fires."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.agent_run import Contamination
from formulacode_dagster.releasing.results import checks
from formulacode_dagster.releasing.results.table import agent_results
from formulacode_dagster.releasing.results.task_facts import of_release, statement_sha256
from tests.support.agent_runs import MONTH, TAG, agent_run, speedups

ROW = {"image_digest": "sha256:" + "1" * 64, "final_md": "Make it faster"}


@pytest.fixture
def runs():
    known = {"dollars": 1.0, "turns": 3, "benchmarks": speedups(a=(2.0, 4.0))}
    return [
        *(agent_run(task, 1.0, "oracle", dollars=0.0) for task in "abc"),
        agent_run("a", 0.95, model="m", **known),
        agent_run("a", 0.45, model="m", **known),
        agent_run("b", 0.0, model="m", **known),
        agent_run("b", None, model="m"),
        agent_run("a", 0.9, model="m", regrade_of="trial"),
        agent_run("c", None, "broken"),
    ]


def table(runs):
    return agent_results(runs, MONTH, TAG, 3)


def test_an_agent_is_a_row_with_all_its_figures(runs):
    oracle, codex, broken = table(runs)
    assert (oracle.contestant, oracle.score.value, oracle.tasks, oracle.is_on_front) == ("oracle", 1.0, 3, True)
    assert (codex.contestant, codex.score.value, codex.tasks, codex.runs) == ("codex (m)", pytest.approx(0.35), 2, 3)
    assert (codex.infrastructure, codex.regrades, codex.release_tasks) == (1, 1, 3)
    assert (codex.half.value, codex.nearly.value) == (0.25, 0.25)
    assert codex.advantages == (-2.0,) * 4
    assert (codex.dollars, codex.turns, codex.is_on_front) == (1.0, 3.0, False)
    assert codex.pass_curve == {1: 0.25}
    assert codex.reasons == {"faster": 2, "unchanged": 1}
    assert (broken.score, broken.runs, broken.infrastructure, broken.dollars) == (None, 0, 1, None)
    assert broken.advantages == (None,) * 4


def test_a_row_has_the_score_without_tasks_that_the_model_may_have_seen(runs):
    marks = {"a": "yes", "b": "no", "c": "unknown"}
    own = [run.model_copy(update={"contaminated": Contamination(marks[run.task_id])}) for run in runs]
    oracle, codex, broken = table(own)
    assert (codex.score.value, codex.clean_score.value, codex.clean_score.tasks) == (pytest.approx(0.35), 0.0, 1)
    assert codex.contamination == {"yes": 2, "no": 1}
    assert (oracle.clean_score.value, broken.clean_score, broken.contamination) == (1.0, None, {})


def test_runs_of_another_task_image_or_statement_are_of_no_release(runs):
    own = [run.model_copy(update={"statement_sha256": statement_sha256(ROW)}) for run in runs]
    rows = [{**ROW, "task_id": task} for task in "abc"]
    assert of_release(own, rows) == own
    assert of_release(runs, rows) == []
    for others in ([], [{**rows[2], "image_digest": "sha256:2"}], [{**rows[2], "final_md": "Make it slower"}]):
        assert [run.task_id for run in own if run not in of_release(own, [*rows[:2], *others])] == ["c", "c"]


def test_sums_with_runs_that_are_of_no_task_of_the_release_are_found(runs):
    kept = [run for run in runs if run.task_id != "c"]
    assert checks.runs_belong_to_the_release(runs, kept, table(kept)).passed
    found = checks.runs_belong_to_the_release(runs, kept, table(runs))
    assert found.offenders == (
        "oracle: 3 runs are summed, and 2 are of tasks of the release",
        "broken: 1 runs are summed, and 0 are of tasks of the release",
    )
    assert (found.figures["runs"], found.figures["left_out"]) == (9, 2)


def test_a_failure_of_infrastructure_that_counts_is_found(runs):
    assert checks.no_infrastructure_failure_counts(runs, table(runs)).passed
    counted = runs[-1].model_copy(update={"reward": 0.0})
    found = checks.no_infrastructure_failure_counts([*runs[:-1], counted], table(runs))
    assert found.offenders == ("broken, trial: infrastructure, with reward 0.0",)
    # sums of before the last run came in
    stale = checks.no_infrastructure_failure_counts(runs, table(runs[:-1]))
    assert stale.offenders == ("broken: the sums have 0 runs and 0 failures, stored are (0, 1)",)


def test_an_oracle_that_is_not_at_the_top_is_found(runs):
    assert checks.oracle_is_at_the_top(runs).passed
    assert checks.oracle_is_at_the_top([]).passed
    assert checks.oracle_is_at_the_top(runs[3:]).summary == "the oracle has no run"
    weak = checks.oracle_is_at_the_top([*runs, agent_run("b", 0.2, "oracle", name="again")])
    assert weak.offenders == ("b: the author's patch gets 0.60",)
    better = [agent_run("a", 0.92, "oracle"), agent_run("a", 1.0, "cheat")]
    assert checks.oracle_is_at_the_top(better).offenders == ("cheat is better than the author by 0.08 on 1 tasks",)


def test_regrades_that_disagree_are_found(runs):
    assert checks.regrades_agree(runs[:4] + runs[7:]).passed
    other = agent_run("a", 0.0, model="m", regrade_of="trial", name="again")
    found = checks.regrades_agree([*runs[3:4], other])
    assert found.offenders == ("codex (m), trial: 0.95, regraded 0.00",)
    # as near as another reward may be, and yet another verdict
    small, none = agent_run("a", 0.1, model="m"), agent_run("a", 0.0, model="m", regrade_of="trial", name="again")
    assert len(checks.regrades_agree([small, none]).offenders) == 1
