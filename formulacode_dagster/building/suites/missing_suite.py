"""Sources of workloads in a repository without an asv suite, found in its files before anything is built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from formulacode_dagster.building.declarations.needs_of_tests import is_of_tests
from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.models.pull_request import PullRequest

DOCUMENTS = (".rst", ".md")
MOST_DOCUMENTS = 100
_SHOWS_CODE = re.compile(
    r"^[ \t]*(?:>>> |In \[\d*\]:)|\btimeit\b|^[ \t>]*(?:```|~~~)[ \t]*(?:i?py)|\.\. (?:code|code-block|ipython)::",
    re.MULTILINE,
)


def sources_without_suite(base: Tree, pr: PullRequest) -> tuple[str, ...]:
    """Describe the sources of workloads at *base*, or in the texts of *pr*."""
    paths = [PurePosixPath(path) for path in base.files]
    kinds = {
        "its tests": any(path.suffix == ".py" and is_of_tests(path) for path in paths),
        "its benchmark scripts": any(map(is_benchmark_script, paths)),
        "code of its documents": any(map(shows_code, _documents(base))),
        "code of the pull request's text": any(map(shows_code, _texts(pr))),
    }
    return tuple(kind for kind, is_there in kinds.items() if is_there)


def is_benchmark_script(path: PurePosixPath) -> bool:
    """Return True for a Python file if it, or one of its folders, is named for benchmarks."""
    return path.suffix == ".py" and any("bench" in part for part in path.parts)


def shows_code(text: str) -> bool:
    """Return True if *text*, in Markdown or reStructuredText, shows runnable code."""
    return _SHOWS_CODE.search(text) is not None


def _documents(base: Tree) -> Iterator[str]:
    documents = [path for path in base.files if path.endswith(DOCUMENTS)]
    # the file at the top that everybody reads first is the likeliest
    for path in sorted(documents, key=lambda path: (path.count("/"), path))[:MOST_DOCUMENTS]:
        yield base.text(path) or ""


def _texts(pr: PullRequest) -> Iterator[str]:
    yield pr.facts.body
    yield from (issue.body for issue in pr.facts.linked_issues)
