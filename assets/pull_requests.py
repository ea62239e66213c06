"""`pull_requests`: every pull request merged in the window, and its true base commit and patch."""

from collections import Counter
from typing import Any

import dagster as dg
from pydantic import Field

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.items import ItemKind, ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import CandidateSource
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import INTAKE_COUNTS
from formulacode_dagster.operating.store.ledger import entries_of
from formulacode_dagster.operating.store.pull_requests import items_by_key, iterate_done, known_among
from formulacode_dagster.operating.store.views import RELATIONS
from formulacode_dagster.operating.store.windows import checksum_of_month
from formulacode_dagster.sources.github import checks as verdicts
from formulacode_dagster.sources.intake.pull_requests.stage import PullRequestTools, run
from formulacode_dagster.sources.intake.pull_requests.windows import tracked_repositories
from formulacode_dagster.sources.intake.pull_requests.witness import ask_mirrors
from resources.intake import IntakeResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, failures_within_budget, month_check
from .materialize import ItemConfig, report, stage_run, usage_metadata
from .partitions import MONTHS
from .repositories import repositories
from .stage_asset import stage_asset


class PullRequestsConfig(ItemConfig):
    """Run config of `pull_requests`."""

    dashboards: list[str] = Field(
        default=[], description="dashboards whose breakpoints are made candidates first, of every month"
    )


@month_check(blocking=True)
def counts_match(month: JudgedMonth) -> CheckFinding:
    """As many merged pull requests are stored as GitHub reports, repository by repository."""
    counts = month.rows(INTAKE_COUNTS)
    with month.database.transaction() as connection:
        tracked = tracked_repositories(connection, month.key)
        stored = Counter(
            repository for repository, _ in items_by_key(connection, month.key, CandidateSource.PULL_REQUEST)
        )
        entries = entries_of(connection, month.key, Stage.PULL_REQUESTS)
    windows = [entry for entry in entries if entry.kind is ItemKind.REPOSITORY]
    return verdicts.counts_match(month.key, tracked, counts, stored, windows)


@month_check(blocking=True)
def window_and_shas_valid(month: JudgedMonth) -> CheckFinding:
    """Every merge lies in the month, every SHA is valid, nothing is stored twice."""
    with month.database.transaction() as connection:
        return verdicts.window_and_shas_valid(month.key, iterate_done(connection, month.key, Stage.PULL_REQUESTS))


@month_check(blocking=False)
def search_shows_all(month: JudgedMonth) -> CheckFinding:
    """GitHub's search shows every merge that the repositories' own lists have; others are taken in by number."""
    return verdicts.search_shows_all(month.rows(INTAKE_COUNTS))


@month_check(blocking=False, pool="github")
def mirror_knows_no_more(month: JudgedMonth, mirrors: MirrorsResource) -> CheckFinding:
    """The default branches of the mirrors show no merge that GitHub's search did not find.

    A search index can lack a repository, and then counts nothing.
    """
    with month.database.transaction() as connection:
        tracked = tracked_repositories(connection, month.key)
    taken_in = set(month.items(Stage.PULL_REQUESTS, ItemState.DONE))
    asked = [repository for repository in tracked if repository.full_name in taken_in]
    told = ask_mirrors(mirrors.cache(), asked, Month.parse(month.key))
    with month.database.transaction() as connection:
        known = known_among(connection, [merge.key for merge in told.merges])
    unseen = [f"{merge.item} ({merge.sha[:12]})" for merge in told.merges if merge.key not in known]
    return verdicts.mirror_knows_no_more(unseen, told.unread, len(told.merges))


@stage_asset(
    Stage.PULL_REQUESTS,
    deps=[repositories],
    partitions_def=MONTHS,
    group_name="intake",
    kinds={"github", "git", "postgres"},
    description="One row is a pull request merged in the month, with the base for which base + patch = merge tree.",
    columns=RELATIONS["pull_requests"].columns,
    pool="github",
    checks=[failures_within_budget, counts_match, window_and_shas_valid, search_shows_all, mirror_knows_no_more],
)
def pull_requests(
    context: dg.AssetExecutionContext,
    config: PullRequestsConfig,
    postgres: PostgresResource,
    intake: IntakeResource,
    mirrors: MirrorsResource,
) -> dg.MaterializeResult[Any]:
    """Request the windows of all repositories at once, then read each base and patch from the mirror."""
    with stage_run(context, postgres, pull_requests, config, source=intake) as stage:
        cache = mirrors.cache()
        for dashboard in () if config.dry_run else config.dashboards:
            # frames take a library that loading the definitions does without
            from formulacode_dagster.measuring.breakpoints.candidates import enter_candidates_of

            enter_candidates_of(stage.database, cache, dashboard)
        source = intake.source(stage.stage, stage.month, stage.run_id)
        summary = run_loop(run(stage, PullRequestTools(source, cache, intake.state())))
        with stage.database.transaction() as connection:
            checksum = checksum_of_month(connection, stage.month)
    facts: dict[str, Any] = {**summary.counts, "checksum": checksum}
    if cache.evicted:
        facts["mirrors_evicted"] = ", ".join(map(str, cache.evicted))
    return report(context, summary, rows=facts.pop("merged"), **facts, **usage_metadata(stage))
