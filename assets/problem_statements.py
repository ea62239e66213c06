"""`problem_statements`: the rendered, anonymized task text."""

import asyncio
from typing import Any

import dagster as dg

from formulacode_dagster.items.fingerprint import fingerprint
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import Outcome, WorkItem
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.problems.render import TEMPLATE_VERSION, render_problem_statement
from formulacode_dagster.store.artifacts import PROBLEM_STATEMENTS, REPOSITORIES
from formulacode_dagster.store.pull_requests import done_in, patch_of
from resources.postgres import PostgresResource

from .materialize import ItemConfig, report, stage_asset, stage_run


@stage_asset(
    Stage.PROBLEM_STATEMENTS,
    group="selection",
    kinds={"jinja", "postgres"},
    description="One row is the text a solver is given: people anonymized, the solution's lines withheld.",
    columns={
        "text": ("text", "markdown"),
        "issues": ("jsonb", "issues that were rendered"),
        "withheld_lines": ("integer", "lines kept out because the patch holds them"),
    },
)
def problem_statements(
    context: dg.AssetExecutionContext, config: ItemConfig, postgres: PostgresResource
) -> dg.MaterializeResult[Any]:
    """Render a statement for every performance pull request."""
    with stage_run(context, postgres, Stage.PROBLEM_STATEMENTS, config) as run:
        with run.database.transaction() as connection:
            found = done_in(connection, run.month, Stage.CLASSIFICATIONS)
            described = {row.id: row.description for row in REPOSITORIES.read(connection, run.month)}

        def render(item: WorkItem[PullRequest]) -> Outcome[ProblemStatement]:
            pr = item.value
            with run.database.transaction() as connection:
                patch = patch_of(connection, pr)
            description = described.get(pr.facts.repository_id, "")
            statement = render_problem_statement(pr, repository_description=description, patch=patch)
            return Outcome(statement, detail=f"{statement.withheld_lines} lines withheld")

        items = [WorkItem(pr.item, _inputs(pr, described), pr) for pr in found]
        summary = asyncio.run(run_items(run, items, in_thread(render), PROBLEM_STATEMENTS.save))
    return report(context, summary)


def _inputs(pr: PullRequest, described: dict[int, str]) -> str:
    facts = pr.facts.model_dump(mode="json", include={"title", "body", "author", "linked_issues"})
    return fingerprint(
        Stage.PROBLEM_STATEMENTS, facts, pr.change.patch_sha256, described.get(pr.facts.repository_id), TEMPLATE_VERSION
    )
