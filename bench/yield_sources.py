"""Sources of workloads that reach the change of one pull request, in its image, and the cost of each."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from found_workloads import FoundWorkloads
from yield_report import COMPILED, DONE, SourceTrial, Trial

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.suites.overlays import NO_SUITE, SuiteFiles
from formulacode_dagster.building.suites.patching import apply_patch, require_built
from formulacode_dagster.building.suites.questions import Survey
from formulacode_dagster.building.suites.remote import BenchmarkSelection, HarnessClient
from formulacode_dagster.measuring.measurement.arms import Arms
from formulacode_dagster.measuring.measurement.changed_code import ChangedCode, changed_code
from formulacode_dagster.measuring.measurement.compiled_lines import CompiledLines
from formulacode_dagster.measuring.measurement.log import Log
from formulacode_dagster.measuring.measurement.patch import FileChange, changed_files
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.relevance import comparable
from formulacode_dagster.measuring.measurement.time_budget import TimeBudget
from formulacode_dagster.measuring.workloads.documents import shown_at
from formulacode_dagster.measuring.workloads.own_tests import suites_of_tests
from formulacode_dagster.measuring.workloads.sides import Sides
from formulacode_dagster.measuring.workloads.snippets import suites_of_scripts, suites_of_snippets
from formulacode_dagster.measuring.workloads.suites import other_suites
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.measurement import Arm, Source
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.mirror import Mirror

SURVEY_SECONDS = 25.0
"""Seconds for running the benchmarks of one suite, those that mention the change first."""
BENCHMARK_SECONDS = 60.0
ENOUGH = 3
RUN = "yield"


@dataclass(frozen=True)
class Aiming:
    """One built pull request, and the target lines."""

    engine: Engine
    limits: ResourceLimits
    image: BuiltImage
    mirror: Mirror
    pr: PullRequest
    patch: bytes
    every_source: bool
    """True to try later sources although one has reached the change: this shows the contribution of each."""
    elsewhere: Iterable[SuiteFiles] = ()
    """Content of other repositories for this one, read on demand."""
    _files: list[FileChange] = field(init=False)
    _code: tuple[dict[str, bytes], dict[str, bytes]] = field(init=False)

    def __post_init__(self) -> None:
        files = changed_files(self.patch)
        paths = {path for file in files for path in (file.base_path, file.oracle_path) if path}
        commits = (self.pr.change.base_sha, self.pr.facts.merge_commit_sha)
        base, oracle = ({path: self.mirror.read(commit, path) or b"" for path in paths} for commit in commits)
        object.__setattr__(self, "_files", files)
        object.__setattr__(self, "_code", (base, oracle))

    def aimed(self, trial: Trial, first: SuiteFiles) -> Trial:
        """*trial* with the first source that reaches the change, and the result of each source.

        Raises ItemFailure: `oracle_does_not_apply`, and `benchmarks_fail` when no workload of any gives a time.
        """
        read = self._changed()
        tried: list[Trial] = []
        spent: dict[str, SourceTrial] = {}
        with ExitStack() as stack:
            arms = stack.enter_context(Arms.open(self.engine, self.image, run_id=RUN, limits=self.limits, log=Log(say)))
            for arm in (Arm.BASE, Arm.ORACLE):
                arms.start(arm)
            apply_patch(arms.sessions[Arm.ORACLE], self.patch)
            remote, compiled = arms.remotes[Arm.BASE], stack.enter_context(self._compiled(arms))
            for source, suites in self._sources(arms, first, read):
                for suite, seconds in _clocked(suites):
                    started = time.perf_counter()
                    result = self._tried(remote, compiled, trial, suite, read) if suite is not None else None
                    remote.restore()
                    seconds += time.perf_counter() - started
                    name = suite.source if suite is not None else source
                    spent[name] = spent.get(name, SourceTrial()).plus(seconds, result)
                    tried += [result] if result is not None else []
                    if result is not None and result.timed and result.aimed > 0 and not self.every_source:
                        return replace(result, sources=spent)
        best = max(tried, key=lambda each: (each.timed > 0, each.aimed > 0, each.aimed != 0), default=None)
        if best is None or not best.timed:
            log = best.log if best is not None else "no source has anything to run"
            raise ItemFailure(FailureKind.BENCHMARKS_FAIL, "no benchmark gave a time", log_tail=log)
        return replace(best, sources=spent)

    def _changed(self, extensions: Iterable[str] = ()) -> ChangedCode:
        base, oracle = self._code
        folder = self.image.spec.benchmark_dir
        return changed_code(self._files, base=base, oracle=oracle, benchmark_dir=folder, extensions=tuple(extensions))

    def _compiled(self, arms: Arms) -> CompiledLines:
        plan = SamplingPlan()
        return CompiledLines(arms, self.patch, self.limits, plan, TimeBudget(plan.max_seconds), say)

    def _tried(
        self, remote: HarnessClient, compiled: CompiledLines, trial: Trial, suite: SuiteFiles, read: ChangedCode
    ) -> Trial:
        """Run benchmarks of *suite* once on the base until enough is known of them."""
        if suite.files is not None:
            remote.write(suite.files)
        base, oracle = self._code
        # only the base is run: the lines next to an insertion stand in for the inserted ones
        around = [replace(file, base_lines=file.base_lines | file.beside_insertions) for file in self._files]
        reached = changed_code(around, base=base, oracle=oracle, benchmark_dir=self.image.spec.benchmark_dir).base
        survey = remote.survey(
            lines=reached,
            limit=BENCHMARK_SECONDS,
            budget=SURVEY_SECONDS,
            selection=BenchmarkSelection(names=read.names, enough=ENOUGH),
        )
        ran = [benchmark for benchmark in survey.benchmarks if benchmark.outcome == "ran"]
        others = [benchmark for benchmark in survey.benchmarks if benchmark not in ran]
        words = [f"{benchmark.name}: {benchmark.outcome} {benchmark.message}" for benchmark in others]
        words += [f"{name} lost: {message}" for name, message in survey.lost.items()]
        names = [benchmark.name for benchmark in ran if benchmark.lines]
        is_told = True
        if ran and not names:
            names, is_told = self._through_compiled(compiled, survey, suite)
        return replace(
            trial,
            stage=DONE,
            suite=suite.name,
            source=suite.source,
            timed=len(ran),
            aimed=len(names) or (0 if is_told else COMPILED),
            workloads=tuple(names[:ENOUGH]),
            laid=modules_of(suite, names[:ENOUGH]),
            found=FoundWorkloads.of(trial.item, names[:ENOUGH], suite) if names else None,
            log="\n".join(words),
        )

    def _through_compiled(self, compiled: CompiledLines, survey: Survey, suite: SuiteFiles) -> tuple[list[str], bool]:
        """Return the benchmarks that execute changed lines of compiled code, and whether a build covers all of them."""
        changed = self._changed(survey.extensions)
        if not changed.untraceable:
            return [], True
        candidates, _ = comparable(survey, survey, changed)
        settled = compiled.settle(candidates, changed, suite)
        names = [candidate.name for candidate in settled if candidate.executes_change]
        return names, all(candidate.executes_change is not None for candidate in settled)

    def _sources(
        self, arms: Arms, first: SuiteFiles, read: ChangedCode
    ) -> Iterator[tuple[Source, Iterator[SuiteFiles]]]:
        """Sources in their order; the patch is built only for those that need both sides."""
        pr, commit = self.pr, self.pr.change.base_sha
        yield first.source, iter(() if first is NO_SUITE else (first,))
        yield Source.LATER_SUITE, other_suites(self.mirror, pr, self.image.spec, read.names, elsewhere=self.elsewhere)
        base, oracle = (arms.sessions[arm] for arm in (Arm.BASE, Arm.ORACLE))
        try:
            built = oracle.reinstall(timeout=self.limits.build_seconds)
            require_built(built, FailureKind.ORACLE_DOES_NOT_BUILD, "with the author's patch the package")
        except ItemFailure as failure:
            say(str(failure))
            return
        sides = Sides(self.engine, self.image, (base, oracle), (read.base, read.oracle), RUN, bool(read.compiled))
        shown = shown_at(self.mirror, commit, read.names, benchmark_dir=self.image.spec.benchmark_dir)
        yield Source.SCRIPTS, suites_of_scripts(sides, shown, commit=commit, note=say)
        merged = pr.facts.merge_commit_sha
        yield (
            Source.OWN_TESTS,
            suites_of_tests(sides, patch=self.patch, commit=commit, merged=merged, note=say),
        )
        yield Source.SNIPPETS, suites_of_snippets(sides, pr, self.patch, self._code[0], shown, note=say)


def modules_of(suite: SuiteFiles, names: Iterable[str]) -> str:
    """The files of *suite* that the benchmarks *names* are in."""
    modules = {name.partition(".")[0] for name in names}
    files = {path: content for path, content in (suite.files or {}).items() if PurePosixPath(path).stem in modules}
    return "\n\n".join(f"# {path}\n{content.decode(errors='replace')}" for path, content in files.items())


def _clocked(suites: Iterator[SuiteFiles]) -> Iterator[tuple[SuiteFiles | None, float]]:
    """Each of *suites* with the seconds until it was found, and at the end None with those spent on finding no more."""
    while True:
        started = time.perf_counter()
        suite = next(suites, None)
        yield suite, time.perf_counter() - started
        if suite is None:
            return


def say(line: str) -> None:
    """Called for each wait."""
    print(line, file=sys.stderr, flush=True)
