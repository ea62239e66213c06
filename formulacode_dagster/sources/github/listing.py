"""A second opinion on the windows that search shows: the repository's own list of merges, which is another index.

Search reports zero for a repository that its index lacks, or that is gone although its id still resolves; and count and
results both lack a merge that is not indexed yet, however it was merged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.github.transport.answers import GraphQLAnswer
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .concurrency import gather_or_raise
from .counting import COUNTS_PER_REQUEST, Counted
from .nodes import RepositoryMerges, read
from .queries import newest_merges

Listed = frozenset[int] | ItemFailure
"""Numbers of the window's merges that the repository's list has, or why the list confirms nothing."""


async def listed_merges(client: GitHubTransport, windows: Sequence[Counted]) -> dict[int, Listed]:
    """Return the merges of each of *windows* that are among the 50 that its repository updated last, by repository id.

    ItemFailures: `vanished` if the repository's name leads nowhere, `incomplete` if its list cannot be read.
    """
    batches = [windows[at : at + COUNTS_PER_REQUEST] for at in range(0, len(windows), COUNTS_PER_REQUEST)]
    found = await gather_or_raise(_batch(client, batch) for batch in batches)
    return {id_: listed for batch in found for id_, listed in batch.items()}


async def _batch(client: GitHubTransport, windows: Sequence[Counted]) -> dict[int, Listed]:
    variables: dict[str, object] = {}
    for index, counted in enumerate(windows):
        owner, _, name = counted.name.partition("/")
        variables |= {f"owner{index}": owner, f"name{index}": name}
    try:
        answer = await client.graphql(newest_merges(len(windows)), variables)
    except ItemFailure as failure:
        if len(windows) == 1:
            return {windows[0].repository.id: unconfirmed(windows[0], str(failure))}
        half = len(windows) // 2
        return {**await _batch(client, windows[:half]), **await _batch(client, windows[half:])}
    return {counted.repository.id: _listed(answer, f"r{index}", counted) for index, counted in enumerate(windows)}


def _listed(answer: GraphQLAnswer, alias: str, counted: Counted) -> Listed:
    raw = answer.data.get(alias)
    if raw is None and answer.missing(alias):
        return ItemFailure(
            FailureKind.VANISHED,
            f"{counted.name} is gone from GitHub",
            why=f"its id still resolves, its name does not: {answer.words(alias)}",
            remedy="Deny it on the list of repositories if it stays away",
        )
    if raw is None:
        return unconfirmed(counted, answer.words(alias) or "empty response")
    try:
        listed = read(RepositoryMerges, raw, f"the merges of {counted.name}")
    except ItemFailure as failure:
        return unconfirmed(counted, str(failure))
    return frozenset(
        node.number
        for node in listed.pull_requests.nodes
        if node is not None and node.merged_at is not None and counted.window.holds(node.merged_at)
    )


def unconfirmed(counted: Counted, why: str) -> ItemFailure:
    """The failure of a window that the repository's list does not confirm."""
    found = f"{counted.count} merges" if counted.count else "no merge"
    what = f"search finds {found} of {counted.name} in {counted.window.qualifier}, which is not confirmed"
    return ItemFailure(FailureKind.INCOMPLETE, what, why=why, remedy="Try again")


def unsearched(counted: Counted, missed: Collection[int]) -> ItemFailure:
    """The failure of a window of which search lacks the merges *missed*."""
    return unconfirmed(counted, f"its own list has {len(missed)} more, #{min(missed)} among them")
