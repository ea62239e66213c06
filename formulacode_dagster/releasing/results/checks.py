"""Verdicts about the runs and sums of a month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from formulacode_dagster.models.agent_run import AgentResult, AgentRun, RunState
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.grading import LEAST_REWARD

from . import sums

ORACLE = "oracle"
"""Name of the agent that applies the author's patch, in every harness."""
SAME_REWARD = 0.25
"""Rewards of a run and of its regrade that differ by more disagree: both are measured."""


def runs_belong_to_the_release(
    runs: Sequence[AgentRun], kept: Sequence[AgentRun], results: Iterable[AgentResult]
) -> CheckFinding:
    """Pass when no agent's sums have more runs than those *kept*: of *runs*, the ones on tasks of the release."""
    mine = Counter(run.contestant for run in kept)
    wrong = [
        f"{row.contestant}: {summed} runs are summed, and {mine[row.contestant]} are of tasks of the release"
        for row in results
        if (summed := row.runs + row.infrastructure + row.regrades) > mine[row.contestant]
    ]
    left_out = len(runs) - len(kept)
    summary = f"{len(kept)} of {len(runs)} runs are of the release" + (
        f", and others are summed; first: {wrong[0]}" if wrong else ", and no other is summed"
    )
    figures = {"runs": len(runs), "left_out": left_out, "offenders": len(wrong)}
    return CheckFinding.by_offenders(summary, wrong, figures)


def no_infrastructure_failure_counts(runs: Sequence[AgentRun], results: Iterable[AgentResult]) -> CheckFinding:
    """Pass when no run without a judgement has a reward, and every agent's sums have exactly its counted runs."""
    wrong = [
        f"{run.contestant}, {run.name}: {run.state}, with reward {run.reward}"
        for run in runs
        if (run.state is RunState.GRADED) is (run.reward is None)
    ]
    counts = {row.contestant: (row.runs, row.infrastructure) for row in results}
    for name in sorted({run.contestant for run in runs} | counts.keys()):
        mine = [run for run in runs if run.contestant == name]
        wanted = (len(sums.counted(mine)), sum(run.state is RunState.INFRASTRUCTURE for run in mine))
        if counts.get(name) != wanted:
            found = counts.get(name, (0, 0))
            wrong.append(f"{name}: the sums have {found[0]} runs and {found[1]} failures, stored are {wanted}")
    failures = sum(run.state is RunState.INFRASTRUCTURE for run in runs)
    summary = f"{failures} of {len(runs)} runs failed for infrastructure, " + (
        "and some count" if wrong else "and none of them counts"
    )
    return CheckFinding.by_offenders(summary, wrong, {"runs": len(runs), "infrastructure": failures})


def oracle_is_at_the_top(runs: Sequence[AgentRun]) -> CheckFinding:
    """Pass when the author's patch gets its reward on every task it was run on, and no agent is surely better."""
    mine = sums.by_task((run for run in runs if run.agent == ORACLE), sums.reward)
    if not mine:
        summary = "the oracle has no run" if runs else "there is no run"
        return CheckFinding(passed=not runs, summary=summary, offenders=(ORACLE,) if runs else ())
    wrong = [
        f"{task}: the author's patch gets {sum(rewards) / len(rewards):.2f}"
        for task, rewards in mine.items()
        if sum(rewards) / len(rewards) < LEAST_REWARD
    ]
    for name in sorted({run.contestant for run in runs if run.agent != ORACLE}):
        theirs = sums.by_task((run for run in runs if run.contestant == name), sums.reward)
        gain = sums.paired_difference(theirs, mine)
        if gain is not None and gain.low > 0:
            wrong.append(f"{name} is better than the author by {gain.value:.2f} on {gain.tasks} tasks")
    summary = f"the oracle is not at the top; first: {wrong[0]}" if wrong else f"the oracle leads on {len(mine)} tasks"
    return CheckFinding.by_offenders(summary, wrong, {"tasks": len(mine), "offenders": len(wrong)})


def regrades_agree(runs: Sequence[AgentRun]) -> CheckFinding:
    """Pass when every regrade of a stored run gives the same verdict, a reward or none, and a reward near its own."""
    first = {
        (run.task_id, key): run
        for run in runs
        if not run.regrade_of and run.reward is not None
        # Harbor names a run by its trial, `results regrade` by its id
        for key in (run.name, run.run_id)
    }
    pairs = [
        (first[run.task_id, run.regrade_of], run)
        for run in runs
        if run.reward is not None and (run.task_id, run.regrade_of) in first
    ]
    wrong = [
        f"{run.contestant}, {run.name}: {run.reward:.2f}, regraded {again.reward:.2f}"
        for run, again in pairs
        if bool(run.reward) != bool(again.reward) or abs((run.reward or 0.0) - (again.reward or 0.0)) > SAME_REWARD
    ]
    summary = f"{len(wrong)} of {len(pairs)} regrades give another reward"
    return CheckFinding.by_offenders(summary, wrong, {"regrades": len(pairs), "offenders": len(wrong)})
