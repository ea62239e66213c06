"""Releases: pushed images, the dataset, and replays of its tasks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen, MonthRow, PullRequestRow
from .grading import CANARY
from .measurement import Measurement, Verdict
from .reasons import FailureKind


class PublishedImage(PullRequestRow):
    """An image that was pushed, and pulled back by digest."""

    reference: str = Field(description="registry/namespace/repository:tag")
    digest: str = Field(description="sha256:… of the manifest in the registry")
    pulled_digest: str = Field(description="digest found when it was pulled back")
    image_digest: str = Field(description="the measured image")
    size_bytes: int = Field(description="download size without any of its layers: compressed, manifest included")
    pushed_bytes: int = Field(default=0, description="part of it that the registry did not have")
    saved_bytes: int = Field(
        default=0, description="part of it that the registry had: layers of other images, or all of it"
    )
    pulled_bytes: int = Field(
        default=0, description="bytes of pulling it back, without layers pulled before in that run"
    )
    is_public: bool | None = Field(default=None, description="whether it was pulled back anonymously; null: not tried")
    provenance_digest: str = Field(default="", description="of the attached in-toto statement's manifest")
    sbom_digest: str = Field(default="", description="of the attached CycloneDX document's manifest")


class TaskRecord(Frozen):
    """A task of the dataset, as it is published."""

    task_id: str = Field(description="`owner__repo-number`; unique over all months")
    repo_name: str = Field(description="`owner/repo` as of the merge")
    container_name: str = Field(
        description="`owner-repo-<pr_base_sha>:final`, lower case, as the predecessor's adapters read it; "
        "the image to pull is `image_name`"
    )
    image_name: str | None = Field(description="`registry/namespace/repository:tag`; null if no image was published")
    difficulty: str = Field(description="`easy`, `medium` or `hard`")
    classification: str = Field(description="kind of performance change, one of 14")
    patch: str = Field(
        description="the author's patch against `pr_base_sha`; encode it with `patch_encoding` before `git apply`"
    )
    final_md: str = Field(
        description="the problem statement, markdown: `statement_issue` if present, else `statement_minimal`"
    )
    pr_merged_at: datetime = Field(description="when the pull request was merged, UTC")
    pr_merge_commit_sha: str = Field(description="the commit that landed it")
    pr_base_sha: str = Field(description="the commit the task starts from")
    pr_number: int = Field(description="number of the pull request")
    image_digest: str | None = Field(description="digest of the image in the registry; pull by it, tags can move")
    license: str | None = Field(
        default=None,
        description="the repository's license at `pr_base_sha`, an SPDX expression; null if unknown",
    )
    month: str = Field(description="`YYYY-MM` of the merge")
    python: str = Field(description="interpreter of the environment")
    lock: str = Field(description="requirements with hashes, as resolved for the date of the merge")
    metric: str = Field(
        description="improved metric: `time`, `peakmemory` (of the process), `memory` (of a returned object) or `track`"
    )
    speedup: float = Field(
        description="measured: geometric mean of before / after over the `benchmarks` of `metric`; 2 is half as much"
    )
    benchmarks: tuple[str, ...] = Field(
        description="asv benchmarks that execute what the author's patch changes, faster or not"
    )
    benchmark_speedups: tuple[float, ...] = Field(
        description="before / after of each of them, in the same order; of a rate after / before"
    )
    benchmark_metrics: tuple[str, ...] = Field(description="metric of each, in the same order")
    benchmark_units: tuple[str, ...] = Field(description="unit of each: `seconds`, `bytes`, or that of a tracked value")
    benchmark_lines: tuple[str, ...] = Field(
        description="changed lines that each of them executes, in the same order: JSON, numbers by side and path"
    )
    workload_source: str = Field(description="source of the benchmarks: `base_suite`, `pull_request`, `own_tests`, …")
    workload_repository: str = Field(description="the repository their files were read in")
    workload_commit: str = Field(description="the commit their files were read at")
    workload_sha256: str = Field(
        description="hash over the files copied over base and patch; empty if the checkout's own are timed"
    )
    workload_adapted: tuple[str, ...] = Field(
        description="code converted to benchmarks, by file; empty if asv collects all of them"
    )
    patch_encoding: str = Field(
        default="utf-8", description="`utf-8`, or `latin-1` if the patch touches a file in another encoding"
    )
    classification_evidence: tuple[str, ...] = Field(
        default=(), description="changed lines of `patch`, or parts of them, that the verdict quotes"
    )
    statement_minimal: str = Field(description="which repository, and that it is to run faster")
    statement_issue: str | None = Field(
        description="the same, and the symptom as users reported it before the pull request; null if there are none"
    )
    statement_hinted: str | None = Field(
        default=None,
        description="`final_md` plus a profile of the base: the workloads' sources, their times, and hot spots; "
        "null if it was not profiled, or if that would reveal part of the solution",
    )
    speedup_low: float = Field(description="lower bound of the 95 % interval of `speedup`")
    speedup_high: float = Field(description="upper bound of it")
    p_value: float = Field(description="exact one-sided p-value of its being faster, at the look that decided")
    control_speedup: float = Field(description="the same figure as `speedup`, for the base against itself")
    faster_benchmarks: tuple[str, ...] = Field(description="benchmarks that surely are faster by themselves, corrected")
    slower_benchmarks: tuple[str, ...] = Field(description="benchmarks that surely are slower by themselves, corrected")
    benchmark_returns: tuple[str, ...] = Field(
        description="whether each of `benchmarks` returns the same with the patch: `same`, `unstable` if one side "
        "differs from itself, `not_comparable`"
    )
    pass_to_pass: tuple[str, ...] = Field(
        description="pytest's ids of the tests that reach the change and pass in three runs of either side"
    )
    fail_to_pass: tuple[str, ...] = Field(description="those that pass in three runs with the patch and in none before")
    flaky_tests: tuple[str, ...] = Field(description="those that pass in some runs of a side and not in others")
    changed_lines: int = Field(description="executable lines of Python that the patch removes or adds, tests apart")
    covered_lines: int = Field(description="those of them that a test executes")
    weak_tests: bool = Field(
        description="whether no test covers the change, under half of its lines are executed, mutants pass, or part "
        "of it is compiled, where the covering tests are unknown"
    )
    machine: str = Field(description="CPU model and cores that it was measured on")
    procedure: str | None = Field(
        default=None,
        description="JSON: the procedure to measure it again, with image and patch: workload files, benchmarks, "
        "plan, rule, limits, build spec; null if it was not stored",
    )
    replays: str = Field(
        default="[]",
        description="JSON: every replay of the task known at this release, only from row and image: `verdict`, "
        "`failure`, `measured`, `speedup`, `low`, `high`, `machine`, `cpu_family`, `replayed_at`, `release`, "
        "`is_same_harness`, `released_speedup`, `instructions_ratio`, `released_instructions_ratio`",
    )
    reviews: str = Field(
        default="[]",
        description="JSON: every review of the task by a person known at this release, the newest last: `verdict`, "
        "`note`, `reviewed_by`, `reviewed_at`",
    )
    pulled_by_digest: bool = Field(
        description="measured to be faster, by benchmarks that no model wrote, in an image that was pulled back from "
        "the registry by digest"
    )
    verified: bool = Field(description="the former name of `pulled_by_digest`")
    instructions_ratio: float | None = Field(
        default=None,
        description="instructions of a call, base / patch, as the geometric mean of the benchmarks for which callgrind "
        "could count them; no verdict depends on it; null if none was counted",
    )
    change_reached: float | None = Field(
        default=None,
        description="share of the changed functions that the benchmarks execute changed lines of; null where Python "
        "traces none, and in tasks measured before it was counted",
    )
    probes: str | None = Field(
        default=None,
        description="JSON: what patches get from the exported grader, from the published image: `probe`, `reward`, "
        "`reason`; `oracle` is the author's, all others must get 0; null if the task was not graded",
    )
    canary: str = Field(
        default=CANARY,
        description="the same GUID in every task; text that contains it is no training data",
    )


class Correction(Frozen):
    """The difference of a revision to the release before, and its reason."""

    tag: str = Field(description="`formulacode@2026-03.1`")
    difference: str = Field(description="to the release before, in one sentence")
    reason: str = Field(description="why it was made, as a person put it")


class Withdrawal(Frozen):
    """A task left out of later revisions of its month; older tags still contain it."""

    month: str
    task_id: str = Field(min_length=1)
    withdrawn_at: datetime
    withdrawn_by: str = Field(min_length=1, description="name of the person")
    reason: str = Field(min_length=1)

    @property
    def correction(self) -> str:
        """The reason of the revision, as the card prints it."""
        return f"{self.task_id} withdrawn by {self.withdrawn_by}: {self.reason}"


class Release(MonthRow):
    """A month of the dataset: written, tagged, read back. A correction is a separate row."""

    tag: str = Field(description="`formulacode@2026-03`: the month in which the window ends; `….1` its first revision")
    number: int = Field(default=0, description="0 for the first release of the month, else that of the revision")
    difference: str = Field(default="", description="of a revision to the release before, in one sentence")
    reason: str = Field(default="", description="why the revision was made")
    destination: str = Field(description="`hub:owner/name` or the path of a folder")
    revision: str = Field(description="commit the tag points to")
    tasks: int = Field(description="rows of the month")
    task_ids: tuple[str, ...] = Field(description="ids of its tasks")
    rows_sha256: str = Field(description="checksum over the month's rows, as written")
    read_back_sha256: str = Field(description="the same checksum over the rows as read back")
    schema_sha256: str = Field(description="checksum over names, order and types of the columns")
    columns: dict[str, str] = Field(default_factory=dict, description="types of the columns; empty if not recorded")
    released_at: datetime = Field(description="when the tag was set")


class ReplayVerdict(StrEnum):
    """Conclusion of a replay about a task."""

    CONFIRMED = "confirmed"
    """By the row's own rule it is `faster` again."""
    NOT_CONFIRMED = "not_confirmed"
    """By that rule it is anything else, and the samples are valid."""
    COULD_NOT_RUN = "could_not_run"
    """No conclusion: an image, a benchmark or a quiet machine was missing."""


class ReplayNote(Frozen):
    """Summary of a replay in a row of the dataset."""

    release: str = Field(description="tag of the release whose row was replayed")
    replayed_at: datetime = Field(description="when it ended, UTC")
    machine: str = Field(description="CPU model and cores; empty if unknown")
    cpu_family: str = Field(default="", description="vendor and numbers of CPU family and model, or the model's name")
    verdict: ReplayVerdict = Field(description="`confirmed`, `not_confirmed` or `could_not_run`")
    failure: FailureKind | None = Field(default=None, description="why it could not be run")
    measured: Verdict | None = Field(default=None, description="verdict of the measurement; null without one")
    speedup: float | None = Field(default=None, description="geometric mean of base / oracle")
    low: float | None = Field(default=None, description="lower bound of its 95 % interval")
    high: float | None = Field(default=None, description="upper bound of it")
    is_same_harness: bool = Field(description="whether the benchmarks were run by the very harness of the row")
    released_speedup: float | None = Field(default=None, description="of the row; null if not recorded")
    instructions_ratio: float | None = Field(default=None, description="as in the row, counted by the replay")
    released_instructions_ratio: float | None = Field(default=None, description="of the row")


class ReplayMachine(Frozen):
    """The machine on which a packed task was replayed, outside this platform."""

    model: str = Field(description="CPU model")
    vendor: str = Field(default="", description="as the kernel names it: `GenuineIntel`")
    family: str = Field(default="", description="number of the CPU family")
    model_number: str = Field(default="", description="number of the model in its family")
    stepping: str = Field(default="", description="revision of the model")
    microcode: str = Field(default="", description="version of the microcode")
    cores: int = Field(ge=1, description="cores that the replay could use")
    memory_bytes: int = Field(default=0, description="memory of the machine")
    kernel: str = Field(description="release of the kernel")
    architecture: str = Field(description="`x86_64`, `aarch64` …")


class Replay(MonthRow):
    """A released task measured again from its row and image; each replay is a separate row."""

    task_id: str = Field(description="the task")
    attempt: int = Field(ge=1, description="number of replays so far; none is ever replaced")
    release: str = Field(description="tag of the release whose row was replayed")
    destination: str = Field(description="source of the release: `hub:owner/name` or the path of a folder")
    replayed_at: datetime = Field(description="when it ended")
    run_id: str = Field(description="the run that replayed it")
    verdict: ReplayVerdict = Field(description="`confirmed`, `not_confirmed` or `could_not_run`")
    failure: FailureKind | None = Field(default=None, description="why it could not be run")
    detail: str = Field(description="one line a person reads first")
    is_same_harness: bool = Field(description="whether the benchmarks were run by the very harness of the row")
    measurement: Measurement | None = Field(
        default=None, description="samples, figures, conditions and machine, as of the first measurement"
    )
    packed_on: ReplayMachine | None = Field(
        default=None, description="machine of a replay by `./replay` of an archive; null if the platform replayed it"
    )
    entered_by: str = Field(default="", description="of an archive: how its root file system was entered")
    released_speedup: float | None = Field(default=None, description="of the row; null if not recorded")
    released_instructions_ratio: float | None = Field(default=None, description="of the row; null if not counted")

    @property
    def machine(self) -> str:
        """CPU model and cores; empty if it is unknown, as of a replay here that was not measured."""
        if self.measurement is not None:
            return self.measurement.machine
        told = self.packed_on
        return f"{told.model}, {told.cores} cores, {told.architecture}" if told else ""

    @property
    def cpu_family(self) -> str:
        """Vendor and numbers of CPU family and model, as the kernel names them; else the model's name, or empty."""
        told = self.packed_on
        if told is None or not told.family:
            return self.machine.partition(",")[0]
        return f"{told.vendor} family {told.family} model {told.model_number}"

    @property
    def note(self) -> ReplayNote:
        """Return the summary for the task's row."""
        taken = self.measurement
        return ReplayNote(
            release=self.release,
            replayed_at=self.replayed_at,
            machine=self.machine,
            cpu_family=self.cpu_family,
            verdict=self.verdict,
            failure=self.failure,
            measured=taken.verdict if taken else None,
            speedup=taken.speedup if taken else None,
            low=taken.low if taken else None,
            high=taken.high if taken else None,
            is_same_harness=self.is_same_harness,
            released_speedup=self.released_speedup,
            instructions_ratio=taken.instructions_ratio if taken else None,
            released_instructions_ratio=self.released_instructions_ratio,
        )


def standing(verdicts: Iterable[ReplayVerdict]) -> ReplayVerdict | None:
    """Return the combined verdict of the replays of one task; None without any.

    It is confirmed when each that could be run confirms it: one that does not makes it depend on the machine.
    """
    every = set(verdicts)
    if ReplayVerdict.NOT_CONFIRMED in every:
        return ReplayVerdict.NOT_CONFIRMED
    if ReplayVerdict.CONFIRMED in every:
        return ReplayVerdict.CONFIRMED
    return ReplayVerdict.COULD_NOT_RUN if every else None
