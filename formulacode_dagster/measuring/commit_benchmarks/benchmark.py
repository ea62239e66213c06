"""Benchmarks a list of commits in turns, so that slow hours of the machine affect all of them equally.

The folder of results is the only state: the next run continues a killed one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.suites.commits import config_of_suite
from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles, is_whole_checkout, suite_at
from formulacode_dagster.measuring.measurement.cores import Cores
from formulacode_dagster.models.errors import BusyError, ConfigurationError, ItemFailure, Rejection, SuspectedOutage
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.files.atomic import disk_errors
from formulacode_dagster.sources.git.mirror import Mirror

from .asv_results import (
    BENCHMARKS,
    MACHINE,
    OURS,
    add_samples,
    append_result,
    environment_name,
    new_result,
    read_json,
    result_path,
    with_descriptions,
    write_json,
)
from .images import CommitImages
from .plain_asv import PlainAsv
from .sampling import RoundsPlan, TakenRound, take_round

FAILURES = "failures.jsonl"
LOCK = ".lock"
LOG_CHARACTERS = 20_000


class CommitState(StrEnum):
    """State of a commit."""

    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class BenchmarkedCommit:
    """State of one commit at the end of a run."""

    sha: str
    state: CommitState
    rounds: int = 0
    """All that it has had by now."""
    benchmarks: int = 0
    reason: str = ""
    detail: str = ""
    worked: bool = False
    """True if this run worked on it."""
    lock_sha256: str = ""
    """If it differs from that of the previous commit, a step may be caused by another package."""


@dataclass
class CommitBenchmarks:
    """Benchmarks of *commits* into a folder of results."""

    images: CommitImages
    folder: Path
    """Data stored with the results: a lock, and failures."""
    results: Path
    """asv's folder of results."""
    machine: dict[str, Any]
    """Contents of asv's `machine.json`."""
    limits: ResourceLimits
    plan: RoundsPlan
    suite_sha: str = ""
    """Commit whose suite is used for all others; empty for the newest one, as in asv."""
    asv: PlainAsv | None = None
    """Alternative to our own sampler."""
    again: bool = False
    """True to retry earlier failures once."""
    note: Callable[[str], None] = lambda _line: None
    cores: Cores = field(default_factory=Cores)

    def run(self, commits: Sequence[str]) -> list[BenchmarkedCommit]:
        """Benchmark *commits*, oldest first; returns the state of each in the same order.

        A failed commit is reported and stops no other; one lost to a possible outage is tried again by the next run.
        Raises OutsideSystemError if Docker or the disk fails, or the index refuses access, BusyError while another run
        uses the folder, ConfigurationError if no commit has a suite.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.folder / LOCK, timeout=0):
                return self._run(commits)
        except Timeout as error:
            raise BusyError(
                f"another run benchmarks into {self.folder}", remedy="Wait for it, or name another folder"
            ) from error

    def _run(self, commits: Sequence[str]) -> list[BenchmarkedCommit]:
        suite = self._suite(self.suite_sha or commits[-1])
        subject = self._subject(suite)
        failures = {} if self.again else self._earlier_failures(subject)
        write_json(self.results / self.machine["machine"] / MACHINE, self.machine)
        worked: set[str] = set()
        rounds = self.asv.turns if self.asv else self.plan.rounds
        for number in range(rounds):
            generator = random.Random(f"{self.plan.seed} {number}")  # noqa: S311 - an order, not a secret
            for sha in generator.sample(commits, len(commits)):
                if sha in failures or self._rounds_of(sha, subject) > number:
                    continue
                worked.add(sha)
                self.note(f"{sha[:10]}: round {number + 1} of {rounds}")
                image: BuiltImage | None = None
                try:
                    image = self.images.image(sha, self.note)
                    self._benchmark(sha, image, suite, generator)
                except (ItemFailure, Rejection) as end:
                    failures[sha] = self._failed(sha, end, subject if image else "")
                    self.note(f"{sha[:10]} {end}")
        return [self._standing(sha, failures.get(sha), sha in worked) for sha in commits]

    def _benchmark(self, sha: str, image: BuiltImage, suite: SuiteFiles, generator: random.Random) -> None:
        path = self._path(sha, image.spec.python)
        known, earlier = read_json(self.results / BENCHMARKS), read_json(path)
        before = (earlier or {}).get(OURS, {})
        if self.asv is not None:
            result, descriptions = self.asv.run(self.images.engine, image, sha, self._laid(image, suite), self.machine)
            descriptions = {**(known or {}), **descriptions}
            if earlier and self.asv.turns > 1:
                result = append_result(earlier, result)
            elif earlier:
                result = {**result, "results": {**earlier["results"], **result["results"]}}
            figures: dict[str, object] = {"arguments": list(self.asv.arguments)}
        else:
            taken = take_round(
                self.images.engine,
                image,
                self._laid(image, suite),
                self.plan,
                limits=self.limits,
                cores=self.cores,
                generator=generator,
                run_id=self.images.run_id,
            )
            earlier = earlier or new_result(sha, self._date(sha), image.spec.python, self.machine)
            result = add_samples(earlier, taken.descriptions, taken.samples, seconds=taken.seconds)
            descriptions = with_descriptions(known, taken.descriptions)
            figures = _figures(taken, before)
        # referenced files first; a field in the result marks its round as done
        write_json(self.results / BENCHMARKS, descriptions)
        subject = self._subject(suite)
        figures = {
            **figures,
            "rounds": before.get("rounds", 0) + 1,
            "rounds_of": {**before.get("rounds_of", {}), subject: self._rounds_of(sha, subject) + 1},
            "suite": suite.commit,
            "lock_sha256": image.spec.lock_sha256,
            "image": image.tag,
        }
        write_json(path, {**result, OURS: figures})

    def _subject(self, suite: SuiteFiles) -> str:
        """Return the subject of a round: another suite, other benchmarks or arguments have rounds of their own."""
        chosen: dict[str, object] = {"bench": self.plan.pattern}
        if self.asv is not None:
            chosen = {"asv": list(self.asv.arguments)}
        return json.dumps({**chosen, "suite": suite.sha256}, sort_keys=True)

    def _suite(self, sha: str) -> SuiteFiles:
        mirror: Mirror = self.images.mirror
        config = config_of_suite(Tree(mirror, sha))
        if isinstance(config, str):
            raise ConfigurationError(
                f"there is no suite at {sha[:10]}: {config}", remedy="Name a commit that has one with --suite"
            )
        if is_whole_checkout(config.benchmark_dir):
            return BASE_SUITE
        return suite_at(mirror, sha, config.benchmark_dir, name=f"suite of {sha[:12]}", source=Source.LATER_SUITE)

    def _laid(self, image: BuiltImage, suite: SuiteFiles) -> SuiteFiles:
        """Return *suite* moved to this commit's own benchmark folder."""
        own, files = image.spec.benchmark_dir.strip("/"), suite.files
        if files is None or all(path.startswith(f"{own}/") for path in files):
            return suite
        raise ItemFailure(
            FailureKind.BENCHMARKS_FAIL,
            f"the suite is in {own} at this commit, and elsewhere at {suite.commit[:12]}",
            remedy="Benchmark the commits before and after the move apart",
        )

    def _date(self, sha: str) -> int:
        return self.images.mirror.commit(sha).committed * 1000

    def _path(self, sha: str, python: str) -> Path:
        return result_path(self.results, self.machine["machine"], sha, environment_name(python))

    def _results(self, sha: str) -> dict[str, Any] | None:
        folder = self.results / self.machine["machine"]
        read = (read_json(path) for path in sorted(folder.glob(f"{sha[:8]}-*.json")))
        return next((result for result in read if result is not None and result["commit_hash"] == sha), None)

    def _rounds_of(self, sha: str, subject: str) -> int:
        ours = (self._results(sha) or {}).get(OURS, {})
        # results of earlier versions do not say what they are of
        return int(ours.get("rounds_of", {subject: ours.get("rounds", 0)}).get(subject, 0))

    def _earlier_failures(self, subject: str) -> dict[str, dict[str, str]]:
        path = self.folder / FAILURES
        failures: dict[str, dict[str, str]] = {}
        for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
            try:
                failure = json.loads(line)
                # a commit that was not built fails whichever benchmarks are timed
                if failure.get("subject") in (None, "", subject):
                    failures[failure["commit"]] = failure
            except (ValueError, KeyError, TypeError):
                # the last line of a run that was killed may be cut
                continue
        return failures

    def _failed(self, sha: str, end: ItemFailure | Rejection, subject: str) -> dict[str, str]:
        reason = end.kind if isinstance(end, ItemFailure) else end.reason
        failure = {
            "commit": sha,
            "subject": subject,
            "reason": str(reason),
            "detail": str(end),
            "log": (end.log or getattr(end, "log_tail", ""))[-LOG_CHARACTERS:],
        }
        if isinstance(end, SuspectedOutage):
            return failure
        path = self.folder / FAILURES
        with disk_errors(str(path)), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(failure) + "\n")
        return failure

    def _standing(self, sha: str, failure: dict[str, str] | None, worked: bool) -> BenchmarkedCommit:
        result = self._results(sha) or {}
        ours = result.get(OURS, {})
        return BenchmarkedCommit(
            sha,
            CommitState.FAILED if failure else CommitState.DONE,
            rounds=int(ours.get("rounds", 0)),
            benchmarks=len(result.get("results", ())),
            reason=failure["reason"] if failure else "",
            detail=failure["detail"] if failure else "",
            worked=worked,
            lock_sha256=str(ours.get("lock_sha256", "")),
        )


def _figures(taken: TakenRound, before: dict[str, Any]) -> dict[str, object]:
    """Return the worst disturbance of samples *taken* now and before."""
    return {
        "steal": max(round(taken.steal, 4), before.get("steal", 0.0)),
        "others": max(round(taken.others, 4), before.get("others", 0.0)),
        "cpu": taken.machine,
        "lost": taken.lost,
        "processes": taken.processes + before.get("processes", 0),
    }
