from __future__ import annotations

from sqlalchemy import text

from formulacode_dagster.building.images.reproducibility import keep_listings, kept_listing, sample, verdict
from formulacode_dagster.building.verification.contents import Listing
from formulacode_dagster.models.reproduction import Difference, DifferenceKind, Reproduction
from formulacode_dagster.operating.store.artifacts import REPRODUCTIONS
from formulacode_dagster.operating.store.database import Database

LISTING = Listing("tiny", "1.0", {"lib/tiny/__init__.py": "ccc"})


def reproduction(*differences: Difference) -> Reproduction:
    return Reproduction(
        month="2026-02",
        repository_id=7,
        number=1,
        item="a/b#1",
        tag="formulacode/a__b:1",
        digest="sha256:1",
        against="the image",
        distributions=2,
        files=9,
        differences=differences,
        seconds=3.5,
    )


def test_samples_of_a_month_are_reproducible_and_months_differ() -> None:
    items = [f"a/b#{number}" for number in range(1, 30)]
    assert sample("2026-02", items) == sample("2026-02", list(reversed(items)))
    assert len({sample(f"2026-{month:02}", items) for month in range(1, 13)}) > 6
    assert sample("2026-02", []) == ()
    assert len(sample("2026-02", items, size=3)) == 3


def test_an_image_that_comes_out_otherwise_fails_the_check() -> None:
    changed = Difference(kind=DifferenceKind.FILES, name="tiny", detail="lib/tiny/__init__.py")
    failed = verdict([reproduction(changed)], {})
    assert not failed.passed
    assert failed.offenders == ("a/b#1: files of tiny: lib/tiny/__init__.py",)
    assert failed.summary == "0 of 1 images that were built again came out the same"
    toolchain = Difference(kind=DifferenceKind.TOOLCHAIN, name="compiler", detail="cc 12 → cc 13")
    passed = verdict([reproduction(toolchain)], {})
    assert (passed.passed, passed.offenders, passed.figures["files"]) == (True, (), 9.0)


def test_an_image_that_cannot_be_built_again_is_no_pass() -> None:
    failed = verdict([], {"a/b#2": "the index does not have tiny 1.0 any more"})
    assert failed.offenders == ("a/b#2: the index does not have tiny 1.0 any more",)
    assert (failed.passed, failed.figures["rebuilt"], failed.figures["equal"]) == (False, 1.0, 0.0)
    nothing = verdict([], {})
    assert (nothing.passed, nothing.summary) == (True, "no image to sample")


def test_listings_are_kept_once_and_come_back(database: Database) -> None:
    with database.transaction() as connection:
        (summary,) = keep_listings(connection, [LISTING])
        assert keep_listings(connection, [LISTING]) == (summary,)
        assert kept_listing(connection, summary) == LISTING
        assert connection.execute(text("SELECT count(*) FROM blobs WHERE kind = 'installed'")).scalar_one() == 1
        assert kept_listing(connection, summary.model_copy(update={"sha256": "0" * 64})) is None


def test_the_newest_answer_of_an_image_is_kept(database: Database) -> None:
    with database.transaction() as connection:
        REPRODUCTIONS.save(connection, [reproduction()])
        changed = Difference(kind=DifferenceKind.FILES, name="tiny", detail="x")
        REPRODUCTIONS.save(connection, [reproduction(changed)])
        assert REPRODUCTIONS.read(connection, "2026-02") == [reproduction(changed)]
