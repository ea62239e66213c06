"""Runs an agent on every task of a release, within a budget; each run is taken in as soon as it has ended."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from formulacode_dagster.models.agent_run import AgentRun, RunState
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.operating.cancellation.clock import SYSTEM_CLOCK, Clock
from formulacode_dagster.operating.cancellation.loops import in_thread
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from formulacode_dagster.releasing.exports.write import export_task

from .agent_runners import AgentRunner
from .formats import RecordedRuns, runs_in
from .released import ReleasedTask
from .taking import TakenRuns

TASKS, RUNS = "tasks", "runs"
"""Folders of the exported tasks and of the records."""
FAILURES_IN_A_ROW = 5
"""Runs in a row without a judgement after which no further one starts."""
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class RunBudget:
    """Limits on one call; None: no limit."""

    dollars: float | None = None
    hours: float | None = None

    def objection(self, ended: Sequence[AgentRun], running: int, seconds: float) -> str:
        """Return why no further run may start *seconds* after the first one; empty if one may.

        A run that has not ended is expected to cost and last as much as the most expensive and the longest so far.
        """
        if self.dollars is not None:
            costs = [cost_of(run) for run in ended]
            if None in costs:
                return "the cost of a run was not recorded, so that no budget in dollars can be kept"
            known = [cost or 0.0 for cost in costs]
            spent, expected = sum(known), (running + 1) * max(known, default=0.0)
            if spent >= self.dollars or spent + expected > self.dollars:
                return f"${spent:.2f} of ${self.dollars:g} are spent, and the next run may cost too much"
        if self.hours is not None:
            longest = max((run.seconds or 0.0 for run in ended), default=0.0)
            if seconds + longest >= self.hours * SECONDS_PER_HOUR:
                return (
                    f"{seconds / SECONDS_PER_HOUR:.1f} of {self.hours:g} hours are over, and the next may take longer"
                )
        return ""


def cost_of(run: AgentRun) -> float | None:
    """Return the dollars that *run* cost; None if unknown, 0 then for one without a model or without a judgement."""
    is_free = not run.model or run.state is RunState.INFRASTRUCTURE
    return 0.0 if run.dollars is None and is_free else run.dollars


@dataclass(frozen=True)
class RunsDone:
    """Work that a call did, and work that it left."""

    ended: tuple[AgentRun, ...]
    lost: tuple[str, ...]
    """Runs without a record that could be taken in, and why."""
    left: tuple[str, ...]
    """The task of each run that is still to be made."""
    stopped: str
    """Why no further run was started; empty if none was left to start."""

    @property
    def graded(self) -> int:
        """Number of runs with a judgement."""
        return sum(run.state is RunState.GRADED for run in self.ended)

    @property
    def dollars(self) -> float:
        """Their known cost."""
        return sum(cost_of(run) or 0.0 for run in self.ended)


@dataclass
class ReleaseRuns:
    """Runs of one agent on *tasks*: what is recorded below *folder* is not run again."""

    tasks: Sequence[ReleasedTask]
    folder: Path
    runner: AgentRunner
    take: Callable[[RecordedRuns], TakenRuns]
    """Stores recorded runs."""
    progress: ProgressReporter
    _: KW_ONLY
    attempts: int = 1
    """Judged runs that each task is to have."""
    concurrency: int = 1
    budget: RunBudget = RunBudget()
    clock: Clock = SYSTEM_CLOCK
    unexportable: list[str] = field(default_factory=list)
    """Why, for each task that cannot be run."""
    _given: set[Path] = field(default_factory=set, init=False, repr=False)

    def left(self) -> list[ReleasedTask]:
        """Return the task of each run that is to be made, so that tasks get their runs in turns.

        Runs of an earlier call are taken in first. One without a judgement, or by another version of the grader, is
        made again.
        """
        done: Counter[str] = Counter()
        if (self.folder / RUNS).is_dir():
            found = self.take(runs_in(self.folder / RUNS))
            known = {task.id: task for task in self._runnable()}
            for run in (*found.before, *found.taken):
                task = known.get(run.task_id)
                done[run.task_id] += task is not None and _counts(run, task)
        return [task for number in range(self.attempts) for task in self._runnable() if done[task.id] <= number]

    async def run(self) -> RunsDone:
        """Make the runs that are left, as far as the budget goes; raises as `AgentRunner.run`."""
        left, started = deque(self.left()), self.clock.time()
        for task in dict.fromkeys(task.id for task in left):
            row = next(each.row for each in self.tasks if each.id == task)
            export_task(row, HarnessFormat.HARBOR, self.folder / TASKS / task)
        ended, lost, again = list[AgentRun](), list[str](), list[str]()
        total, running, in_a_row, stopped = len(left), 0, 0, ""

        async def work() -> None:
            nonlocal running, in_a_row, stopped
            while left:
                if in_a_row >= FAILURES_IN_A_ROW:
                    stopped = f"{in_a_row} runs in a row had no judgement; see the last one's error"
                else:
                    stopped = self.budget.objection(ended, running, self.clock.time() - started)
                if stopped:
                    return
                task, running = left.popleft(), running + 1
                run, why = await self._one(task)
                running -= 1
                if run is None:
                    lost.append(why)
                else:
                    ended.append(run)
                is_graded = run is not None and run.state is RunState.GRADED
                in_a_row = 0 if is_graded else in_a_row + 1
                again.extend([] if is_graded else [task.id])
                self.progress(f"{total - len(left) - running} of {total}: {_line(task, run, why)}")

        await asyncio.gather(*(work() for _ in range(min(self.concurrency, total))))
        return RunsDone(tuple(ended), tuple(lost), (*again, *(task.id for task in left)), stopped if left else "")

    async def _one(self, task: ReleasedTask) -> tuple[AgentRun | None, str]:
        """Run the agent once on *task*; return the stored run, or why there is none."""
        folder = self._new_folder(task)
        said = await in_thread(self.runner.run, self.folder / TASKS / task.id, folder)
        taken = await in_thread(self.take, runs_in(folder))
        runs = (*taken.taken, *taken.before)
        if runs:
            return runs[0], ""
        return None, f"{folder.name}: {'; '.join(taken.refused) or said or 'no record was left'}"

    def _new_folder(self, task: ReleasedTask) -> Path:
        number = 1
        while (folder := self.folder / RUNS / f"{task.id}__{number}").exists() or folder in self._given:
            number += 1
        # not made here: Harbor takes a folder that exists for a job to resume
        self._given.add(folder)
        return folder

    def _runnable(self) -> list[ReleasedTask]:
        """Return the tasks that can be exported; the others become known as `unexportable`."""
        runnable, faults = [], []
        for task in self.tasks:
            try:
                _ = task.identity
            except ItemFailure as failure:
                faults.append(str(failure))
            else:
                runnable.append(task)
        self.unexportable = faults
        return runnable


def _counts(run: AgentRun, task: ReleasedTask) -> bool:
    identity = task.identity
    by = (run.task_sha256, run.grader_sha256)
    return run.state is RunState.GRADED and by == (identity.task_sha256, identity.grader_sha256)


def _line(task: ReleasedTask, run: AgentRun | None, why: str) -> str:
    if run is None:
        return f"{task.id} left no record: {why}"
    if run.reward is None:
        return f"{task.id} was not judged: {run.error}"
    cost = f", ${run.dollars:.2f}" if run.dollars is not None else ""
    return f"{task.id} has reward {run.reward:.2f} ({run.reason}){cost}"
