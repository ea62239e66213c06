"""A small repository with a history, and the lines of a change that an overlaid suite executes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.models.pull_request import ChangedFile, PullRequest
from formulacode_dagster.sources.git.mirror import Mirror
from tests.support.git_world import BareRepository
from tests.support.measurement import FolderSession, engine_of, git_patch, image, lay, pull_request, session

__all__ = ["engine_of", "git_patch", "image", "lay", "pull_request", "session"]

CORE = """
def total(n):
    return sum(range(n))


def grand_total(n):
    return total(n) + 1


def untouched():
    return 1
"""
TOTAL = frozenset({3})
"""The line of `total` that the pull request changes."""


@dataclass
class World:
    """A repository whose pull request makes `total` faster, with what came before it and after."""

    mirror: Mirror
    pr: PullRequest
    session: FolderSession

    def executed(self, suite: SuiteFiles) -> dict[str, frozenset[int]]:
        """Lines of the change that the benchmarks of *suite* execute on the base, by benchmark that ran."""
        remote = HarnessClient(self.session, benchmark_dir="benchmarks")
        remote.write(suite.files or {})
        survey = remote.survey(lines={"pkg/core.py": TOTAL}, limit=10, budget=20)
        ran = [benchmark for benchmark in survey.benchmarks if benchmark.outcome == "ran"]
        return {benchmark.name: frozenset(benchmark.lines.get("pkg/core.py", ())) for benchmark in ran}


@pytest.fixture
def world(
    tmp_path: Path, session: FolderSession, pull_request: Callable[..., PullRequest]
) -> Iterator[Callable[..., World]]:
    """A world of these suites: before the base (oldest first), of base and merge, and after; and of *tests*."""

    def build(
        *,
        base: str,
        merged: str | None = None,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        tests: Mapping[str, str] | None = None,
    ) -> World:
        history = BareRepository(tmp_path / "world.git")
        package = {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/__init__.py": "", **(tests or {})}
        for suite in before:
            history.add("A suite of before", files={**package, "benchmarks/bench.py": suite})
        first = history.add("The base", files={**package, "benchmarks/bench.py": base})
        faster = CORE.replace("sum(range(n))", "n * (n - 1) // 2")
        merge = history.add("Merge", files={"pkg/core.py": faster, "benchmarks/bench.py": merged or base})
        for suite in after:
            history.add("A suite of after", files={"benchmarks/bench.py": suite})
        shas = history.write()
        for path, text in {**package, "benchmarks/bench.py": base}.items():
            target = Path(session.repository, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        pr = pull_request()
        paths = ["pkg/core.py", *(["benchmarks/bench.py"] if merged else [])]
        change = pr.change.model_copy(
            update={"base_sha": shas[first], "files": tuple(ChangedFile(path=path, status="M") for path in paths)}
        )
        facts = pr.facts.model_copy(update={"merge_commit_sha": shas[merge]})
        opened.append(Mirror("acme/fast", history.path))
        return World(opened[0], PullRequest(facts=facts, change=change), session)

    opened: list[Mirror] = []
    yield build
    for mirror in opened:
        mirror.close()
    shutil.rmtree(tmp_path / "world.git", ignore_errors=True)
