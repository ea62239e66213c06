"""`fc-data run`: one month or several, with every check on the way."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import RunOptions, Stage

from .console import console

_which, _what, _how = (
    partial(typer.Option, rich_help_panel=group) for group in ("Which months", "What of them", "How")
)
"""An option in its group of `--help`."""

MonthKey = Annotated[str | None, _which("--month", help="Month to work on, YYYY-MM; or give both dates.")]
StartDate = Annotated[str | None, _which(help="First day, YYYY-MM-DD; the first of a month.")]
EndDate = Annotated[str | None, _which(help="Day after the last, YYYY-MM-DD; the first of a month.")]
OneStage = Annotated[Stage | None, _what(help="Only this asset, with its checks.", show_default="all of them")]
Only = Annotated[
    list[str] | None, _what(help="owner/repo or owner/repo#123; may be repeated.", show_default="everything")
]
LimitPerRepository = Annotated[
    int | None, _what(min=1, help="At most so many pull requests of a repository.", show_default="no limit")
]
OfflineSource = Annotated[
    str | None,
    _what(
        help="Files, or a folder of files or mirrors, to take in instead of asking GitHub.",
        show_default="FC_OFFLINE_SOURCE",
    ),
]
Resume = Annotated[bool, _how("--resume/--force", help="Do what is not done yet, or everything again.")]
Reason = Annotated[
    str, _how(help="With --force: why, as a measurement that is forced keeps it.", show_default="none is given")
]
Reask = Annotated[
    bool,
    _how("--reask", help="With --force: pay the model for new answers, kept beside the old ones.", show_default="no"),
]
DryRun = Annotated[bool, _how("--dry-run", help="Say what would be done, do nothing.", show_default="no")]
AgentOption = Annotated[
    str,
    _what(
        help="Coding agent asked where no rule mends an image: none, auto, claude, codex, gemini or command.",
        show_default="FC_AGENT",
    ),
]
AgentsAtOnce = Annotated[int, _how("--n-concurrent", min=1, help="Agents at work at the same time.")]
TasksPerRepository = Annotated[
    int | None,
    _what(
        "--tasks-per-repo",
        min=1,
        help="An agent is asked for so many pull requests of a repository.",
        show_default="no limit",
    ),
]
Correction = Annotated[
    str, _how(help="Why a released month is released again, as a revision.", show_default="it is not")
]
Concurrency = Annotated[int, _how(min=1, help="Items worked on at the same time.")]


def run(
    month: MonthKey = None,
    start_date: StartDate = None,
    end_date: EndDate = None,
    stage: OneStage = None,
    only: Only = None,
    limit_per_repository: LimitPerRepository = None,
    offline_source: OfflineSource = None,
    resume: Resume = True,
    reason: Reason = "",
    reask: Reask = False,
    dry_run: DryRun = False,
    max_concurrency: Concurrency = 8,
    correction: Correction = "",
    agent: AgentOption = "",
    n_concurrent: AgentsAtOnce = 1,
    tasks_per_repo: TasksPerRepository = None,
) -> None:
    """Materialize one month or several, with every gate on the way."""
    from formulacode_dagster.operating.runner.work import require_reason
    from formulacode_dagster.orchestration.runs import dagster_instance

    from .offline import use_offline_source
    from .operate import months_of, run_months

    if reask and resume:
        raise ConfigurationError(
            "--reask alone would ask about nothing that is judged already", remedy="Give --force too, and --only"
        )
    if reason and resume:
        raise ConfigurationError(
            "--reason says why something is done again, and nothing is", remedy="Give --force too, and --only"
        )
    months = months_of(month, start_date, end_date)
    options = RunOptions(
        only=tuple(str(ItemName.parse(text)) for text in only or ()),
        limit_per_repository=limit_per_repository,
        max_concurrency=max_concurrency,
        force=not resume,
        reason=reason,
        reask=reask,
        dry_run=dry_run,
        correction=correction,
        agent=agent,
        agents_at_once=n_concurrent,
        agent_tasks_per_repository=tasks_per_repo,
    )
    if stage in (None, Stage.MEASUREMENTS):
        require_reason(options)
    if offline_source is not None:
        use_offline_source(offline_source)
    with dagster_instance() as instance:
        succeeded = run_months(console, instance, months, options, stages=(stage,) if stage else ())
    raise typer.Exit(0 if succeeded else 1)
