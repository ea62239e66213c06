"""The results of the stages for one pull request, as text: the output of `fc-data show`."""

from __future__ import annotations

import json
from collections.abc import Callable

from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import ItemSection
from formulacode_dagster.models.measurement import Sample
from formulacode_dagster.models.problem import ProblemStatement, Variant
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.operating.store.artifacts import Artifact, M
from formulacode_dagster.operating.store.lookup import StoredPullRequest, find_pull_request
from formulacode_dagster.releasing.dataset.records import month_records
from formulacode_dagster.selection.statements.hinted import Hinted, state_hinted
from formulacode_dagster.selection.statements.statements import task_view


def part_of(connection: Connection, item: ItemName, part: ItemSection, variant: Variant = Variant.FINAL) -> str:
    """Return *part* of *item* as it is stored; ConfigurationError if the item, or that part of it, is missing."""
    stored = find_pull_request(connection, item.repository, item.number) if item.number is not None else None
    if stored is None:
        raise ConfigurationError(
            f"no data on {item}", remedy="Name a pull request, owner/repo#123, of a month that was run"
        )
    text = (
        _statement(connection, stored, variant) if part is ItemSection.STATEMENT else _PARTS[part](connection, stored)
    )
    if text is None:
        raise ConfigurationError(
            f"{item} has no {part}", remedy=f"`fc-data why {stored.facts.item}` shows how far it got"
        )
    return text


def _statement(connection: Connection, stored: StoredPullRequest, variant: Variant) -> str | None:
    row = _row(connection, artifacts.PROBLEM_STATEMENTS, stored)
    if row is None:
        return None
    hinted = _hinted(connection, stored, row) if variant is Variant.HINTED else Hinted()
    text = hinted.text if variant is Variant.HINTED else getattr(row, variant.value)
    if text is None and not hinted.leaks:
        return None
    facts = stored.facts
    descriptions = {known.id: known.description for known in artifacts.REPOSITORIES.read(connection, facts.month)}
    view = task_view(
        facts,
        repository_description=descriptions.get(facts.repository_id, ""),
        issues=facts.linked_issues if row.walk is None else row.walk.links,
        commits=row.commits,
    )
    left_out = [f"{leak.where}: {leak.kind}: {leak.span}" for leak in (*row.left_out, *hinted.leaks)]
    return "\n".join(
        [
            f"===== {variant}",
            text.rstrip("\n") if text else "none: it would reveal part of the solution",
            "",
            "===== input of its writer",
            view.model_dump_json(indent=2),
            *([hinted.run.model_dump_json(indent=2)] if hinted.run else []),
            *(["", "===== omissions, and why", *left_out] if left_out else []),
        ]
    )


def _hinted(connection: Connection, stored: StoredPullRequest, row: ProblemStatement) -> Hinted:
    measurement = _row(connection, artifacts.MEASUREMENTS, stored)
    if measurement is None or stored.patch is None:
        return Hinted()
    return state_hinted(row, measurement, stored.facts, stored.patch)


def _classification(connection: Connection, stored: StoredPullRequest) -> str | None:
    classification = _row(connection, artifacts.CLASSIFICATIONS, stored)
    return None if classification is None else classification.model_dump_json(indent=2)


def _patch(_: Connection, stored: StoredPullRequest) -> str | None:
    return None if stored.patch is None else stored.patch.decode("utf-8", "surrogateescape")


def _lock(connection: Connection, stored: StoredPullRequest) -> str | None:
    environment = _row(connection, artifacts.ENVIRONMENTS, stored)
    return None if environment is None else environment.lock


def _spec(connection: Connection, stored: StoredPullRequest) -> str | None:
    image = _row(connection, artifacts.IMAGES, stored)
    return None if image is None else image.spec.model_dump_json(indent=2)


def _samples(connection: Connection, stored: StoredPullRequest) -> str | None:
    """A line for each sample, tabs between the fields."""
    measurement = _row(connection, artifacts.MEASUREMENTS, stored)
    if measurement is None:
        return None
    names = tuple(Sample.model_fields)
    lines = [
        "\t".join([result.benchmark, *(str(getattr(sample, name)) for name in names)])
        for result in measurement.results
        for sample in result.samples
    ]
    return "\n".join(["\t".join(["benchmark", *names]), *lines])


def _workloads(connection: Connection, stored: StoredPullRequest) -> str | None:
    """Describe the sources of the benchmarks, and how much of the change each executes."""
    measurement = _row(connection, artifacts.MEASUREMENTS, stored)
    told = {"suite", "provenance", "executed", "time_in_change", "reached", "unreached"}
    return None if measurement is None else measurement.model_dump_json(include=told, indent=2)


def _dataset_row(connection: Connection, stored: StoredPullRequest) -> str | None:
    record = month_records(connection, stored.facts.month).get(stored.facts.item)
    return None if record is None else json.dumps(record.row.model_dump(mode="json"), indent=2, ensure_ascii=False)


def _row(connection: Connection, artifact: Artifact[M], stored: StoredPullRequest) -> M | None:
    key = (stored.facts.repository_id, stored.facts.number)
    return artifact.read_keys(connection, stored.facts.month, [key]).get(key)


_PARTS: dict[ItemSection, Callable[[Connection, StoredPullRequest], str | None]] = {
    ItemSection.CLASSIFICATION: _classification,
    ItemSection.PATCH: _patch,
    ItemSection.LOCK: _lock,
    ItemSection.SPEC: _spec,
    ItemSection.SAMPLES: _samples,
    ItemSection.WORKLOADS: _workloads,
    ItemSection.ROW: _dataset_row,
}
