"""`problem_statements`: the rendered, anonymized task text, and the issues behind it."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import dagster as dg

from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.runner import run_items
from formulacode_dagster.items.work import Outcome, StageSummary, WorkItem
from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.links import LinkWalk
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.problems import checks as verdicts
from formulacode_dagster.problems.render import TEMPLATE_VERSION, render_problem_statement
from formulacode_dagster.store.artifacts import PROBLEM_STATEMENTS, REPOSITORIES
from formulacode_dagster.store.pull_requests import done_in, items_by_key, patch_of
from resources.intake import IntakeResource
from resources.postgres import PostgresResource

from .checks import JudgedMonth, month_check
from .classifications import classifications
from .materialize import ItemConfig, booked, report, stage_asset, stage_run, usage_metadata
from .partitions import MONTHS

WALKED = "references followed two steps, as they stood at the merge"
STORED = "the closing issues stored at intake: GitHub is not asked offline, nor without a token"


@month_check(blocking=True)
def nothing_leaks(month: JudgedMonth) -> Judgement:
    """No problem statement holds a line of its solution."""
    with month.database.transaction() as connection:
        found = {pr.key: pr for pr in done_in(connection, month.key, Stage.PROBLEM_STATEMENTS)}
        statements = PROBLEM_STATEMENTS.read_keys(connection, month.key, found)
        # patches are read one at a time
        pairs = ((statement, patch_of(connection, found[key])) for key, statement in statements.items())
        return verdicts.nothing_leaks(pairs, items_by_key(connection, month.key))


@stage_asset(
    Stage.PROBLEM_STATEMENTS,
    deps=[classifications],
    partitions_def=MONTHS,
    group_name="selection",
    kinds={"github", "jinja", "postgres"},
    description="One row is the text a solver is given: people anonymized, the solution's lines withheld.",
    columns={
        "text": ("text", "markdown"),
        "issues": ("jsonb", "issues that were rendered"),
        "withheld_lines": ("integer", "lines kept out because the patch holds them"),
        "walk": ("jsonb", "the issues whole, where they were found, and the links that could not be read"),
    },
    pool="github",
    checks=[nothing_leaks],
)
def problem_statements(
    context: dg.AssetExecutionContext, config: ItemConfig, postgres: PostgresResource, intake: IntakeResource
) -> dg.MaterializeResult[Any]:
    """Follow the references of every performance pull request once, and render its statement."""
    with stage_run(context, postgres, problem_statements, config) as run:
        with run.database.transaction() as connection:
            found = done_in(connection, run.month, Stage.CLASSIFICATIONS)
            described = {row.id: row.description for row in REPOSITORIES.read(connection, run.month)}
            before = PROBLEM_STATEMENTS.read(connection, run.month)
        known = {(row.repository_id, row.number): row.walk for row in before if row.walk and not config.force}
        source = intake.links(run.stage, run.month, run.run_id)
        # what was rendered while there was nobody to ask is looked at again once there is
        unasked = {(row.repository_id, row.number) for row in before if source and not row.walk}

        def render(pr: PullRequest, walk: LinkWalk | None) -> ProblemStatement:
            with run.database.transaction() as connection:
                patch = patch_of(connection, pr)
            description = described.get(pr.facts.repository_id, "")
            return render_problem_statement(pr.facts, patch=patch, repository_description=description, walk=walk)

        async def render_all() -> StageSummary:
            async with AsyncExitStack() as stack:
                links = await stack.enter_async_context(booked(run, source)) if source else None

                async def work(item: WorkItem[PullRequest]) -> Outcome[ProblemStatement]:
                    pr, cost = item.value, Cost()
                    walk = known.get(pr.key)
                    if walk is None and links is not None:
                        walk, cost = await links.walk(pr.facts)
                    statement = await asyncio.to_thread(render, pr, walk)
                    return Outcome(statement, cost, _detail(statement))

                return await run_items(
                    run, items, work, PROBLEM_STATEMENTS.save, redo={pr.item for pr in found if pr.key in unasked}
                )

        items = [WorkItem(pr.item, _inputs(pr, described), pr) for pr in found]
        summary = asyncio.run(render_all())
        with run.database.transaction() as connection:
            rows = PROBLEM_STATEMENTS.read_keys(connection, run.month, [pr.key for pr in found]).values()
        walks = [row.walk for row in rows if row.walk]
    return report(
        context,
        summary,
        issues_from=WALKED if source else STORED,
        pull_requests_walked=len(walks),
        linked_issues=sum(len(walk.links) for walk in walks),
        unreadable_links=sum(len(walk.unreadable) for walk in walks),
        **usage_metadata(run),
    )


def _inputs(pr: PullRequest, described: dict[int, str]) -> str:
    facts = pr.facts.model_dump(mode="json", include={"title", "body", "author", "linked_issues"})
    return fingerprint(
        Stage.PROBLEM_STATEMENTS, facts, pr.change.patch_sha256, described.get(pr.facts.repository_id), TEMPLATE_VERSION
    )


def _detail(statement: ProblemStatement) -> str:
    walk = statement.walk
    unread = f", {len(walk.unreadable)} links unreadable" if walk and walk.unreadable else ""
    return f"{len(statement.issues)} issues{unread}, {statement.withheld_lines} lines withheld"
