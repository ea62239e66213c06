"""The procedure to repeat a measurement besides image and patch, released with the task's row."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, ValidationError

from formulacode_dagster.building.suites.archive import harness_archive
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec, BuiltImage, EngineName, ResourceLimits
from formulacode_dagster.models.measurement import DecisionRule, WorkloadProvenance
from formulacode_dagster.models.reasons import FailureKind

from .plan import SamplingPlan

PROCEDURE_BLOB = "procedure"


class Procedure(Frozen):
    """A complete procedure: nothing has to be looked up elsewhere."""

    version: Literal[1] = Field(default=1, description="of this schema; fields may be added to it")
    engine: EngineName = Field(description="engine of the image: docker or process")
    image_digest: str = Field(description="content digest of the image that was measured, as its engine gives it")
    spec: BuildSpec = Field(description="everything the image was built from; the patched package is built likewise")
    patch_sha256: str = Field(description="of the author's patch, as bytes")
    suite: str = Field(description="`base`, `merge commit` where the PR brings benchmarks, or `later commit …`")
    provenance: WorkloadProvenance = Field(description="source of the benchmarks")
    files: dict[str, str] | None = Field(
        description="files copied over every arm after its build, by path below the repository, base64; null: the "
        "image's own benchmarks"
    )
    benchmarks: tuple[str, ...] = Field(min_length=1, description="timed benchmarks, chosen by the lines they execute")
    plan: SamplingPlan = Field(description="how many samples are taken of them, and for how long")
    rule: DecisionRule = Field(description="how the samples are judged: looks, levels, thresholds, version")
    limits: ResourceLimits = Field(description="limits of a build or a benchmark")
    harness_sha256: str = Field(description="versions of the tools that ran the benchmarks in the image")

    @classmethod
    def of(
        cls,
        image: BuiltImage,
        *,
        patch: bytes,
        suite: SuiteFiles,
        benchmarks: Sequence[str],
        plan: SamplingPlan,
        rule: DecisionRule,
        limits: ResourceLimits,
    ) -> Procedure:
        """Return the procedure by which *patch* was measured in *image*."""
        laid = None if suite.files is None else sorted(suite.files.items())
        return cls(
            engine=image.engine,
            image_digest=image.digest,
            spec=image.spec,
            patch_sha256=hashlib.sha256(patch).hexdigest(),
            suite=suite.name,
            provenance=suite.provenance,
            files=None if laid is None else {path: base64.b64encode(data).decode() for path, data in laid},
            benchmarks=tuple(benchmarks),
            plan=plan,
            rule=rule,
            limits=limits,
            harness_sha256=harness_sha256(),
        )

    @classmethod
    def parse(cls, text: str, where: str) -> Procedure:
        """Parse the procedure in *text*; raises ItemFailure (`unreadable`) naming *where*: it may be from a later
        version.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise ItemFailure(
                FailureKind.UNREADABLE,
                f"the procedure of {where} cannot be read",
                why=str(error)[:300],
                remedy="Take the version of the platform that released it, or a later one",
            ) from error

    @property
    def suite_files(self) -> SuiteFiles:
        """Return the suite that is copied over every arm."""
        files = None if self.files is None else {path: base64.b64decode(text) for path, text in self.files.items()}
        origin = self.provenance
        return SuiteFiles(self.suite, files, origin.source, origin.commit, origin.adapted, origin.repository)

    def to_json(self) -> str:
        """Return the text that `parse` reads; equal procedures give equal texts."""
        return self.model_dump_json()


@functools.cache
def harness_sha256() -> str:
    """Return the hash of the code that runs in sessions."""
    return hashlib.sha256(harness_archive()).hexdigest()
