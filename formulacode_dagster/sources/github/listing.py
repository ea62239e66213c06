"""A second opinion on windows that search finds empty: the repository's own list of merges, which is another index.

Search reports zero for a repository that its index lacks, or that is gone although its id still resolves.
"""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.github.transport.answers import GraphQLAnswer
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .concurrency import gather_or_raise
from .counting import COUNTS_PER_REQUEST, Counted
from .nodes import RepositoryMerges, read
from .queries import newest_merges


async def contradictions(client: GitHubTransport, empty: Sequence[Counted]) -> dict[int, ItemFailure]:
    """Return why windows of *empty*, which search counts as empty, are not, by repository id.

    ItemFailures: `vanished` if the repository's name leads nowhere, `incomplete` if its list has a merge of the window,
    or cannot be read. The list is read as far as the 50 merges that were updated last.
    """
    batches = [empty[at : at + COUNTS_PER_REQUEST] for at in range(0, len(empty), COUNTS_PER_REQUEST)]
    found = await gather_or_raise(_batch(client, batch) for batch in batches)
    return {id_: failure for failures in found for id_, failure in failures.items()}


async def _batch(client: GitHubTransport, empty: Sequence[Counted]) -> dict[int, ItemFailure]:
    variables: dict[str, object] = {}
    for index, counted in enumerate(empty):
        owner, _, name = counted.name.partition("/")
        variables |= {f"owner{index}": owner, f"name{index}": name}
    try:
        answer = await client.graphql(newest_merges(len(empty)), variables)
    except ItemFailure as failure:
        if len(empty) == 1:
            return {empty[0].repository.id: _incomplete(empty[0], str(failure))}
        half = len(empty) // 2
        return {**await _batch(client, empty[:half]), **await _batch(client, empty[half:])}
    failures = {counted.repository.id: _contradiction(answer, f"r{n}", counted) for n, counted in enumerate(empty)}
    return {id_: failure for id_, failure in failures.items() if failure is not None}


def _contradiction(answer: GraphQLAnswer, alias: str, counted: Counted) -> ItemFailure | None:
    raw = answer.data.get(alias)
    if raw is None and answer.missing(alias):
        return ItemFailure(
            FailureKind.VANISHED,
            f"{counted.name} is gone from GitHub",
            why=f"its id still resolves, its name does not, and search finds nothing of it: {answer.words(alias)}",
            remedy="Deny it on the list of repositories if it stays away",
        )
    if raw is None:
        return _incomplete(counted, answer.words(alias) or "empty response")
    try:
        listed = read(RepositoryMerges, raw, f"the merges of {counted.name}")
    except ItemFailure as failure:
        return _incomplete(counted, str(failure))
    missed = [
        node.number
        for node in listed.pull_requests.nodes
        if node is not None and node.merged_at is not None and counted.window.holds(node.merged_at)
    ]
    if not missed:
        return None
    return _incomplete(counted, f"its own list has {len(missed)} of them, #{min(missed)} among them")


def _incomplete(counted: Counted, why: str) -> ItemFailure:
    what = f"search finds no merge of {counted.name} in {counted.window.qualifier}, which is not confirmed"
    return ItemFailure(FailureKind.INCOMPLETE, what, why=why, remedy="Try again")
