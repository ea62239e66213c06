"""The stage `problem_statements`: the references of each performance pull request followed once, its text rendered."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from formulacode_dagster.models.identity import is_stand_in
from formulacode_dagster.models.intake import Metered
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.links import LinkWalk
from formulacode_dagster.models.problem import BranchCommit, ProblemStatement
from formulacode_dagster.models.pull_request import MergedPullRequest, PullRequest
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.metering import metered
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import PROBLEM_STATEMENTS, REPOSITORIES
from formulacode_dagster.operating.store.pull_requests import done_in, patch_of
from formulacode_dagster.operating.store.spending import Spent, book_call, spending_of
from formulacode_dagster.sources.git.branch import branch_commits
from formulacode_dagster.sources.git.landing import wanted_commits
from formulacode_dagster.sources.git.log import login_of
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache

from .judging import JUDGES_VERSION
from .model_writing import Models, improve
from .statements import Stated, state_problem
from .writing import TEMPLATE_VERSION

MOST_OF_A_MESSAGE = 20_000
_NOBODY = re.compile(r"\[bot\]|^GitHub <|<noreply@github\.com>|^(?:root|unknown|nobody) <", re.IGNORECASE)
ModelsInUse = Callable[[Cost, Callable[[Cost], Cost]], AbstractAsyncContextManager[Models]]
"""Opens the models, which are closed afterwards."""


class LinkWalker(Metered, Protocol):
    """Follows the references of pull requests."""

    async def walk(self, facts: MergedPullRequest) -> tuple[LinkWalk, Cost]:
        """What *facts* lead to, and what asking for it cost."""
        ...


@dataclass(frozen=True)
class Statements:
    """What one run of the stage did, and the walks that the month's statements come from."""

    summary: StageSummary
    walks: tuple[LinkWalk, ...]


async def render_statements(
    run: StageRun, links: LinkWalker | None, mirrors: MirrorCache, models: ModelsInUse
) -> Statements:
    """Render what is pending of the month; without *links*, from what intake stored. Raises as `run_items`.

    *mirrors* tell the commits of the branch, which no text may tell of, and the names that the base knows. *models* are
    opened with what the month has cost so far, and where to book what they spend.
    """
    with run.database.transaction() as connection:
        prs = done_in(connection, run.month, Stage.CLASSIFICATIONS)
        descriptions = {row.id: row.description for row in REPOSITORIES.read(connection, run.month)}
        before = PROBLEM_STATEMENTS.read(connection, run.month)
        spent = Cost.total(spending_of(connection, run.month).values())
    walked = {(row.repository_id, row.number): row.walk for row in before if row.walk and not run.options.force}
    # what was rendered while there was nobody to ask is looked at again once there is
    unasked = {
        (row.repository_id, row.number) for row in before if links and not row.walk and not is_stand_in(row.number)
    }

    def book(cost: Cost) -> Cost:
        with run.database.transaction() as connection:
            return book_call(connection, Spent(run.month, run.stage, run.run_id, cost))

    def render(pr: PullRequest, walk: LinkWalk | None) -> tuple[Stated, bytes]:
        with run.database.transaction() as connection:
            patch = patch_of(connection, pr)
        description = descriptions.get(pr.facts.repository_id, "")

        wanted = (pr.change.base_sha, *wanted_commits([pr.facts]))
        with mirrors.ensure(pr.facts.repository, commits=wanted) as mirror:

            def names_at_base(names: Collection[str]) -> frozenset[str]:
                """Those of *names* that stand in a file of the base: one in issue and patch may be an old one."""
                return mirror.words_at(pr.change.base_sha, names)

            stated = state_problem(
                pr.facts,
                patch=patch,
                repository_description=description,
                walk=walk,
                commits=commits_of(mirror, pr),
                names_at_base=names_at_base,
            )
        return stated, patch

    async with AsyncExitStack() as stack:
        if links is not None:
            await stack.enter_async_context(metered(run, links))
        asked = await stack.enter_async_context(models(spent, book))

        async def work(item: WorkItem[PullRequest]) -> Outcome[ProblemStatement]:
            pr, cost = item.value, Cost()
            walk = walked.get(pr.key)
            if walk is None and links is not None and not is_stand_in(pr.facts.number):
                walk, cost = await links.walk(pr.facts)
            stated, patch = await asyncio.to_thread(render, pr, walk)
            statement, price = await improve(stated, patch=patch, models=asked)
            return Outcome(statement, cost + price, _detail(statement))

        items = [WorkItem(pr.item, _inputs(pr, descriptions, asked.names), pr) for pr in prs]
        redo = {pr.item for pr in prs if pr.key in unasked}
        summary = await run_items(run, items, work, PROBLEM_STATEMENTS.save, redo=redo)
    with run.database.transaction() as connection:
        rows = PROBLEM_STATEMENTS.read_keys(connection, run.month, [pr.key for pr in prs]).values()
    return Statements(summary, tuple(row.walk for row in rows if row.walk))


def commits_of(mirror: Mirror, pr: PullRequest) -> tuple[BranchCommit, ...]:
    """What *pr* brought, with all whom git names in it."""
    commits = branch_commits(mirror, pr.change.base_sha, (pr.facts.head_sha, pr.facts.merge_commit_sha))
    return tuple(
        BranchCommit(
            sha=commit.sha,
            message=commit.message[:MOST_OF_A_MESSAGE],
            people=tuple(
                dict.fromkeys(
                    (
                        *_names(commit.author, commit.author_email),
                        *_names(commit.committer, commit.committer_email),
                    )
                )
            ),
        )
        for commit in commits
    )


def _names(name: str, mail: str) -> Iterator[str]:
    """By which somebody may be called; forges and robots are nobody, and `Mark` alone may be a word."""
    if _NOBODY.search(f"{name} <{mail}>"):
        return
    if " " in name:
        yield name
    yield from (known for known in (mail, login_of("", mail)) if known)


def _inputs(pr: PullRequest, descriptions: Mapping[int, str], models: tuple[str, ...]) -> str:
    facts = pr.facts.model_dump(mode="json", include={"title", "body", "author", "created_at", "linked_issues"})
    description = descriptions.get(pr.facts.repository_id)
    commits = (pr.change.base_sha, pr.change.patch_sha256)
    asked = (*models, JUDGES_VERSION) if any(models) else ()
    return fingerprint(Stage.PROBLEM_STATEMENTS, facts, commits, description, TEMPLATE_VERSION, asked)


def _detail(statement: ProblemStatement) -> str:
    walk = statement.walk
    unread = f", {len(walk.unreadable)} links unreadable" if walk and walk.unreadable else ""
    left_out = len({leak.where for leak in statement.left_out})
    return f"{len(statement.issues)} issues shown, {left_out} left out{unread}"
