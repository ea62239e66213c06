"""Tasks as an archive carries them, and the results that come back: shared by packing and taking."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from formulacode_dagster.building.suites.questions import ReturnValue, SurveyedBenchmark
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm, DecisionRule, InstructionCount, RoundConditions, Sample
from formulacode_dagster.models.release import ReplayMachine

MANIFEST = "manifest.json"
HARNESS = "fc_harness.pyz"
LAYOUT = "oci"
PROGRAM = "replay"
COUNTING = "counting"
"""Folder of the tool that counts instructions."""


class SlimRoot(Frozen):
    """Remainder of an image in a slim archive, and requirements on the other machine."""

    digest: str = Field(description="digest of the manifest of what is left, in the layout")
    python: str = Field(description="version of the interpreter, `3.12.1`")
    is_compiled: bool = Field(description="whether building the package takes a compiler")


class CountingTool(Frozen):
    """How the harness runs under the tool that counts instructions."""

    argv: tuple[str, ...] = Field(description="what stands before its command")
    environment: dict[str, str]


class PackedTask(Frozen):
    """A task of an archive: everything that `./replay` needs to take its samples."""

    item: str = Field(description="`owner/repo#123`")
    task_id: str
    image: str = Field(description="digest of the image's manifest in the layout")
    image_id: str = Field(description="digest of its configuration")
    slim: SlimRoot | None = Field(default=None, description="of a slim archive, which has no root file system")
    patch: str = Field(description="file with the author's patch")
    patch_sha256: str
    procedure_sha256: str = Field(description="of the row's procedure")
    harness_sha256: str = Field(description="of the harness in the archive")
    control_is_copy: bool = Field(description="whether the control is a copy of the built base")
    is_linked: bool = Field(description="whether builds may be linked again with another layout")
    environment: dict[str, str] = Field(description="variables of every process of the suite")
    benchmark_dir: str
    files: dict[str, str] | None = Field(description="suite that is copied over every arm, base64; null: the image's")
    benchmarks: tuple[str, ...]
    plan: SamplingPlan
    rule: DecisionRule
    limits: ResourceLimits


class ArchiveManifest(Frozen):
    """The archive's manifest: its tasks, and a hash of every other file."""

    version: Literal[1] = 1
    release: str = Field(description="tag of the release whose rows were packed")
    month: str
    destination: str
    tasks: tuple[PackedTask, ...]
    counting: CountingTool | None = Field(default=None, description="null if valgrind was not installed on packing")
    files: dict[str, str] = Field(description="SHA-256 of each file, by path")


class PackedResult(Frozen):
    """One replay of a task by `./replay`: its samples, or why there are none."""

    id: str = Field(min_length=8)
    task_id: str
    image: str
    image_id: str
    procedure_sha256: str
    patch_sha256: str
    harness_sha256: str
    seed: int
    entered_by: str = Field(description="way into the root file system")
    started: datetime
    ended: datetime
    outcome: str = Field(description="`measured`, or the kind of failure")
    message: str = ""
    failure_log: str = ""
    log: str = ""
    machine: str = Field(default="", description="CPU model and cores, as the harness says")
    rounds: int = 0
    cut_short: str = Field(default="", description="why rounds are missing")
    seconds: float = 0.0
    surveys: dict[Arm, dict[str, SurveyedBenchmark]] = Field(default_factory=dict)
    samples: dict[str, tuple[Sample, ...]] = Field(default_factory=dict)
    conditions: tuple[RoundConditions, ...] = ()
    returned: dict[Literal["base", "oracle", "control", "again"], dict[str, ReturnValue | None]] = Field(
        default_factory=dict, description="return values of base and oracle, and of a second call of either"
    )
    instructions: dict[str, InstructionCount] = Field(default_factory=dict, description="of a call, by benchmark")


class ReplayResults(Frozen):
    """The file that `./replay` writes."""

    version: Literal[1]
    archive_sha256: str = Field(description="of the archive's manifest")
    release: str
    month: str
    machine: ReplayMachine
    replays: tuple[PackedResult, ...]


class SealedResults(Frozen):
    """The results as text, and a hash over it."""

    sha256: str
    results: str
