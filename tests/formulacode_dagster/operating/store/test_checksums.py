from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.pull_request import LinkedIssue, MergedPullRequest
from formulacode_dagster.operating.store.checksums import checksum_of, digest_of

MOMENT = datetime(2026, 2, 3, 12, tzinfo=UTC)


def merged(**fields: Any) -> MergedPullRequest:
    plain: dict[str, Any] = {
        "month": "2026-02",
        "repository_id": 7,
        "repository": "a/b",
        "number": 1,
        "title": "Cache",
        "created_at": MOMENT,
        "merged_at": MOMENT,
        "base_ref": "main",
        "head_sha": "a" * 40,
        "merge_commit_sha": "b" * 40,
    }
    return MergedPullRequest(**{**plain, **fields})


def issue(**fields: Any) -> LinkedIssue:
    return LinkedIssue(**{"repository": "a/b", "number": 1, "title": "Slow", "created_at": MOMENT, **fields})


def test_a_digest_depends_on_the_content_and_not_on_the_code() -> None:
    eastern = MOMENT.astimezone(timezone(timedelta(hours=-5)))
    whole = merged(body="é\n", labels=("a", "b"), linked_issues=(issue(),))
    same = merged(body="é\n", labels=["a", "b"], merged_at=eastern, linked_issues=(issue(created_at=eastern),))
    assert digest_of(whole) == digest_of(same)
    assert digest_of(whole) == digest_of(MergedPullRequest.model_validate(whole.model_dump(mode="json")))
    # a database keeps digests: another form would call every stored row changed
    assert digest_of(whole) == "1f41fd32fc125faa6fc47de946a073be2d289d461a1baaae7b8ddbb1537ab054"


def test_any_difference_is_another_digest() -> None:
    rows = [
        merged(),
        merged(title="Cache "),
        merged(title="", body="Cache"),
        merged(labels=("a", "b")),
        merged(labels=("b", "a")),
        merged(labels=('a", "b',)),
        merged(merged_at=MOMENT + timedelta(microseconds=1)),
        merged(commit_count=1),
        merged(changed_files=1),
        merged(linked_issues=(issue(),)),
        merged(linked_issues=(issue(body="more"),)),
        merged(linked_issues=(issue(created_at=MOMENT + timedelta(seconds=1)),)),
    ]
    assert len({digest_of(row) for row in rows}) == len(rows)


def test_text_counts_as_it_is_stored() -> None:
    hostile = merged(title="a\x00", labels=("\ud800",), linked_issues=(issue(title="\udcff"),))
    stored = merged(title="a\ufffd", labels=("\ufffd",), linked_issues=(issue(title="\ufffd"),))
    assert digest_of(hostile) == digest_of(stored)


def test_what_has_no_canonical_form_is_refused() -> None:
    class Odd(Frozen):
        value: frozenset[int]

    with pytest.raises(TypeError, match="frozenset has no canonical form"):
        digest_of(Odd(value=frozenset({1})))


def test_a_checksum_depends_on_keys_and_digests_in_any_order() -> None:
    parts = [(1, "a"), (2, "b"), (10, "c")]
    assert checksum_of(parts) == checksum_of(reversed(parts))
    assert len({checksum_of(given) for given in (parts, parts[:2], [(1, "b"), (2, "a"), (10, "c")], [])}) == 4
