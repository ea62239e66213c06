from collections.abc import Callable, Sequence

import pytest

from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.pull_request import ChangedFile, PullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.selection.classification.symbolic import MOST_FILES, MOST_PATCH_BYTES, screen

MakePullRequest = Callable[..., PullRequest]


@pytest.mark.parametrize(
    "title",
    [
        "Pipeline",
        "Refactor randoms",
        "Dev",
        "PERF: faster merge",
        "Fix the bug in rolling",
        "ENH: Use searchsorted in interp",
        "Rewrite the document parser",
        "Specific heat of water",
        "Social networks: betweenness",
        "Attest the header once",
        "Latest version wins",
        "Bumpy ride: new surface model",
        "TST: speed up the comparison in assert_equal",
        "docs: 3x faster autosummary",
        "Chi-squared test statistic in C",
        "Hypothesis test for proportions",
        "Use numpy 2.0 types in interp",
        "Bump the cache size from 10 to 100",
        "Release the GIL in the inner loop",
    ],
)
def test_titles_that_may_be_performance_pass(make_pull_request: MakePullRequest, title: str) -> None:
    screen(make_pull_request(title=title))


@pytest.mark.parametrize(
    "title",
    [
        "Bump foo from 1 to 2",
        "docs: explain the options",
        "DOC: fix a typo in merge",
        "[pre-commit.ci] autoupdate",
        "[pre-commit.ci] pre-commit autoupdate",
        "CI: use the new runners",
        "ci(deps): group updates",
        "TST: add cases for empty input",
        "test(core): more cases",
        "Add tests for the parser",
        "Fix flaky test in parser",
        "Update pytest requirement from ~=7.0 to ~=8.0",
        "Release 1.2",
        "v1.2.3",
        "1.2.0rc1",
        "Merge branch 'main' into maintenance",
        "Run black on everything",
        "Add type hints to the reader",
        "Fix typos",
    ],
)
def test_titles_of_something_else_are_rejected(make_pull_request: MakePullRequest, title: str) -> None:
    with pytest.raises(Rejection, match="title says") as caught:
        screen(make_pull_request(title=title))
    assert caught.value.reason is RejectionReason.TITLE


def test_a_body_that_speaks_of_performance_outweighs_the_title(make_pull_request: MakePullRequest) -> None:
    screen(make_pull_request(title="DOC: tidy up", body="Also makes the lookup faster"))


def test_a_template_hidden_in_a_comment_does_not(make_pull_request: MakePullRequest) -> None:
    with pytest.raises(Rejection, match="title"):
        screen(make_pull_request(title="DOC: tidy up", body="<!-- Is it faster? Add a benchmark. -->"))


@pytest.mark.parametrize(
    "files",
    [
        ("tests/test_core.py", "docs/index.rst"),
        (".github/workflows/ci.yml",),
        ("benchmarks/bench_core.py", "asv.conf.json"),
        ("CHANGELOG.md", "uv.lock", "pkg/_version.py"),
        (),
    ],
)
def test_a_change_without_a_source_file_is_rejected(make_pull_request: MakePullRequest, files: Sequence[str]) -> None:
    with pytest.raises(Rejection) as caught:
        screen(make_pull_request(files=files))
    assert caught.value.reason is RejectionReason.NO_CORE_FILE


def test_a_source_moved_out_of_the_package_counts(make_pull_request: MakePullRequest) -> None:
    pr = make_pull_request()
    moved = ChangedFile(path="docs/old.py", old_path="pkg/old.py", status="R")
    screen(pr.model_copy(update={"change": pr.change.model_copy(update={"files": (moved,)})}))


def test_limits_are_inclusive(make_pull_request: MakePullRequest) -> None:
    files = [f"pkg/m{n}.py" for n in range(MOST_FILES + 1)]
    screen(make_pull_request(files=files[1:], patch_bytes=MOST_PATCH_BYTES))
    with pytest.raises(Rejection) as too_many:
        screen(make_pull_request(files=files))
    assert too_many.value.reason is RejectionReason.TOO_MANY_FILES
    with pytest.raises(Rejection) as too_large:
        screen(make_pull_request(patch_bytes=MOST_PATCH_BYTES + 1))
    assert too_large.value.reason is RejectionReason.PATCH_TOO_LARGE


def test_three_thousand_files_do_not_pass_the_guard(make_pull_request: MakePullRequest) -> None:
    pr = make_pull_request(files=[f"pkg/m{n}.py" for n in range(3000)], changed_files=100)
    with pytest.raises(Rejection) as caught:
        screen(pr)
    assert caught.value.reason is RejectionReason.TOO_MANY_FILES
