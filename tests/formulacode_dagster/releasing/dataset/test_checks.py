from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.release import Release
from formulacode_dagster.releasing.dataset.checks import (
    reads_back_equal,
    released_tags_untouched,
    schema_and_ids_stable,
)

MONTH = "2026-02"
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)
MakeRelease = Callable[..., Release]


def test_rows_that_read_back_as_written_pass(release: MakeRelease) -> None:
    assert reads_back_equal(MONTH, [release()]).passed


def test_no_release_passes_only_by_saying_so() -> None:
    verdict = reads_back_equal(MONTH, [])
    assert verdict.passed
    assert "nothing was released" in verdict.summary


@pytest.mark.parametrize(
    "changes", [{"read_back_sha256": "other"}, {"tag": "formulacode@2026-04"}, {"tasks": 2}, {"month": "2026-01"}]
)
def test_a_release_that_is_not_what_it_says_fires(release: MakeRelease, changes: dict[str, object]) -> None:
    assert not reads_back_equal(MONTH, [release(**changes)] if "month" not in changes else [release("2026-01")]).passed


def test_one_tag_released_twice_fires(release: MakeRelease) -> None:
    assert not reads_back_equal(MONTH, [release(), release()]).passed


def revision(release: MakeRelease, number: int = 1, **changes: object) -> Release:
    told = {"difference": "1 changed: acme__fast-1 (speedup)", "reason": "measured anew"}
    return release(**{"tag": f"formulacode@2026-03.{number}", "number": number, **told, **changes})


def test_a_release_and_its_revisions_read_back_and_the_newest_is_told(release: MakeRelease) -> None:
    verdict = reads_back_equal(MONTH, [release(), revision(release, 1), revision(release, 2)])
    assert verdict.passed
    assert "formulacode@2026-03.2" in verdict.summary


@pytest.mark.parametrize(
    "changes", [{"reason": ""}, {"difference": ""}, {"tag": "formulacode@2026-03.2"}, {"read_back_sha256": "other"}]
)
def test_a_revision_that_is_not_what_it_says_fires(release: MakeRelease, changes: dict[str, object]) -> None:
    assert not reads_back_equal(MONTH, [release(), revision(release, 1, **changes)]).passed


def test_a_month_like_the_others_passes(release: MakeRelease) -> None:
    assert schema_and_ids_stable(MONTH, [release()], [release("2026-01"), release("2025-12")]).passed


def test_another_schema_fires(release: MakeRelease) -> None:
    verdict = schema_and_ids_stable(MONTH, [release(schema_sha256="new")], [release("2026-01")])
    assert verdict.offenders == ("formulacode@after-2026-01: released with another schema",)


def test_columns_may_be_added_and_none_changed_or_dropped(release: MakeRelease) -> None:
    january = release("2026-01", columns={"task_id": "String", "speedup": "Float64"}, released_at=EARLIER)

    def faults(**columns: str) -> tuple[str, ...]:
        return schema_and_ids_stable(MONTH, [release(columns=columns, schema_sha256="new")], [january]).offenders

    assert faults(task_id="String", speedup="Float64", interval="List") == ()
    tag = january.tag
    assert faults(task_id="String", interval="List") == (f"{tag}: column speedup is gone",)
    assert faults(task_id="String", speedup="String") == (f"{tag}: column speedup is String, it was Float64",)


def test_a_month_released_before_another_may_lack_what_was_added_since(release: MakeRelease) -> None:
    later = release("2026-03", columns={"task_id": "String", "interval": "List"}, schema_sha256="new")
    earlier = release(columns={"task_id": "String"}, released_at=EARLIER)
    assert schema_and_ids_stable(MONTH, [earlier], [later]).passed


def test_a_revision_keeps_columns_and_only_the_newest_ids_count(release: MakeRelease) -> None:
    first = release(columns={"task_id": "String", "speedup": "Float64"}, released_at=EARLIER)
    verdict = schema_and_ids_stable(MONTH, [first, revision(release, columns={"task_id": "String"})], [])
    assert verdict.offenders == ("formulacode@2026-03: column speedup is gone",)
    moved = revision(release, task_ids=("acme__fast-9",))
    other = release("2026-01", task_ids=first.task_ids)
    assert schema_and_ids_stable(MONTH, [release(), moved], [other]).passed


def test_a_task_of_another_month_fires(release: MakeRelease) -> None:
    verdict = schema_and_ids_stable(
        MONTH, [release(task_ids=("acme__fast-1",))], [release("2026-01", task_ids=("acme__fast-1",))]
    )
    assert verdict.offenders == ("acme__fast-1 is also a task of 2026-01",)


def test_a_task_that_appears_twice_fires(release: MakeRelease) -> None:
    assert not schema_and_ids_stable(MONTH, [release(task_ids=("a__b-1", "a__b-1"))], []).passed


def test_another_destination_has_a_schema_of_its_own(release: MakeRelease) -> None:
    others = [release("2026-01", schema_sha256="old", destination="/elsewhere")]
    assert schema_and_ids_stable(MONTH, [release()], others).passed


def test_tags_that_point_where_they_did_pass(release: MakeRelease) -> None:
    assert released_tags_untouched([release()], {"formulacode@2026-03": "c" * 40, "other": "d"}).passed


def test_a_moved_tag_fires(release: MakeRelease) -> None:
    verdict = released_tags_untouched([release()], {"formulacode@2026-03": "d" * 40})
    assert not verdict.passed
    assert "points to dddd" in verdict.offenders[0]


def test_a_tag_that_is_gone_fires(release: MakeRelease) -> None:
    verdict = released_tags_untouched([release()], {})
    assert verdict.offenders == ("formulacode@2026-03 is gone from hub:acme/tasks",)
