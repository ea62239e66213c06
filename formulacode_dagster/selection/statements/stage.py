"""The stage `problem_statements`: render the text of every performance pull request from its discussion."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from formulacode_dagster.models.items import ItemKind, Stage
from formulacode_dagster.models.links import LinkWalk
from formulacode_dagster.models.problem import BranchCommit, ProblemStatement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import Outcome, StageRun, StageSummary, WorkItem
from formulacode_dagster.operating.store.artifacts import DISCUSSIONS, PROBLEM_STATEMENTS, REPOSITORIES
from formulacode_dagster.operating.store.pull_requests import done_in, patch_of
from formulacode_dagster.selection.classification.model_access import ModelAccess, SpendingAccount
from formulacode_dagster.sources.git.branch import branch_commits
from formulacode_dagster.sources.git.landing import wanted_commits
from formulacode_dagster.sources.git.log import login_of
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache

from .judging import JUDGES_VERSION, StatementJudges
from .model_writing import Models, improve
from .statements import Stated, state_problem
from .writing import TEMPLATE_VERSION

MOST_OF_A_MESSAGE = 20_000
_NOBODY = re.compile(r"\[bot\]|^GitHub <|<noreply@[\w.-]+>|^(?:root|unknown|nobody) <", re.IGNORECASE)


@dataclass(frozen=True)
class StatementModels:
    """Models that write and judge statements; none by default."""

    models: ModelAccess
    writer: str = ""
    judges: tuple[str, ...] = ()

    @asynccontextmanager
    async def connect(self, account: SpendingAccount) -> AsyncIterator[Models]:
        """Connect to them, all paid from one budget; raises as `ModelAccess.connect`."""
        names = [self.writer] if self.writer else []
        async with self.models.connect(account, [*names, *self.judges]) as connected:
            judges = connected[len(names) :]
            yield Models(connected[0] if names else None, StatementJudges(judges) if judges else None)


@dataclass(frozen=True)
class StatementTools:
    """Mirrors, which know the commits of a branch and the names at its base, and models."""

    mirrors: MirrorCache
    models: StatementModels


async def run(stage: StageRun, tools: StatementTools) -> StageSummary:
    """Render the pending statements of the month; raises as `run_items` and `ModelAccess.connect`.

    A statement whose discussion has changed since is rendered again.
    """
    with stage.database.transaction() as connection:
        prs = done_in(connection, stage.month, Stage.DISCUSSIONS)
        descriptions = {row.id: row.description for row in REPOSITORIES.read(connection, stage.month)}
        discussions = DISCUSSIONS.read_keys(connection, stage.month, [pr.key for pr in prs])
        before = PROBLEM_STATEMENTS.read(connection, stage.month)
    walks = {key: row.walk for key, row in discussions.items()}
    stale = {key for row in before if (key := (row.repository_id, row.number)) in walks and row.walk != walks[key]}

    def render(pr: PullRequest, walk: LinkWalk | None) -> tuple[Stated, bytes]:
        with stage.database.transaction() as connection:
            patch = patch_of(connection, pr)
        wanted = (pr.change.base_sha, *wanted_commits([pr.facts]))
        with tools.mirrors.ensure(pr.facts.repository, commits=wanted) as mirror:

            def names_at_base(names: Collection[str]) -> frozenset[str]:
                """Return those of *names* that a file of the base contains: such a name may be an old one."""
                return mirror.words_at(pr.change.base_sha, names)

            stated = state_problem(
                pr.facts,
                patch=patch,
                repository_description=descriptions.get(pr.facts.repository_id, ""),
                walk=walk,
                commits=commits_of(mirror, pr),
                names_at_base=names_at_base,
            )
        return stated, patch

    async with tools.models.connect(stage) as models:

        async def work(item: WorkItem[PullRequest]) -> Outcome[ProblemStatement]:
            stated, patch = await asyncio.to_thread(render, item.value, walks.get(item.value.key))
            statement, cost = await improve(stated, patch=patch, models=models)
            return Outcome(statement, cost, _detail(statement))

        items = [WorkItem(pr.item, _inputs(pr, descriptions, models.names), pr) for pr in prs]
        redo = {pr.item for pr in prs if pr.key in stale}
        return await run_items(stage, ItemKind.PULL_REQUEST, items, work, PROBLEM_STATEMENTS.save, redo=redo)


def commits_of(mirror: Mirror, pr: PullRequest) -> tuple[BranchCommit, ...]:
    """Return the commits of *pr*, with everyone whom git names in them."""
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
    """Return the names by which a person may be called; forges and robots are no people, and `Mark` may be a word."""
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
