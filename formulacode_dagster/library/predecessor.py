"""Names and call forms of the predecessor, `datasmith`, for scripts that were written for it.

Each is a thin name for a part of this library, which new scripts use directly. `docs/coming-from-datasmith.md` lists
them, and what became of commands, options and tables.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from formulacode_dagster.building.synthesis.docker_context import DockerContext
from formulacode_dagster.building.verification.verifiers import (
    MultiVerifier,
    ProfileVerifier,
    SmokeVerifier,
    Verifier,
    VerifierResult,
)
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.links import Link
from formulacode_dagster.models.pull_request import ChangedFile
from formulacode_dagster.sources.github import links as link_walk
from formulacode_dagster.sources.github.timeline import TimelineEvent
from formulacode_dagster.sources.github.transport import tokens
from resources.settings import read_settings

from . import client, hooks, links
from .classifying import BatchEntry, ClassifyJudge, PerfClassifier
from .client import PR
from .image_manager import ImageManager
from .publishing import HuggingFacePublisher
from .records import opened
from .records import records as records_from_supabase
from .statement import render_problem_statement
from .synthesizer import NotPlannedError, Synthesizer

__all__ = [
    "PR",
    "ClassifyJudge",
    "ClassifyPRsRunner",
    "DockerContext",
    "GitHubClient",
    "HookRegistry",
    "HuggingFacePublisher",
    "ImageManager",
    "MultiObjVerifier",
    "PerfClassifier",
    "ProfileVerifier",
    "SmokeVerifier",
    "SynthesizeImagesRunner",
    "Synthesizer",
    "TokenPool",
    "Verifier",
    "VerifierResult",
    "get_client",
    "records_from_supabase",
    "render_problem_statement",
    "scrape_links",
    "supabase_cached",
]

_LOG = logging.getLogger(__name__)
HookRegistry: Final = hooks.HookRegistry()
"""The one registry, in the database of the settings: `HookRegistry.register(…)` and `.call(…)`, without an instance."""
supabase_cached: Final = HookRegistry.cached
"""Decorator of a function whose first argument is a pull request; its results are kept in Postgres."""
MultiObjVerifier = MultiVerifier


class TokensOfSettings(tokens.TokenPool):
    """A pool of *tokens*, by default those of `GH_TOKENS`."""

    def __init__(self, tokens: Sequence[str] | None = None) -> None:
        super().__init__(read_settings().github_tokens if tokens is None else tokens)


TokenPool = TokensOfSettings


class OwnerRepoClient:
    """A client to which owner, repository and number are three arguments; raises as the library's `GitHubClient`."""

    def __init__(self, pool: tokens.TokenPool | None = None) -> None:
        self.client = client.GitHubClient(pool)

    async def get_pr(self, owner: str, repo: str, number: int) -> PR:
        """Return the facts of a merged pull request."""
        return await self.client.get_pr(f"{owner}/{repo}", number)

    async def get_issue(self, owner: str, repo: str, number: int, *, before: datetime | None = None) -> Link:
        """Return an issue with its comments."""
        return await self.client.get_issue(f"{owner}/{repo}", number, before=before)

    async def get_diff(self, owner: str, repo: str, number: int) -> str:
        """Return the diff as text; bytes that are not UTF-8 are replaced."""
        return (await self.client.get_diff(f"{owner}/{repo}", number)).decode(errors="replace")

    async def get_files(self, owner: str, repo: str, number: int) -> tuple[ChangedFile, ...]:
        """Return every changed file."""
        return await self.client.get_files(f"{owner}/{repo}", number)

    async def get_timeline(self, owner: str, repo: str, number: int) -> tuple[TimelineEvent, ...]:
        """Return the events of an issue or pull request, oldest first."""
        return await self.client.get_timeline(f"{owner}/{repo}", number)

    async def __aenter__(self) -> OwnerRepoClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.__aexit__(None, None, None)


GitHubClient = OwnerRepoClient


async def scrape_links(
    pr: PR,
    get_issue: Callable[..., Any] | None = None,
    *,
    depth: int = link_walk.DEPTH,
    only_issues: bool = True,
    limit: int = link_walk.LIMIT,
) -> links.Links:
    """Return the issues behind *pr*, read by the client of *get_issue*, a method of it; raises as the library's."""
    reader = getattr(get_issue, "__self__", None)
    if isinstance(reader, OwnerRepoClient):
        reader = reader.client
    return await links.scrape_links(pr, client=reader, depth=depth, only_issues=only_issues, limit=limit)


@contextmanager
def get_client() -> Iterator[Connection]:
    """Connect to the database of the settings, for SQL of one's own; writes are committed at the end of the block."""
    with opened(None) as store, store.transaction() as connection:
        yield connection


class ClassifyPRsRunner:
    """Classifies many pull requests; answers are kept, and a failed one does not stop the others."""

    def __init__(self, classifier: PerfClassifier, judge: ClassifyJudge | None = None, n_concurrent: int = 8) -> None:
        self._classifier = classifier.with_judge(judge) if judge is not None else classifier
        self._concurrency = n_concurrent

    async def run(self, prs: Sequence[PR]) -> list[BatchEntry]:
        """Return how each of *prs* ended, in their order; raises as `PerfClassifier.classify_many`."""
        async with self._classifier as classifier:
            return await classifier.classify_many(prs, max_concurrency=self._concurrency)


class SynthesizeImagesRunner:
    """Builds the images of many pull requests; those of one month one after another, since a month has one builder."""

    def __init__(self, synthesizer: Synthesizer, verifier: Verifier | None = None, n_concurrent: int = 3) -> None:
        self._synthesizer, self._verifier = synthesizer, verifier
        self._concurrency = n_concurrent

    async def run(self, prs: Sequence[PR]) -> list[DockerContext | None]:
        """Return the context of each of *prs*; None where no attempt made one, and for a pull request that fails or was
        not planned, with a warning in the log. Raises what stops all of them, as `Synthesizer.run`.
        """
        permits = asyncio.Semaphore(self._concurrency)
        months: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

        async def build(pr: PR) -> DockerContext | None:
            owner, _, repo = pr.repository.partition("/")
            async with months[pr.facts.month if pr.facts else ""], permits:
                run = replace(self._synthesizer).run
                try:
                    return await asyncio.to_thread(run, owner, repo, pr.issue_number, verifier=self._verifier)
                except (NotPlannedError, ItemFailure) as error:
                    _LOG.warning("%s has no image: %s", pr.item, error)
                    return None

        return await asyncio.gather(*map(build, prs))
