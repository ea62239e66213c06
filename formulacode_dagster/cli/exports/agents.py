"""`fc-data results run`, `regrade` and `judge`: an agent on a release; its work graded again, and judged by a model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.models.errors import BusyError, ConfigurationError, OutsideSystemError

from ..console import complain, complaints, console
from .commands import From, Only, names_of
from .results import released_tasks

if TYPE_CHECKING:
    from formulacode_dagster.library import Dataset
    from formulacode_dagster.operating.store.database import Database
    from formulacode_dagster.releasing.results.agent_runners import AgentRunner
    from formulacode_dagster.releasing.results.release_runs import ReleaseRuns, RunsDone
    from formulacode_dagster.releasing.results.released import ReleasedTask

Release = Annotated[str, typer.Option("--release", help="Tag of the release, as formulacode@2026-03.")]
Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        help="Harbor's name of an agent; `oracle`, `nop`, or a file, a patch or a script, run without Harbor.",
    ),
]
Model = Annotated[str, typer.Option("--model", help="Model of the agent, provider/name.", show_default="the agent's")]
Attempts = Annotated[int, typer.Option("--attempts", min=1, help="Judged runs that each task is to have.")]
Concurrency = Annotated[
    int,
    typer.Option("--concurrency", min=1, help="Runs in parallel; more than the machine has cores to spare disturb."),
]
Dollars = Annotated[
    float | None, typer.Option(min=0, help="Start no run that may make this call cost more.", show_default="no limit")
]
Hours = Annotated[
    float | None, typer.Option(min=0, help="Start no run that may end later than that.", show_default="no limit")
]
RunsFolder = Annotated[
    Path | None,
    typer.Option(
        "--folder", help="Folder of tasks and records.", show_default="agent_runs/, release and agent, in FC_HOME"
    ),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-agent-host", help="Host that the agent may reach while it works, as its model's.", show_default="none"
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--agent-env",
        help="Variable of the agent, NAME=VALUE; or NAME, with its value here: so a key is in no list of processes.",
        show_default="none",
    ),
]
Program = Annotated[str, typer.Option("--harbor", help="Harbor's program.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what is left.")]
HarborOptions = Annotated[
    list[str] | None, typer.Argument(help="More options of `harbor run`, after --.", show_default="none")
]


def run(
    release: Release,
    agent: Agent,
    harbor_options: HarborOptions = None,
    model: Model = "",
    attempts: Attempts = 3,
    concurrency: Concurrency = 1,
    dollars: Dollars = None,
    hours: Hours = None,
    only: Only = None,
    dataset: From = None,
    folder: RunsFolder = None,
    allow_agent_host: Hosts = None,
    agent_env: Variables = None,
    harbor: Program = "harbor",
    dry_run: DryRun = False,
) -> None:
    """Run an agent on every task of a release; each run is stored as soon as it has ended, as `take` does.

    The same command again continues: runs that were judged stay, others are made again. No run starts that may exceed
    the budget of this call.
    """
    import os

    from filelock import FileLock, Timeout

    from formulacode_dagster.library import Dataset
    from formulacode_dagster.operating.cancellation.loops import run_loop
    from formulacode_dagster.releasing.results.agent_runners import access_options
    from formulacode_dagster.releasing.results.redaction import Redaction
    from formulacode_dagster.releasing.results.release_runs import ReleaseRuns, RunBudget
    from formulacode_dagster.releasing.results.released import ReleasedTasks
    from formulacode_dagster.releasing.results.taking import take_recorded
    from resources.hub import HubResource
    from resources.settings import make_home

    from ..operate import database

    variables = agent_env or []
    access = access_options(allow_agent_host or [], variables, os.environ)
    runner, name = _runner(agent, model, [*access, *(harbor_options or [])], harbor)
    loaded = Dataset.load(dataset, revision=release)
    tasks = list(_tasks(loaded, release, only).values())
    if not tasks:
        raise ConfigurationError(f"{release} has no such task", remedy="Look at the dataset: fc-data site")
    folder = folder or make_home() / "agent_runs" / release / name
    folder.mkdir(parents=True, exist_ok=True)
    given = dict(variable.split("=", 1) for variable in variables if "=" in variable)
    known, redaction = ReleasedTasks(loaded.name, tasks), Redaction({**os.environ, **given})
    cutoffs = HubResource().cutoffs()
    try:
        with FileLock(folder / ".lock", timeout=0), database() as store:
            runs = ReleaseRuns(
                tasks,
                folder,
                runner,
                lambda recorded: take_recorded(store, recorded, known, redaction, lambda _: None, cutoffs),
                _say,
                attempts=attempts,
                concurrency=concurrency,
                budget=RunBudget(dollars, hours),
            )
            if dry_run:
                _tell_left([task.id for task in runs.left()], runs)
                return
            done = run_loop(runs.run())
    except Timeout as error:
        raise BusyError(
            f"{folder} is in use by another command", remedy="Wait for it, or name another --folder"
        ) from error
    _tell(done, runs)


def regrade(
    release: Release,
    agent: Annotated[str, typer.Option("--agent", help="Only runs of this agent.", show_default="all")] = "",
    only: Only = None,
    dataset: From = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also runs that this version's grader judged: does it say the same again?")
    ] = False,
) -> None:
    """Grade the stored changes of runs on a release again, here, after the grader was changed.

    Both gradings are stored; the second one is in no sum, and the check `regrades_agree` compares them.
    """
    import tempfile

    from rich.markup import escape

    from formulacode_dagster.library import Dataset
    from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
    from formulacode_dagster.releasing.exports.evaluate import grade_diff
    from formulacode_dagster.releasing.results.regrading import outdated
    from formulacode_dagster.releasing.results.regrading import regrade as regrade_runs

    from ..operate import database

    loaded = Dataset.load(dataset, revision=release)
    tasks = _tasks(loaded, release, only)
    with database() as store, tempfile.TemporaryDirectory(prefix="fc-regrade-") as folder:
        with store.transaction() as connection:
            stored = [run for month in {t.month for t in tasks.values()} for run in AGENT_RUNS.read(connection, month)]
        wanted = [run for run in outdated(stored, tasks, every=every) if agent in ("", run.agent)]
        with complaints.status("grading, which may take minutes") as status:

            def progress(line: str) -> None:
                status.update(escape(line))

            done = regrade_runs(store, wanted, tasks, Path(folder), grade_diff, progress)
    for each in done:
        if each.again is None:
            complain(f"{each.run.contestant}, {each.run.task_id}: {each.why}")
            continue
        before, after = (f"{run.reward or 0.0:.2f} ({run.reason or run.error})" for run in (each.run, each.again))
        console.print(
            f"{each.run.contestant}, {each.run.task_id}: {before}, now {after}", highlight=False, markup=False
        )
    failed = sum(each.again is None for each in done)
    console.print(f"{len(done) - failed} runs graded again, {failed} not", highlight=False)


def judge(
    release: Release,
    agent: Annotated[str, typer.Option("--agent", help="Only runs of this agent.", show_default="all")] = "",
    only: Only = None,
    dataset: From = None,
) -> None:
    """Ask the model FC_HACK_JUDGE whether rewarded work is a hack of the benchmark; each run once."""
    from formulacode_dagster.library import Dataset
    from formulacode_dagster.models.agent_run import HackJudgement
    from formulacode_dagster.operating.cancellation.loops import run_loop
    from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
    from formulacode_dagster.operating.store.completions import StoredCompletions
    from formulacode_dagster.releasing.results.hack_judge import HackJudge, judge_runs
    from formulacode_dagster.selection.classification.model_access import SessionAccount
    from resources.llm import LLMResource
    from resources.settings import read_settings

    from ..operate import database

    model = read_settings().hack_judge
    if not model:
        raise ConfigurationError("no model judges", remedy="Set FC_HACK_JUDGE to a model of LLM_BASE_URL")
    tasks = _tasks(Dataset.load(dataset, revision=release), release, only)

    async def ask(store: Database) -> tuple[list[HackJudgement], list[str]]:
        access = LLMResource().models(StoredCompletions(store))
        async with access.connect(SessionAccount(f"the hack judge of {release}"), [model]) as (connected,):
            return await judge_runs(store, runs, tasks, HackJudge(connected), _say)

    with database() as store:
        with store.transaction() as connection:
            months = {task.month for task in tasks.values()}
            runs = [run for month in months for run in AGENT_RUNS.read(connection, month) if agent in ("", run.agent)]
        judged, failed = run_loop(ask(store))
    for line in failed:
        complain(line)
    verdicts = Counter(each.verdict.value for each in judged)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())) or "none"
    console.print(f"{len(judged)} runs judged: {counts}; {len(failed)} not", highlight=False)


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _tasks(dataset: Dataset, release: str, only: list[str] | None) -> dict[str, ReleasedTask]:
    """Return the tasks of *release* that *only* selects, by id."""
    wanted = released_tasks(dataset, release)
    return {task.id: task for task in wanted if not only or names_of(task.row) & set(only)}


def _runner(agent: str, model: str, options: list[str], program: str) -> tuple[AgentRunner, str]:
    """Return what runs *agent*, and a name for its folder."""
    import hashlib
    import re
    import shutil

    from formulacode_dagster.releasing.exports.evaluate import NOP, ORACLE
    from formulacode_dagster.releasing.results.agent_runners import HarborRunner, ScriptRunner

    if agent in (ORACLE, NOP) or Path(agent).is_file():
        if model or options:
            raise ConfigurationError(
                f"{agent} needs neither a model nor options of Harbor",
                remedy="Leave out --model, --allow-agent-host, --agent-env, and all after --",
            )
        return ScriptRunner(agent), Path(agent).stem
    if shutil.which(program) is None:
        raise ConfigurationError(
            f"{agent} is an agent of Harbor, and there is no program {program}",
            remedy="Install Harbor 0.26 and name its program with --harbor; or name a file: a patch, or a script",
        )
    # other options are another experiment, whose runs do not count here; they may hold secrets
    other = "-" + hashlib.sha256("\0".join(options).encode()).hexdigest()[:8] if options else ""
    return HarborRunner(agent, model, options, program), re.sub(r"[^\w.-]+", "-", f"{agent} {model}".strip()) + other


def _tell(done: RunsDone, runs: ReleaseRuns) -> None:
    for line in done.lost:
        complain(line)
    failed = len(done.ended) - done.graded
    console.print(
        f"{done.graded} runs judged, {failed} failures of infrastructure, {len(done.lost)} without a record; "
        f"${done.dollars:.2f} spent",
        highlight=False,
    )
    if done.stopped:
        console.print(f"stopped: {done.stopped}", highlight=False, markup=False)
    _tell_left(done.left, runs)
    if done.left and (done.lost or failed) and not done.graded:
        raise OutsideSystemError(runs.runner.name, "no run was judged", remedy=f"Look into {runs.folder}")


def _tell_left(left: list[str] | tuple[str, ...], runs: ReleaseRuns) -> None:
    for line in runs.unexportable:
        complain(line)
    if left:
        console.print(
            f"{len(left)} runs on {len(set(left))} tasks are left; the same command makes them", highlight=False
        )
    else:
        console.print(f"every task has its {runs.attempts} judged runs", highlight=False)
