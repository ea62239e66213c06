from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import ChangedFile, MergeKind, PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.selection.classification.symbolic import screen
from formulacode_dagster.sources.git.diff import split_patch
from sandbox.model.rules import judge
from sandbox.samples import GeneratedPullRequest, SampleSet, catalog
from sandbox.samples.catalog import people, repositories
from sandbox.samples.definitions import SamplePullRequest
from tests.records import make_merged, make_pull_request
from tests.support.expected_outcomes import expected_outcomes
from tests.support.samples import pull_request_of

MONTHS = ("2026-01", "2026-02")
SCREENED = {RejectionReason.TITLE, RejectionReason.NO_CORE_FILE, RejectionReason.PATCH_TOO_LARGE}
JUDGED = [change for change in catalog() if change.expected is not None]


def as_pull_request(definition: SamplePullRequest, generated: GeneratedPullRequest, patch: bytes) -> PullRequest:
    facts = make_merged(
        month=definition.month.key,
        repository=definition.repository,
        number=definition.number,
        title=definition.title,
        body=definition.body,
        created_at=definition.created,
        merged_at=definition.merged,
        head_sha=generated.head_sha,
        merge_commit_sha=generated.merge_commit_sha,
    )
    return make_pull_request(
        facts,
        merge_kind=definition.merge,
        base_sha=generated.base_sha,
        patch_bytes=len(patch),
        files=tuple(ChangedFile(path=part.path, status="M", binary=part.binary) for part in split_patch(patch)),
    )


@pytest.mark.parametrize("definition", JUDGED, ids=lambda definition: definition.item)
def test_filter_and_model_say_what_is_expected(
    definition: SamplePullRequest, samples: SampleSet, patch_of: Callable[[GeneratedPullRequest], bytes]
) -> None:
    generated = pull_request_of(samples, definition.item)
    patch, expected = patch_of(generated), definition.expected
    assert expected is not None
    pull_request = as_pull_request(definition, generated, patch)
    if expected.reason in SCREENED:
        with pytest.raises(Rejection) as refused:
            screen(pull_request)
        assert refused.value.reason == expected.reason
        return
    screen(pull_request)
    judged = judge(definition.title, definition.body, patch.decode(errors="replace"))
    assert judged.is_performance == (expected.reason != RejectionReason.NOT_PERFORMANCE)
    assert (judged.category if judged.is_performance else None) == expected.category


def test_the_demo_has_some_forty_pull_requests_of_every_fate() -> None:
    outcomes = [outcome for month in MONTHS for outcome in expected_outcomes(month) if "#" in outcome.item]
    assert 38 <= len(outcomes) <= 45
    reasons = Counter(outcome.reason for outcome in outcomes)
    assert set(reasons) == {
        "",
        *(RejectionReason.TITLE, RejectionReason.NO_CORE_FILE, RejectionReason.PATCH_TOO_LARGE),
        *(RejectionReason.NOT_PERFORMANCE, RejectionReason.NO_RELEVANT_WORKLOAD, RejectionReason.NO_SPEEDUP),
        RejectionReason.SLOWER,
        *("lock", "build", "oracle_breaks_benchmarks", "oracle_breaks_tests"),
    }
    for month in MONTHS:
        published = [
            expected for expected in expected_outcomes(month) if expected.last_stage is Stage.PUBLISHED_DATASET
        ]
        assert len(published) >= 6
        assert all(entry.state is ItemState.DONE and entry.category is not None for entry in published)


def test_every_merge_is_of_the_month_its_instant_in_utc_falls_in() -> None:
    by_item = {change.item: change for change in catalog()}
    last, first = by_item["sample-org/gridpath#13"], by_item["sample-org/gridpath#12"]
    assert last.merged == datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)
    assert first.merged == datetime(2026, 2, 1, tzinfo=UTC)
    assert (last.month.key, first.month.key) == MONTHS
    assert {change.month for change in catalog()} == {Month.parse(key) for key in ("2025-12", *MONTHS, "2026-03")}


def test_the_traps_are_there() -> None:
    assert {verdict.merge for verdict in JUDGED} == set(MergeKind)
    assert any(len(verdict.commits) == 3 and verdict.merge is MergeKind.REBASE for verdict in JUDGED)
    assert any((verdict.merged - verdict.created).days > 120 for verdict in JUDGED)
    assert any(repository.archived_at for repository in repositories())
    assert any(repository.fork_of for repository in repositories())
    assert any(repository.former_names for repository in repositories())


def test_an_issue_gives_the_solution_away(samples: SampleSet, patch_of: Callable[..., bytes]) -> None:
    issues = {
        (repository.name, issue.number): issue.body for repository in repositories() for issue in repository.issues
    }
    telling = 0
    for definition in JUDGED:
        added = patch_of(pull_request_of(samples, definition.item)).decode(errors="replace").splitlines()
        lines = {line[1:].strip() for line in added if line.startswith("+") and len(line) > 40}
        telling += any(line in issues[definition.repository, number] for number in definition.closes for line in lines)
    assert telling == 1


def test_repositories_that_are_not_tracked_are_expected_to_be_rejected() -> None:
    outcomes = [outcome for outcome in expected_outcomes("2026-01") if "#" not in outcome.item]
    assert [(outcome.item, outcome.reason) for outcome in outcomes] == [
        ("dmoreau/gridpath", RejectionReason.FORK),
        ("sample-org/pairheap", RejectionReason.ARCHIVED),
    ]
    untracked = {outcome.item for outcome in outcomes}
    assert {change.repository for change in catalog() if change.expected is None} == untracked


def test_the_definitions_are_consistent() -> None:
    numbers = {repository.name: [issue.number for issue in repository.issues] for repository in repositories()}
    for definition in catalog():
        ItemName.parse(definition.item)
        assert definition.created < definition.merged
        assert definition.number not in numbers[definition.repository]
        assert set(definition.closes) <= set(numbers[definition.repository])
        assert definition.author in people()
        assert definition.merger in {"", *people()}
    for repository in repositories():
        things = [(pull_request.number, pull_request.created) for pull_request in repository.pull_requests]
        things += [(issue.number, issue.created_at) for issue in repository.issues]
        moments = [moment for _, moment in sorted(things)]
        assert moments == sorted(moments), f"numbers of {repository.name} do not grow with time"
    assert len({repository.id for repository in repositories()}) == len(repositories())
