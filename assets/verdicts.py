"""The evidence behind each gate: rows of the month, handed to the pure verdict functions of the domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

from formulacode_dagster.environments import gates as environment_gates
from formulacode_dagster.github import gates as github_gates
from formulacode_dagster.images import gates as image_gates
from formulacode_dagster.measurement import gates as measurement_gates
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.gate import GateVerdict
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import FIRST_MONTH, Month
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.problems import gates as problem_gates
from formulacode_dagster.release import gates as release_gates
from formulacode_dagster.selection import gates as selection_gates
from formulacode_dagster.store import artifacts, ledger
from formulacode_dagster.store.artifacts import Artifact, M
from formulacode_dagster.store.pull_requests import done_in, items_by_key, patch_of
from resources.hub import HubResource

HISTORY_MONTHS = 12
"""How far back the control limits look."""


@dataclass(frozen=True)
class Evidence:
    """Where a judge may look: the month's rows, and the destination of the dataset."""

    connection: Connection
    month: str
    hub: HubResource

    def rows(self, artifact: Artifact[M]) -> list[M]:
        """All rows of the month."""
        return artifact.read(self.connection, self.month)

    def done_rows(self, artifact: Artifact[M], stage: Stage) -> list[M]:
        """Rows of the items that *stage* ended as done."""
        keys = [pr.key for pr in done_in(self.connection, self.month, stage)]
        return list(artifact.read_keys(self.connection, self.month, keys).values())

    def items(self, stage: Stage, state: ItemState) -> list[str]:
        """Names of the items of *stage* in *state*."""
        return ledger.items_in_state(self.connection, self.month, stage, state)


def not_empty(evidence: Evidence) -> GateVerdict:
    """Of `repositories`."""
    return github_gates.repositories_not_empty(evidence.month, evidence.rows(artifacts.REPOSITORIES))


def every_repository_resolves(evidence: Evidence) -> GateVerdict:
    """Of `repositories`."""
    return github_gates.every_repository_resolves(evidence.month, evidence.rows(artifacts.REPOSITORIES))


def counts_match(evidence: Evidence) -> GateVerdict:
    """Of `pull_requests`; a repository whose window failed has no count, and is named all the same."""
    verdict = github_gates.counts_match(evidence.month, evidence.rows(artifacts.INTAKE_COUNTS))
    failed = [
        f"{entry.item}: {entry.detail}"
        for entry in ledger.entries_of(evidence.connection, evidence.month, Stage.PULL_REQUESTS)
        if entry.state is ItemState.FAILED and "#" not in entry.item and entry.reason != "vanished"
    ]
    if not failed:
        return verdict
    summary = f"{verdict.summary}; {len(failed)} repositories could not be taken in"
    return verdict.model_copy(
        update={"passed": False, "summary": summary, "offenders": (*verdict.offenders, *failed)[:50]}
    )


def window_and_shas_valid(evidence: Evidence) -> GateVerdict:
    """Of `pull_requests`."""
    return github_gates.window_and_shas_valid(
        evidence.month, done_in(evidence.connection, evidence.month, Stage.PULL_REQUESTS)
    )


def every_candidate_has_verdict(evidence: Evidence) -> GateVerdict:
    """Of `classifications`."""
    names = items_by_key(evidence.connection, evidence.month)
    found = done_in(evidence.connection, evidence.month, Stage.PULL_REQUESTS)
    skipped = set(evidence.items(Stage.CLASSIFICATIONS, ItemState.SKIPPED))
    judged = evidence.rows(artifacts.CLASSIFICATIONS)
    return selection_gates.every_candidate_has_verdict(
        evidence.month,
        candidates=[pr.item for pr in found if pr.item not in skipped],
        classified=[names[row.repository_id, row.number] for row in judged if (row.repository_id, row.number) in names],
        failed=evidence.items(Stage.CLASSIFICATIONS, ItemState.FAILED),
        rejected=evidence.items(Stage.CLASSIFICATIONS, ItemState.REJECTED),
    )


def share_of_positives(evidence: Evidence) -> GateVerdict:
    """Of `classifications`, against the months before."""
    history: list[tuple[int, int]] = []
    month = Month.parse(evidence.month)
    for _ in range(HISTORY_MONTHS):
        if month.key <= FIRST_MONTH:
            break
        month = month.previous()
        positives, candidates = _share(evidence, month.key)
        if candidates:
            history.append((positives, candidates))
    positives, candidates = _share(evidence, evidence.month)
    return selection_gates.share_of_positives(evidence.month, positives, candidates, history)


def _share(evidence: Evidence, month: str) -> tuple[int, int]:
    rows = artifacts.CLASSIFICATIONS.read(evidence.connection, month)
    return sum(row.is_performance for row in rows), len(rows)


def nothing_leaks(evidence: Evidence) -> GateVerdict:
    """Of `problem_statements`; patches are read one at a time."""

    def with_patches() -> Iterator[tuple[ProblemStatement, bytes]]:
        found = {pr.key: pr for pr in done_in(evidence.connection, evidence.month, Stage.PROBLEM_STATEMENTS)}
        statements = artifacts.PROBLEM_STATEMENTS.read_keys(evidence.connection, evidence.month, list(found))
        for key, statement in statements.items():
            yield statement, patch_of(evidence.connection, found[key])

    names = items_by_key(evidence.connection, evidence.month)
    return problem_gates.nothing_leaks(evidence.month, with_patches(), names)


def _environments(evidence: Evidence) -> list[Environment]:
    return evidence.done_rows(artifacts.ENVIRONMENTS, Stage.ENVIRONMENTS)


def every_lock_is_hashed(evidence: Evidence) -> GateVerdict:
    """Of `environments`."""
    return environment_gates.every_lock_is_hashed(Month.parse(evidence.month), _environments(evidence))


def interpreter_is_declared(evidence: Evidence) -> GateVerdict:
    """Of `environments`."""
    return environment_gates.interpreter_is_declared(Month.parse(evidence.month), _environments(evidence))


def _images(evidence: Evidence) -> list[BuiltImage]:
    return evidence.done_rows(artifacts.IMAGES, Stage.IMAGES)


def declared_commit(evidence: Evidence) -> GateVerdict:
    """Of `images`."""
    return image_gates.declared_commit(evidence.month, _images(evidence))


def imports(evidence: Evidence) -> GateVerdict:
    """Of `images`."""
    return image_gates.imports(evidence.month, _images(evidence))


def benchmarks_discovered(evidence: Evidence) -> GateVerdict:
    """Of `images`."""
    return image_gates.benchmarks_discovered(evidence.month, _images(evidence))


def nothing_planted(evidence: Evidence) -> GateVerdict:
    """Of `images`."""
    return image_gates.nothing_planted(evidence.month, _images(evidence))


def oracle_absent(evidence: Evidence) -> GateVerdict:
    """Of `images`."""
    return image_gates.oracle_absent(evidence.month, _images(evidence))


def speedup_is_real(evidence: Evidence) -> GateVerdict:
    """Of `measurements`: of the tasks that go on."""
    rows = evidence.done_rows(artifacts.MEASUREMENTS, Stage.MEASUREMENTS)
    return measurement_gates.speedup_is_real(evidence.month, rows)


def every_digest_pulled(evidence: Evidence) -> GateVerdict:
    """Of `published_images`."""
    published = evidence.done_rows(artifacts.PUBLISHED_IMAGES, Stage.PUBLISHED_IMAGES)
    measured = evidence.done_rows(artifacts.MEASUREMENTS, Stage.MEASUREMENTS)
    return release_gates.every_digest_pulled(evidence.month, published, measured)


def reads_back_equal(evidence: Evidence) -> GateVerdict:
    """Of `published_dataset`."""
    return release_gates.reads_back_equal(evidence.month, evidence.rows(artifacts.RELEASES))


def schema_and_ids_stable(evidence: Evidence) -> GateVerdict:
    """Of `published_dataset`, against every other release."""
    others = [row for row in artifacts.RELEASES.read_all(evidence.connection) if row.month != evidence.month]
    return release_gates.schema_and_ids_stable(evidence.month, evidence.rows(artifacts.RELEASES), others)


def released_tags_untouched(evidence: Evidence) -> GateVerdict:
    """Of `published_dataset`: asks the destination where its tags point now."""
    releases = artifacts.RELEASES.read_all(evidence.connection)
    destination = evidence.hub.destination()
    here = [row for row in releases if row.destination == destination.name]
    return release_gates.released_tags_untouched(evidence.month, here, destination.tags() if here else {})
