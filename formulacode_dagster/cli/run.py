"""`fc-data run`: one month or several, with every check on the way."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import FROM_A_RELEASE, RunOptions, Stage

from .console import console, one_of

ASKING_MODELS = (None, Stage.CLASSIFICATIONS, Stage.PROBLEM_STATEMENTS)
"""Values of `--stage` whose runs ask a model about every pull request."""
_which, _what, _how = (
    partial(typer.Option, rich_help_panel=group) for group in ("Which months", "What of them", "How")
)
"""An option in its group of `--help`."""


def _help(option: str) -> str:
    """Return the description of a run option as a sentence."""
    text = RunOptions.model_fields[option].description or ""
    return f"{text[:1].upper()}{text[1:].rpartition('; empty: ')[0] or text[1:]}."


MonthKey = Annotated[str | None, _which("--month", help="Month to work on, YYYY-MM; or give both dates.")]
StartDate = Annotated[str | None, _which(help="First day, YYYY-MM-DD; the first of a month.")]
EndDate = Annotated[str | None, _which(help="Day after the last, YYYY-MM-DD; the first of a month.")]
OneStage = Annotated[
    Stage | None,
    _what(metavar="STAGE", help=f"Only this asset, with its checks. {one_of(Stage)}", show_default="all of them"),
]
Only = Annotated[list[str] | None, _what(help=_help("only"), show_default="everything")]
LimitPerRepository = Annotated[int | None, _what(min=1, help=_help("limit_per_repository"), show_default="no limit")]
OfflineSource = Annotated[
    str | None,
    _what(
        help="Files, or a folder of files or mirrors, to take in instead of asking GitHub.",
        show_default="FC_OFFLINE_SOURCE",
    ),
]
Resume = Annotated[bool, _how("--resume/--force", help="Do only pending items, or all again.")]
Reason = Annotated[str, _how(help=_help("reason"), show_default="none is given")]
Reask = Annotated[
    bool,
    _how("--reask", help=_help("reask"), show_default="no"),
]
Yes = Annotated[
    bool,
    _how("--yes", help="Do not ask before a month that is expected to pass a model's budget.", show_default="asks"),
]
DryRun = Annotated[bool, _how("--dry-run", help=_help("dry_run"), show_default="no")]
AgentOption = Annotated[
    str,
    _what(
        help=_help("agent"),
        show_default="FC_AGENT",
    ),
]
AgentConcurrency = Annotated[int, _how("--agent-concurrency", min=1, help=_help("agent_concurrency"))]
AgentTasksPerRepository = Annotated[
    int | None,
    _what(
        "--agent-tasks-per-repository",
        min=1,
        help=_help("agent_tasks_per_repository"),
        show_default="no limit",
    ),
]
Correction = Annotated[str, _how(help=_help("correction"), show_default="it is not")]
Concurrency = Annotated[int, _how(min=1, help=_help("concurrency"))]


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
    concurrency: Concurrency = 8,
    correction: Correction = "",
    agent: AgentOption = "",
    agent_concurrency: AgentConcurrency = 1,
    agent_tasks_per_repository: AgentTasksPerRepository = None,
    yes: Yes = False,
) -> None:
    """Materialize one month or several, with every gate on the way."""
    from formulacode_dagster.operating.runner.work import require_reason
    from formulacode_dagster.orchestration.runs import dagster_instance
    from resources.settings import read_settings

    from .funnel import ask_about_budgets
    from .offline import use_offline_source
    from .operate import database, months_of, require_own_months, run_months

    if reask and resume:
        raise ConfigurationError(
            "--reask by itself skips items that are judged already", remedy="Give --force too, and --only"
        )
    if reason and resume:
        raise ConfigurationError(
            "--reason is for forced runs, and nothing is forced", remedy="Give --force too, and --only"
        )
    months = months_of(month, start_date, end_date)
    options = RunOptions(
        only=tuple(str(ItemName.parse(text)) for text in only or ()),
        limit_per_repository=limit_per_repository,
        concurrency=concurrency,
        force=not resume,
        reason=reason,
        reask=reask,
        dry_run=dry_run,
        correction=correction,
        agent=agent,
        agent_concurrency=agent_concurrency,
        agent_tasks_per_repository=agent_tasks_per_repository,
    )
    if stage in (None, Stage.MEASUREMENTS):
        require_reason(options)
    if offline_source is not None:
        use_offline_source(offline_source)
    github = read_settings().github
    with database() as store, dagster_instance() as instance:
        if github and stage not in FROM_A_RELEASE and not options.dry_run:
            require_own_months(store, github)
        if stage in ASKING_MODELS and not options.dry_run and not options.only:
            ask_about_budgets(store, months, confirmed=yes)
        succeeded = run_months(console, instance, months, options, stages=(stage,) if stage else ())
    raise typer.Exit(0 if succeeded else 1)
