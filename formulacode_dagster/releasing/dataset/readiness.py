"""Decides if a month may be tagged: it was run as a whole, and has tasks if the months before had some."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from formulacode_dagster.models.check import Acceptance
from formulacode_dagster.models.errors import GateClosedError
from formulacode_dagster.models.items import FROM_A_RELEASE, ItemKind, Stage
from formulacode_dagster.models.reasons import SkipReason
from formulacode_dagster.operating.runner.failures import FAILURES_WITHIN_BUDGET
from formulacode_dagster.operating.store.ledger import endings, months_with_done

_BUDGETED = (
    Stage.REPOSITORIES,
    Stage.PULL_REQUESTS,
    Stage.CLASSIFICATIONS,
    Stage.DISCUSSIONS,
    Stage.ENVIRONMENTS,
    Stage.IMAGES,
    Stage.MEASUREMENTS,
    Stage.PROBLEM_STATEMENTS,
    Stage.PUBLISHED_IMAGES,
)
RELEASE_GATES: tuple[tuple[Stage, str], ...] = (
    *((stage, FAILURES_WITHIN_BUDGET) for stage in _BUDGETED),
    (Stage.PROBLEM_STATEMENTS, "nothing_leaks"),
    (Stage.MEASUREMENTS, "speedup_is_real"),
    (Stage.MEASUREMENTS, "right_by_their_tests"),
    (Stage.MEASUREMENTS, "controls_within_promise"),
    (Stage.PUBLISHED_IMAGES, "every_digest_pulled"),
    (Stage.GRADINGS, FAILURES_WITHIN_BUDGET),
    (Stage.GRADINGS, "probes_get_nothing"),
)
"""Blocking checks of a release: the gates of the asset `published_dataset`, for scripts."""


def parts_left_out(connection: Connection, month: str) -> str:
    """Return the part of *month* that no run processed, in a sentence; empty if it was run as a whole.

    A run limited to some items leaves the others out, and their tasks are missing in a release.
    """
    # later stages do not change the content of a release
    parts = [ending for ending in endings(connection, month) if ending.stage not in FROM_A_RELEASE]
    left = [ending for ending in parts if ending.reason == SkipReason.NOT_ASKED]
    if not left:
        return ""
    first = left[0]
    return f"{first.count} items of {first.stage} were left out by a limited run; run {month} without limits first"


def require_tasks(connection: Connection, month: str, tasks: int, accepted: Sequence[Acceptance]) -> None:
    """Raise GateClosedError for a month without *tasks* if earlier ones had some, unless a person *accepted* it."""
    if tasks or any(acceptance.stage is Stage.PUBLISHED_DATASET for acceptance in accepted):
        return
    before = months_with_done(connection, Stage.PUBLISHED_DATASET, ItemKind.PULL_REQUEST, before=month)
    if before:
        raise GateClosedError(
            f"{month} has no task to release",
            why=f"{before[-1]} had some, and a tag stays for ever",
            remedy="Find out where they were lost (fc-data funnel); or accept it as it is: "
            f"fc-data accept --month {month} --stage {Stage.PUBLISHED_DATASET} --by NAME --reason WHY",
        )
