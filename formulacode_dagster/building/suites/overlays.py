"""The version of the benchmarks a task is planned and built with."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from formulacode_dagster.models.image import WORKLOADS_FOLDER
from formulacode_dagster.models.measurement import Source, WorkloadProvenance
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.sources.git.reader import CommitReader


@dataclass(frozen=True)
class SuiteFiles:
    """Replacement for the benchmark folder; None for the files of the checkout."""

    name: str
    files: Mapping[str, bytes] | None = None
    source: Source = Source.BASE_SUITE
    commit: str = ""
    """Commit of the files; `` for those of the checkout."""
    adapted: tuple[str, ...] = ()
    """Source of the benchmark, as `file: benchmark = original`."""
    repository: str = ""
    """Repository of *commit*; `` for the pull request's own."""

    @property
    def sha256(self) -> str:
        """Hash over all paths and contents; `` for the files that the checkout has anyway."""
        if self.files is None:
            return ""
        every = hashlib.sha256()
        for path, content in sorted(self.files.items()):
            for part in (os.fsencode(path), content):
                every.update(hashlib.sha256(part).digest())
        return every.hexdigest()

    @property
    def provenance(self) -> WorkloadProvenance:
        """Its provenance, as stored."""
        return WorkloadProvenance(
            source=self.source,
            repository=self.repository,
            commit=self.commit,
            sha256=self.sha256,
            adapted=tuple(map(printable, self.adapted)),
        )


def printable(text: str) -> str:
    """Return *text* with escapes for line ends and surrogates: paths of a repository may contain anything."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


_FOLDER = re.compile(r"(?:asv_)?bench(?:es|marks?)?")
_MODULE = re.compile(r"(?:.*_)?bench(?:marks?)?(?:_.*)?")
"""Names of folders and modules of benchmarks."""

BASE_SUITE = SuiteFiles("base")
NO_SUITE = SuiteFiles("repository, which has none", {})


def first_suite(reader: CommitReader, pr: PullRequest, benchmark_dir: str, *, suite_sha: str) -> SuiteFiles:
    """The suite of the base; that of the merge commit when the pull request touches it.

    Benchmarks that a pull request adds for its own change exist on one side only; overlaid on all sides they can be
    compared. *suite_sha* is the commit the environment was planned with, which differs if the base has no suite.
    NO_SUITE if it was planned without one.
    """
    if benchmark_dir == WORKLOADS_FOLDER:
        return NO_SUITE
    folder = benchmark_dir.strip("/")
    if touches(pr, folder):
        return suite_at(reader, pr.facts.merge_commit_sha, folder, name="merge commit", source=Source.PULL_REQUEST)
    if suite_sha and suite_sha not in (pr.change.base_sha, pr.facts.merge_commit_sha):
        return suite_at(reader, suite_sha, folder, name=f"later commit {suite_sha[:12]}", source=Source.LATER_SUITE)
    return BASE_SUITE


def touches(pr: PullRequest, folder: str) -> bool:
    """Return True if *pr* changes a file of the suite in *folder*."""
    return any(file.path.startswith(f"{folder}/") for file in pr.change.files)


def is_whole_checkout(benchmark_dir: str) -> bool:
    """Return True if the suite is in the repository's root: nothing can replace that."""
    return not benchmark_dir.strip("./")


def is_of_suite(path: PurePosixPath, benchmark_dir: str) -> bool:
    """Return True if *path* is in the suite's folder, or is named for benchmarks if that is the repository's root."""
    if is_whole_checkout(benchmark_dir):
        return any(map(_FOLDER.fullmatch, path.parts[:-1])) or _MODULE.fullmatch(path.stem) is not None
    return path.is_relative_to(benchmark_dir)


def suite_at(reader: CommitReader, commit: str, folder: str, *, name: str, source: Source) -> SuiteFiles:
    """All files of *folder* at *commit*, which come from *source*."""
    reader.complete(commit, folder=folder)
    contents = ((path, reader.read(commit, path)) for path in reader.list(commit, folder))
    return SuiteFiles(name, {path: content for path, content in contents if content is not None}, source, commit)
