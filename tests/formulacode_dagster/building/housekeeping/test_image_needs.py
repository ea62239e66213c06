from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from formulacode_dagster.building.housekeeping.image_needs import image_needs
from formulacode_dagster.models.image import BuiltImage, ImageNeed
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import IMAGES, MERGED_PULL_REQUESTS, RELEASES
from formulacode_dagster.operating.store.database import Database
from tests.records import make_image, make_merged, make_release

MONTH = "2026-02"
MOMENT = datetime(2026, 3, 1, tzinfo=UTC)
DONE, REJECTED, FAILED, SKIPPED = ItemState.DONE, ItemState.REJECTED, ItemState.FAILED, ItemState.SKIPPED


def image(digest: str, number: int = 1) -> BuiltImage:
    return make_image(month=MONTH, repository_id=7, number=number, digest=digest)


def store(
    database: Database, states: dict[Stage, tuple[ItemState, str]], *, number: int = 1, digest: str = "sha256:1"
) -> None:
    facts = make_merged(month=MONTH, repository_id=7, repository="a/b", number=number)
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [facts])
        IMAGES.save(connection, [image(digest, number)])
        entries = [
            LedgerEntry(
                stage=stage,
                month=MONTH,
                item=f"a/b#{number}",
                state=state,
                reason=reason,
                finished_at=MOMENT + timedelta(hours=hours),
            )
            for hours, (stage, (state, reason)) in enumerate(states.items())
        ]
        ledger.record(connection, entries)


def asked(database: Database) -> dict[str, ImageNeed]:
    with database.transaction() as connection:
        return image_needs(connection)


BUILT = {Stage.IMAGES: (DONE, "")}
FASTER = {**BUILT, Stage.MEASUREMENTS: (DONE, "")}


@pytest.mark.parametrize(
    ("states", "unfinished", "only_copy"),
    [
        ({}, False, False),
        ({Stage.IMAGES: (FAILED, "build")}, False, False),
        (BUILT, True, False),
        ({**BUILT, Stage.MEASUREMENTS: (FAILED, "timeout")}, True, False),
        ({**BUILT, Stage.MEASUREMENTS: (SKIPPED, "not_asked")}, True, False),
        ({**BUILT, Stage.MEASUREMENTS: (REJECTED, "no_speedup")}, False, False),
        (FASTER, True, True),
        ({**FASTER, Stage.PUBLISHED_IMAGES: (FAILED, "published_tag")}, True, True),
        ({**FASTER, Stage.PUBLISHED_IMAGES: (SKIPPED, "not_asked")}, True, True),
        ({**FASTER, Stage.PUBLISHED_IMAGES: (SKIPPED, "no_registry")}, False, True),
        ({**FASTER, Stage.PUBLISHED_IMAGES: (DONE, "")}, False, False),
    ],
)
def test_an_image_is_needed_until_its_task_is_rejected_or_published(
    database: Database, states: dict[Stage, tuple[ItemState, str]], unfinished: bool, only_copy: bool
) -> None:
    store(database, states)
    (need,) = asked(database).values()
    assert (need.item, need.month, need.digest) == ("a/b#1", MONTH, "sha256:1")
    assert (need.unfinished, need.only_copy) == (unfinished, only_copy)
    if states:
        assert need.last == MOMENT + timedelta(hours=len(states) - 1)


def test_a_released_month_needs_no_image_any_more(database: Database) -> None:
    store(database, BUILT)
    release = make_release(released_at=MOMENT)
    with database.transaction() as connection:
        RELEASES.save(connection, [release])
    assert not asked(database)["sha256:1"].unfinished


def test_of_two_tasks_with_one_digest_the_more_demanding_counts(database: Database) -> None:
    store(database, {**FASTER, Stage.PUBLISHED_IMAGES: (SKIPPED, "no_registry")})
    store(database, BUILT, number=2)
    (need,) = asked(database).values()
    assert (need.item, need.unfinished, need.only_copy) == ("a/b#2", True, True)
    assert need.last == MOMENT + timedelta(hours=2)


def test_an_image_whose_pull_request_left_its_month_is_not_needed(database: Database) -> None:
    with database.transaction() as connection:
        IMAGES.save(connection, [image("sha256:1")])
    assert not asked(database)["sha256:1"].unfinished
