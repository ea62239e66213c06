"""Common parts of all per-item assets: the run config, the frame around a stage, and its metadata."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from formulacode_dagster.models.errors import BusyError, FormulaCodeError, OutsideSystemError
from formulacode_dagster.models.items import ItemState, RunOptions, Stage
from formulacode_dagster.operating.runner.claims import Worker, shared_stage
from formulacode_dagster.operating.runner.failures import accept_failures, judge_failures
from formulacode_dagster.operating.runner.gatekeeping import require_open
from formulacode_dagster.operating.runner.log_lines import AlsoLogged
from formulacode_dagster.operating.runner.progress import listener, listening
from formulacode_dagster.operating.runner.work import RunRole, Sharing, StageRun, StageSummary
from formulacode_dagster.operating.store.usage import usage_totals
from formulacode_dagster.sources.github.origin import require_same_github
from resources.base import SettingsResource
from resources.postgres import PostgresResource
from resources.settings import read_settings
from resources.watching import traced

from .partitions import StepContext, month_of
from .stage_asset import StageAsset
from .stopping import retry_or_failure, stoppable

SHOWN_ITEMS = 50
BUSY_TRIES = 6
"""Multiple of FC_RETRY_SECONDS that a relaunched run waits for the month that its predecessor held."""
RETRY_NUMBER_TAG = "dagster/retry_number"
"""Tag that Dagster sets on a relaunched run."""


HELPS = "formulacode/helps"
"""Tag of a helper run: the stage, the month and the run that it helps."""


def option(name: str) -> Any:
    """Return a config field with the default and description of the run option *name*."""
    declared = RunOptions.model_fields[name]
    default = list(declared.default) if isinstance(declared.default, tuple) else declared.default
    return Field(default=default, description=declared.description)


class ItemConfig(dg.Config):
    """Run config of every asset of items; all fields are optional."""

    only: list[str] = option("only")
    limit_per_repository: int | None = option("limit_per_repository")
    concurrency: int = option("concurrency")
    force: bool = option("force")
    dry_run: bool = option("dry_run")
    accepted_by: str = Field(
        default="", description="name of the person who accepts the month although too much of it failed"
    )
    accepted_because: str = Field(default="", description="why they accept it")

    def options(self) -> RunOptions:
        """Return the options that the stage gets."""
        limits = self.model_dump(include=set(RunOptions.model_fields))
        return RunOptions(**{**limits, "only": tuple(self.only)})


class ModelConfig(ItemConfig):
    """Run config of assets that ask a model."""

    reask: bool = option("reask")


class MeasurementConfig(ModelConfig):
    """Run config of `measurements`."""

    reason: str = option("reason")


class AgentConfig(ItemConfig):
    """Run config of assets that may ask a coding agent."""

    agent: str = option("agent")
    agent_concurrency: int = option("agent_concurrency")
    agent_tasks_per_repository: int | None = option("agent_tasks_per_repository")


class ReleaseConfig(ItemConfig):
    """Run config of `published_dataset`."""

    correction: str = option("correction")


def helped(stage: Stage, month: str, run_id: str) -> str:
    """Value of `HELPS` for runs that help *run_id* with *stage* of *month*."""
    return f"{stage} {month} {run_id}"


def continued_runs(instance: dg.DagsterInstance, run: dg.DagsterRun, stage: Stage, month: str) -> frozenset[str]:
    """Ids of the runs whose work on *stage* of *month* is that of *run* too, its own among them.

    A retry of a run that succeeded starts from scratch.
    """
    chain = [run.run_id]
    earlier = run.parent_run_id
    while earlier and (before := instance.get_run_by_id(earlier)) and before.status is not dg.DagsterRunStatus.SUCCESS:
        chain.append(earlier)
        earlier = before.parent_run_id
    names = [helped(stage, month, run_id) for run_id in chain]
    helpers = instance.get_runs(dg.RunsFilter(tags={HELPS: names}))
    return frozenset([*chain, *(helper.run_id for helper in helpers)])


@contextmanager
def stage_run(
    context: dg.AssetExecutionContext,
    postgres: PostgresResource,
    asset: StageAsset,
    config: ItemConfig,
    *,
    source: SettingsResource | None = None,
) -> Iterator[StageRun]:
    """The frame around a stage: gates read, the month held; it is tried once more when an outside system failed.

    A stage with a *source* needs months of the same GitHub. Errors that only a person can mend are not retried.
    """
    with _failing_as_dagster_does(context), stoppable(context):
        month = month_of(context).key
        run = StageRun(postgres.database(), asset.stage, month, context.run.run_id, config.options())
        if config.force:
            run = replace(run, continues=continued_runs(context.instance, context.run, run.stage, month))
        if config.dry_run:
            yield run
            return
        if source and (github := source.settings.github):
            with run.database.transaction() as connection:
                require_same_github(connection, github)
        require_open(run.database, run.month, asset.gates)
        with _held(run, asset) as held, _watched(context, run):
            yield held
            _accept_if_asked(held, config)


@contextmanager
def helper_run(context: dg.OpExecutionContext, postgres: PostgresResource, stage: Stage) -> Iterator[StageRun | None]:
    """The frame around the help for a stage of a month, with the options of the run that leads it.

    None if no run leads it any more.
    """
    with _failing_as_dagster_does(context), stoppable(context):
        database, month = postgres.database(), month_of(context).key
        with database.transaction() as connection:
            led = shared_stage(connection, stage, month)
        if led is None:
            yield None
            return
        run_id = context.run.run_id
        sharing = Sharing(RunRole.HELPS, _worker(stage, month, run_id))
        run = StageRun(database, stage, month, run_id, led.options, sharing)
        with _watched(context, run):
            yield run


@contextmanager
def _watched(context: StepContext, run: StageRun) -> Iterator[None]:
    """Send items, waits and warnings to the log, and to a trace collector if one is set."""
    log = context.log

    def say_of_item(text: str, item: str) -> None:
        log.info(text, extra={"item": item})

    to = AlsoLogged(listener(), log.info, log.warning, say_of_item)
    with traced(to, run.run_id) as watching, listening(watching):
        yield


@contextmanager
def _held(run: StageRun, asset: StageAsset) -> Iterator[StageRun]:
    """Run *run* with exclusive access to the month; if another run leads a shared stage, join it."""
    if not (asset.is_shared and read_settings().helper_runs):
        with run.database.month_lock(run.stage, run.month, run.run_id):
            yield run
        return
    part = RunRole.LEADS
    with ExitStack() as stack:
        try:
            stack.enter_context(run.database.month_lock(run.stage, run.month, run.run_id))
        except BusyError:
            with run.database.transaction() as connection:
                if shared_stage(connection, run.stage, run.month) is None:
                    raise
            part = RunRole.JOINS
        yield replace(run, sharing=Sharing(part, _worker(run.stage, run.month, run.run_id)))


def _worker(stage: Stage, month: str, run_id: str) -> Worker:
    # a retried step has the same run: its first try's work is not its own
    name = f"{run_id} {uuid.uuid4().hex[:8]}"
    return Worker(stage, month, name, timedelta(seconds=read_settings().lease_seconds))


@contextmanager
def _failing_as_dagster_does(context: StepContext) -> Iterator[None]:
    """Convert our errors to Dagster's: failures of an outside system may be retried once, those a person must fix may
    not.
    """
    try:
        yield
    except OutsideSystemError as error:
        raise retry_or_failure(context, error) from error
    except BusyError as error:
        failure = dg.Failure(description=str(error), allow_retries=False)
        # a relaunched run may start before the server notices its predecessor's loss; others are told at once
        if (delay := read_settings().retry_seconds) and RETRY_NUMBER_TAG in context.run.tags:
            raise dg.RetryRequested(max_retries=BUSY_TRIES, seconds_to_wait=delay) from failure
        raise failure from error
    except FormulaCodeError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error


def _accept_if_asked(run: StageRun, config: ItemConfig) -> None:
    if not (config.accepted_by or config.accepted_because):
        return
    budget = read_settings().failure_budget_of(run.stage)
    with run.database.transaction() as connection:
        if judge_failures(connection, run.month, run.stage, budget).passed:
            return
    by, reason = config.accepted_by, config.accepted_because
    accept_failures(run.database, run.month, run.stage, budget, by=by, reason=reason, run_id=run.run_id)


def usage_metadata(run: StageRun) -> dict[str, Any]:
    """Return the GitHub requests of this run's stage, for the asset's page; empty without any."""
    with run.database.transaction() as connection:
        totals = [total for total in usage_totals(connection, run.month, run.run_id) if total.stage is run.stage]
    if not totals:
        return {}
    columns = ("requests", "points", "retries", "limit_hits", "seconds", "waited_seconds", "bytes")
    records = [
        dg.TableRecord({"resource": total.resource, **{name: round(getattr(total, name), 1) for name in columns}})
        for total in totals
    ]
    return {
        "github": dg.MetadataValue.table(records),
        **{f"github_{name}": round(sum(getattr(total, name) for total in totals), 1) for name in columns},
    }


def report(
    context: dg.AssetExecutionContext, summary: StageSummary, rows: int | None = None, **extra: Any
) -> dg.MaterializeResult[Any]:
    """Return the metadata of a materialization: counts, costs, failures with reasons, and *extra*.

    Raises ValueError if a name of *extra* is taken.
    """
    failed = [entry for entry in summary.standing if entry.state is ItemState.FAILED]
    if summary.dry_run:
        context.log.info(
            "dry run: %d items would be done: %s", len(summary.would_do), ", ".join(summary.would_do[:SHOWN_ITEMS])
        )
    metadata: dict[str, Any] = {
        "items_done": summary.count(ItemState.DONE),
        "items_rejected": summary.count(ItemState.REJECTED),
        "items_failed": len(failed),
        "items_skipped": summary.count(ItemState.SKIPPED),
        "worked_in_this_run": len(summary.worked),
        "unchanged": summary.unchanged,
        "reasons": dg.MetadataValue.md(_reasons(summary)),
        "seconds": round(summary.cost.seconds, 2),
    }
    spent = {name: value for name, value in summary.cost.model_dump(exclude={"seconds"}).items() if value}
    metadata.update(spent)
    if summary.dry_run:
        metadata["dry_run_would_do"] = dg.MetadataValue.json(list(summary.would_do))
    if failed:
        records = [
            dg.TableRecord({"item": entry.item, "kind": entry.reason, "detail": entry.detail[:300]})
            for entry in failed[:SHOWN_ITEMS]
        ]
        metadata["failures"] = dg.MetadataValue.table(records)
    if rows is not None:
        metadata["dagster/row_count"] = rows
    if taken := sorted(metadata.keys() & extra.keys()):
        raise ValueError(f"metadata of the stage would overwrite {', '.join(taken)}; give it another name")
    metadata.update(extra)
    return dg.MaterializeResult(metadata=metadata)


def _reasons(summary: StageSummary) -> str:
    if not summary.reasons:
        return "every item is done"
    return "\n".join(["| why not | items |", "|---|---|", *(f"| {why} | {n} |" for why, n in summary.reasons.items())])
