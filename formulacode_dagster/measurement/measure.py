"""Timing the author's patch of one task against its base, in the task's own image."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from formulacode_dagster.engines.protocol import Engine, Session
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.measurement import BenchmarkFailure, Measurement, Side
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.suites.overlays import SuiteFiles
from formulacode_dagster.suites.patching import apply_patch
from formulacode_dagster.suites.remote import Remote, Survey, describe
from formulacode_dagster.workloads.own_tests import suites_of_tests

from .changed_code import ChangedCode, changed_code
from .compiled_lines import CompiledLines
from .machine import machine
from .patch import FileChange, changed_files
from .plan import SamplingPlan
from .relevance import SHOWN, Candidate, comparable, completed, select
from .sampling import take_samples
from .surveyed import Surveyed
from .verdict import benchmark_result, judge

LOG_BYTES = 4000
TELLS_NOTHING = frozenset({FailureKind.BENCHMARKS_FAIL, FailureKind.RELEVANCE_UNKNOWN})
"""Failures that another suite may spare a task."""

Progress = Callable[[str], None]
LaterSuites = Callable[[Collection[str]], Iterable[SuiteFiles]]
"""Gives suites of later commits for the names of what a patch changes."""

OtherSuites = Callable[[ChangedCode], Iterable[SuiteFiles]]
"""Gives suites beside the first for what a patch changes."""


def no_later_suites(_names: Collection[str]) -> Iterable[SuiteFiles]:
    """None: the suite at hand has to do."""
    return ()


class _Log:
    """Everything worth keeping of one task's measurement, told to the listener as it happens."""

    def __init__(self, progress: Progress | None) -> None:
        self.lines: list[str] = []
        self._progress = progress

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if self._progress is not None:
            self._progress(line)

    def keep(self, text: str) -> None:
        """Keep *text* without telling anybody."""
        self.lines.extend(text.splitlines())

    @contextmanager
    def told_by_failures(self) -> Iterator[None]:
        """Give a failure or rejection inside the `with` block this log, unless it has one."""
        try:
            yield
        except (ItemFailure, Rejection) as end:
            end.log = end.log or "\n".join(self.lines)
            raise


def measure_task(
    engine: Engine,
    image: BuiltImage,
    *,
    pr: PullRequest,
    patch: bytes,
    suite: SuiteFiles,
    later: LaterSuites = no_later_suites,
    plan: SamplingPlan,
    limits: ResourceLimits,
    run_id: str,
    surveyed: Surveyed | None = None,
    progress: Progress | None = None,
) -> tuple[Measurement, str]:
    """Measure *patch* against the base of *image*; returns the samples with their verdict, and the log.

    *suite* is laid over base, oracle and placebo alike; when none of its benchmarks tells anything about the change,
    those that *later* gives for the names of the changed code are tried, and then its own tests. What was *surveyed*
    before is not run to find relevant benchmarks, and what this survey finds is added. A measurement that is not faster
    is returned as well.

    Raises ItemFailure, with the end of the log: `malformed_patch`, `oracle_does_not_apply`, `oracle_does_not_build`,
    `base_does_not_build`, `oracle_breaks_benchmarks`, `benchmarks_fail`, `relevance_unknown`,
    `survey_unfinished`, `timeout`. Raises Rejection (`no_relevant_workload`) when no benchmark executes the change.
    """
    log = _Log(progress)
    with log.told_by_failures():
        files = changed_files(patch)
        log.keep(f"measuring {pr.item} in {image.tag} ({image.digest})")
        with ExitStack() as stack:
            sessions = {side: stack.enter_context(engine.session(image, run_id=run_id)) for side in Side}
            spec = image.spec
            remotes = {
                side: Remote(session, benchmark_dir=spec.benchmark_dir, environment=spec.run_environment)
                for side, session in sessions.items()
            }
            sources = _prepare(sessions, remotes, files, patch, suite, limits, log)
            compiled = stack.enter_context(CompiledLines(engine, image, run_id, patch, limits, plan, log))
            chooser = _Chooser(
                remotes, files, sources, compiled, surveyed or Surveyed(), image.spec.benchmark_dir, limits, plan, log
            )

            def others(changed: ChangedCode) -> Iterator[SuiteFiles]:
                yield from later(changed.names)
                yield from suites_of_tests(
                    engine,
                    image,
                    (sessions[Side.BASE], sessions[Side.ORACLE]),
                    patch=patch,
                    lines=(changed.base, changed.oracle),
                    commit=pr.change.base_sha,
                    run_id=run_id,
                    note=log,
                )

            suite, selected, failures = chooser.choose(suite, others)
            samples = take_samples(remotes, selected, plan=plan, note=log)
        failures += samples.failures
        for failure in failures:
            log.keep(f"{failure.benchmark} failed on the {failure.side}: {failure.kind}\n{failure.message}")
        if samples.dropped:
            log(f"no time for {', '.join(samples.dropped)}")
        results = [
            benchmark_result(
                candidate.name, samples.by_benchmark[candidate.name], executes_change=candidate.executes_change
            )
            for candidate in selected
            if candidate.name in samples.by_benchmark
        ]
        if not results:
            raise _nothing_timed(failures)
        verdict = judge(results)
        log(verdict.detail)
        measurement = Measurement(
            month=image.month,
            repository_id=image.repository_id,
            number=image.number,
            engine=image.engine,
            image_digest=image.digest,
            instrument=image.spec.instrument,
            suite=suite.name,
            provenance=suite.provenance,
            executed={candidate.name: candidate.executed for candidate in selected},
            rounds=plan.rounds,
            results=tuple(results),
            failures=tuple(failures),
            speedup=verdict.speedup,
            significant=verdict.significant,
            is_faster=verdict.is_faster,
            machine=machine(),
        )
        return measurement, "\n".join(log.lines)


def _prepare(
    sessions: Mapping[Side, Session],
    remotes: Mapping[Side, Remote],
    files: Sequence[FileChange],
    patch: bytes,
    suite: SuiteFiles,
    limits: ResourceLimits,
    log: _Log,
) -> dict[Side, dict[str, bytes]]:
    """Bring each side to its code, built; returns the changed Python files before and after."""
    python = [change for change in files if PurePosixPath(change.path).suffix == ".py"]
    log("applying the author's patch")
    sources = {Side.BASE: remotes[Side.BASE].read(change.base_path for change in python if change.base_path)}
    apply_patch(sessions[Side.ORACLE], patch)
    sources[Side.ORACLE] = remotes[Side.ORACLE].read(change.oracle_path for change in python if change.oracle_path)
    for side in Side:
        if suite.files is not None:
            remotes[side].write(suite.files)
        # The base as well: had only the others been rebuilt, what a rebuild does would look like the patch's work.
        log(f"rebuilding the {side}")
        _rebuild(sessions[side], side, limits, log)
    return sources


def _rebuild(session: Session, side: Side, limits: ResourceLimits, log: _Log) -> None:
    built = session.reinstall(timeout=limits.build_seconds)
    log.keep(f"rebuilt in {built.seconds:.1f} s; {describe(built)}")
    if built.ok:
        return
    does_not_build = FailureKind.ORACLE_DOES_NOT_BUILD if side is Side.ORACLE else FailureKind.BASE_DOES_NOT_BUILD
    what = "with the author's patch the package" if side is Side.ORACLE else "the unmodified package"
    raise ItemFailure(
        FailureKind.TIMEOUT if built.timed_out else does_not_build,
        f"{what} {'takes too long to build' if built.timed_out else 'does not build'}",
        why=describe(built).partition("\n")[0],
        log_tail=f"{built.stdout[-LOG_BYTES:].decode(errors='replace')}\n{describe(built)}",
    )


@dataclass(frozen=True)
class _Chooser:
    """Finds the suite, and in it the benchmarks, that tell something about the change."""

    remotes: Mapping[Side, Remote]
    files: Sequence[FileChange]
    sources: Mapping[Side, Mapping[str, bytes]]
    compiled: CompiledLines
    surveyed: Surveyed
    benchmark_dir: str
    limits: ResourceLimits
    plan: SamplingPlan
    log: _Log

    def choose(
        self, suite: SuiteFiles, others: OtherSuites
    ) -> tuple[SuiteFiles, list[Candidate], list[BenchmarkFailure]]:
        """The suite, its benchmarks to time, each seen to run on every side, and those that fail.

        Raises what the first suite ended with when no later one does better.
        """
        try:
            return suite, *self._select(suite)
        except (Rejection, ItemFailure) as end:
            if isinstance(end, ItemFailure) and end.kind not in TELLS_NOTHING:
                raise
            ended: Rejection | ItemFailure = end
        self.log(f"the suite of the {suite.name} tells nothing about the change: {ended}")
        for other in others(self._changed(())):
            self.log(f"trying the suite of the {other.name}")
            for side in Side:
                self.remotes[side].write(other.files or {})
            try:
                return other, *self._select(other)
            except (Rejection, ItemFailure) as end:
                if isinstance(end, ItemFailure) and end.kind is FailureKind.SURVEY_UNFINISHED:
                    raise
                self.log(f"the suite of the {other.name} tells nothing about the change: {end}")
        raise ended

    def _survey(self, side: Side, only: Sequence[str] | None = None, ruled_out: frozenset[str] = frozenset()) -> Survey:
        self.log(f"running {'every benchmark' if only is None else f'{len(only)} benchmarks'} once on the {side}")
        changed = self._changed(())
        return self.remotes[side].survey(
            lines=changed.oracle if side is Side.ORACLE else changed.base,
            limit=float(self.limits.benchmark_seconds),
            budget=self.plan.max_survey_seconds,
            only=only,
            names=changed.names,
            ruled_out=ruled_out,
        )

    def _changed(self, extensions: Sequence[str]) -> ChangedCode:
        return changed_code(
            self.files,
            base=self.sources[Side.BASE],
            oracle=self.sources[Side.ORACLE],
            benchmark_dir=self.benchmark_dir,
            extensions=extensions,
        )

    def _select(self, suite: SuiteFiles) -> tuple[list[Candidate], list[BenchmarkFailure]]:
        if ruled_out := self.surveyed.ruled_out(suite):
            self.log(f"an earlier survey ran {len(ruled_out)} benchmarks, which do not execute the change")
        base, oracle = (self._survey(side, ruled_out=ruled_out) for side in (Side.BASE, Side.ORACLE))
        if base.uninstalled:
            self.log(f"last on the import path, though not installed: {', '.join(base.uninstalled)}")
        changed = self._changed(base.extensions)
        lines = {side: sum(map(len, at.values())) for side, at in (("base", changed.base), ("oracle", changed.oracle))}
        self.log.keep(f"changed lines: {lines['base']} on the base, {lines['oracle']} with the patch")
        if changed.untraceable:
            self.log(f"Python cannot trace: {', '.join(changed.untraceable)}")
        candidates, failures = comparable(base, oracle, changed)
        candidates = self.compiled.settle(candidates, changed, suite)
        self.surveyed.add(suite, candidates)
        selected = select(candidates, limit=self.plan.max_benchmarks, seed=self.plan.seed)
        self.log(f"{len(selected)} of {len(candidates)} benchmarks are timed")
        missing = {
            side: [c.name for c in selected if side not in c.by_side or c.by_side[side].outcome == "untraced"]
            for side in Side
        }
        again = {side: self._survey(side, names) for side, names in missing.items() if names}
        ready, stopped = completed(selected, again)
        if not ready:
            raise _nothing_timed(stopped)
        return ready, [*failures, *stopped]


def _nothing_timed(failures: Sequence[BenchmarkFailure]) -> ItemFailure:
    return ItemFailure(
        FailureKind.BENCHMARKS_FAIL,
        "every relevant benchmark failed while it was timed",
        why="; ".join(f"{failure.benchmark}: {failure.kind} on the {failure.side}" for failure in failures[:SHOWN]),
        log_tail="\n".join(f"{failure.benchmark}: {failure.message}" for failure in failures[:SHOWN]),
    )
