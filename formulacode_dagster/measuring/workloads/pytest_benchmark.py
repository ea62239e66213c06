"""Suites of pytest-benchmark: tests that pass a callable to the fixture `benchmark`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from formulacode_dagster.building.declarations.needs_of_tests import is_of_tests
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.sources.git.reader import CommitReader

from .overlay import PytestFunction, functions_in, is_laid, is_same_everywhere, suite_files, words_of

FIXTURE = "benchmark"
MOST_FUNCTIONS = 40
"""Maximum of tests with the fixture: those that mention the change most."""


def pytest_benchmark_suites(
    reader: CommitReader, pr: PullRequest, spec: BuildSpec, names: Collection[str]
) -> Iterator[SuiteFiles]:
    """Return the tests of the merge commit that use the fixture, as one asv suite, if there are any.

    Those that mention *names* come first. pytest-benchmark itself is not needed: the callable passed to the fixture is
    timed like everything else. Test and benchmark files that the pull request changes are copied over every arm.
    """
    commit, folder = pr.facts.merge_commit_sha, spec.benchmark_dir.strip("/")
    reader.complete(commit)
    every = [path for path in reader.list(commit) if path.endswith(".py") and _may_use_it(PurePosixPath(path))]
    texts = {path: reader.read(commit, path) or b"" for path in every}
    # files in the asv suite's place are gone when another suite is installed
    changed = {file.path for file in pr.change.files if not file.path.startswith(f"{folder}/")}
    words = {
        PytestFunction(path, function): frozenset(names) & spoken
        for path, text in texts.items()
        if not path.startswith(f"{folder}/") and is_same_everywhere(path, changed, spec.package_name)
        for function, spoken in using_the_fixture(text).items()
    }
    chosen = sorted(words, key=lambda function: (-len(words[function]), function))[:MOST_FUNCTIONS]
    if chosen:
        contents = ((path, reader.read(commit, path)) for path in changed if is_laid(path, spec.package_name))
        laid = {path: content for path, content in contents if content is not None}
        files = {**laid, **suite_files(dict.fromkeys(chosen, ()), spec, words=words, handing=True)}
        adapted = tuple(f"{function.file}: {function.name}" for function in chosen)
        yield SuiteFiles(
            f"{len(chosen)} tests with a benchmark fixture", files, Source.PYTEST_BENCHMARK, commit, adapted
        )


def using_the_fixture(source: bytes) -> dict[str, frozenset[str]]:
    """Functions, and methods as `Class::function`, that take the fixture, with the words of each."""
    if FIXTURE.encode() not in source:
        return {}
    return {
        name: words_of(function)
        for name, function in functions_in(source).items()
        if not _is_fixture(function)
        and FIXTURE in {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    }


def _may_use_it(path: PurePosixPath) -> bool:
    return is_of_tests(path) or any("bench" in part for part in path.parts)


def _is_fixture(function: ast.FunctionDef) -> bool:
    return any("fixture" in word for decorator in function.decorator_list for word in words_of(decorator))
