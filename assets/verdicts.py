"""The evidence behind each gate: rows of the month, handed to the pure verdict functions of the domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

from formulacode_dagster.environments import checks as environment_gates
from formulacode_dagster.github import checks as github_gates
from formulacode_dagster.images import checks as image_gates
from formulacode_dagster.intake.pull_requests import tracked_repositories
from formulacode_dagster.measurement import checks as measurement_gates
from formulacode_dagster.models.check import GateVerdict
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import FIRST_MONTH, Month
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.problems import checks as problem_gates
from formulacode_dagster.release import checks as release_gates
from formulacode_dagster.selection import checks as selection_gates
from formulacode_dagster.store import artifacts, ledger
from formulacode_dagster.store.artifacts import Artifact, M
from formulacode_dagster.store.classifications import positives_by_month
from formulacode_dagster.store.pull_requests import done_in, done_items, items_by_key, iterate_done, patch_of
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
        keys = done_items(self.connection, self.month, stage)
        return list(artifact.read_keys(self.connection, self.month, keys).values())

    def items(self, stage: Stage, state: ItemState) -> list[str]:
        """Names of the items of *stage* in *state*."""
        return ledger.items_in_state(self.connection, self.month, stage, state)


def not_empty(evidence: Evidence) -> GateVerdict:
    """Of `repositories`."""
    tracked = set(evidence.items(Stage.REPOSITORIES, ItemState.DONE))
    return github_gates.repositories_not_empty(evidence.month, evidence.rows(artifacts.REPOSITORIES), tracked)


def every_repository_resolves(evidence: Evidence) -> GateVerdict:
    """Of `repositories`: of those nobody decided against."""
    rejected = set(evidence.items(Stage.REPOSITORIES, ItemState.REJECTED))
    rows = [row for row in evidence.rows(artifacts.REPOSITORIES) if row.full_name not in rejected]
    return github_gates.every_repository_resolves(evidence.month, rows)


def counts_match(evidence: Evidence) -> GateVerdict:
    """Of `pull_requests`: what was counted, against what the table holds and how each window ended."""
    entries = ledger.entries_of(evidence.connection, evidence.month, Stage.PULL_REQUESTS)
    return github_gates.counts_match(
        evidence.month,
        tracked_repositories(evidence.connection, evidence.month),
        evidence.rows(artifacts.INTAKE_COUNTS),
        Counter(repository for repository, _ in items_by_key(evidence.connection, evidence.month)),
        [entry for entry in entries if "#" not in entry.item],
    )


def window_and_shas_valid(evidence: Evidence) -> GateVerdict:
    """Of `pull_requests`."""
    return github_gates.window_and_shas_valid(
        evidence.month, iterate_done(evidence.connection, evidence.month, Stage.PULL_REQUESTS)
    )


def every_candidate_has_verdict(evidence: Evidence) -> GateVerdict:
    """Of `classifications`."""
    names = items_by_key(evidence.connection, evidence.month)
    found = done_items(evidence.connection, evidence.month, Stage.PULL_REQUESTS)
    skipped = set(evidence.items(Stage.CLASSIFICATIONS, ItemState.SKIPPED))
    judged = evidence.rows(artifacts.CLASSIFICATIONS)
    return selection_gates.every_candidate_has_verdict(
        evidence.month,
        candidates=[item for item in found.values() if item not in skipped],
        classified=[names[row.repository_id, row.number] for row in judged if (row.repository_id, row.number) in names],
        failed=evidence.items(Stage.CLASSIFICATIONS, ItemState.FAILED),
        rejected=evidence.items(Stage.CLASSIFICATIONS, ItemState.REJECTED),
    )


def share_of_positives(evidence: Evidence) -> GateVerdict:
    """Of `classifications`, against the months before."""
    month = Month.parse(evidence.month)
    months = [month.key]
    while len(months) <= HISTORY_MONTHS and month.key > FIRST_MONTH:
        month = month.previous()
        months.append(month.key)
    counted = positives_by_month(evidence.connection, months)
    positives, candidates = counted.pop(evidence.month, (0, 0))
    return selection_gates.share_of_positives(evidence.month, positives, candidates, list(counted.values()))


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


def one_benchmark_runs(evidence: Evidence) -> GateVerdict:
    """At least one benchmark of every image gives a time."""
    return image_gates.one_benchmark_runs(evidence.month, _images(evidence))


def tests_collect(evidence: Evidence) -> GateVerdict:
    """Of `images`."""
    return image_gates.tests_collect(evidence.month, _images(evidence))


def nothing_planted(evidence: Evidence) -> GateVerdict:
    """Of `images`."""
    return image_gates.nothing_planted(evidence.month, _images(evidence))


def no_credentials(evidence: Evidence) -> GateVerdict:
    """Of `images`."""
    return image_gates.no_credentials(evidence.month, _images(evidence))


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
