"""Small records, and the parts they are made of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from assets.published_dataset import published_dataset
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.models.classification import Classification
from formulacode_dagster.models.correctness import Correctness
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.image import BuiltImage, InstalledDistribution, ResourceLimits, Toolchain
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.measurement import (
    Arm,
    Frame,
    Measurement,
    RandomizationUnit,
    Returned,
    Sample,
    Stacks,
    StackTime,
    TaskProfile,
)
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.release import PublishedImage, Release, Replay, ReplayVerdict, TaskRecord
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.operating.store.blobs import put_blob
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords
from formulacode_dagster.releasing.dataset.wide import procedure_record, task_records
from tests.records import (
    make_classification,
    make_image,
    make_measurement,
    make_merged,
    make_pull_request,
    make_spec,
    make_statement,
)
from tests.support.correctness import correctness_row, reaching_test
from tests.support.gates import open_gates
from tests.support.month import enter
from tests.support.release import task_row

MONTH = "2026-02"
IMAGE = "sha256:" + "1" * 64
MANIFEST = "sha256:" + "2" * 64
MERGED = datetime(2026, 2, 14, 12, 30, 0, 250_000, tzinfo=UTC)

MakeRecord = Callable[..., TaskRecord]


@pytest.fixture
def record() -> MakeRecord:
    """Makes the record of task `acme__fast-N`."""

    return task_row


@pytest.fixture
def release() -> Callable[..., Release]:
    """Makes the release of a month."""

    def make(month: str = MONTH, **changes: object) -> Release:
        facts: dict[str, object] = {
            "month": month,
            "tag": "formulacode@2026-03" if month == MONTH else f"formulacode@after-{month}",
            "destination": "hub:acme/tasks",
            "revision": "c" * 40,
            "tasks": 1,
            "task_ids": (f"acme__fast-{month}",),
            "rows_sha256": "rows",
            "read_back_sha256": "rows",
            "schema_sha256": "schema",
            "released_at": MERGED,
        }
        return Release.model_validate({**facts, **changes})

    return make


@pytest.fixture
def pull_request() -> PullRequest:
    """`Acme/Fast.py#7`."""
    facts = make_merged(
        month=MONTH,
        repository_id=42,
        repository="Acme/Fast.py",
        number=7,
        merged_at=MERGED,
        merge_commit_sha="a" * 40,
    )
    return make_pull_request(facts, base_sha="b" * 40)


@pytest.fixture
def image() -> BuiltImage:
    """The image of `Acme/Fast.py#7`."""
    spec = make_spec(task_id="Acme__Fast.py-7", repository="Acme/Fast.py", repository_id=42)
    toolchain = Toolchain(os_digest="sha256:" + "3" * 64, apt=("libc6=2.36-9", "zlib1g=1:1.2"), python="3.12.4")
    installed = (
        InstalledDistribution(name="numpy", version="2.0.0", files=3, sha256="4" * 64),
        InstalledDistribution(name="(no distribution)", version="", files=1, sha256="5" * 64),
    )
    facts = {"toolchain": toolchain, "installed": installed}
    return make_image(month=MONTH, repository_id=42, number=7, spec=spec, digest=IMAGE, **facts)


@pytest.fixture
def published() -> PublishedImage:
    """The published image of `Acme/Fast.py#7`."""
    return PublishedImage(
        month=MONTH,
        repository_id=42,
        number=7,
        reference="registry/acme/formulacode:acme__fast.py-7-111111111111",
        digest=MANIFEST,
        pulled_digest=MANIFEST,
        image_digest=IMAGE,
        size_bytes=1,
    )


@pytest.fixture
def measurement() -> Measurement:
    """The measurement of `Acme/Fast.py#7`: of two benchmarks, one is faster."""
    return make_measurement(
        {"bench.time_z": 3.0, "bench.time_a": 1.01},
        month=MONTH,
        repository_id=42,
        number=7,
        engine="docker",
        image_digest=IMAGE,
    )


@pytest.fixture
def correctness() -> Correctness:
    """The tests of `Acme/Fast.py#7`: one holds the change, one begins to pass, one is flaky."""
    tests = [
        reaching_test(*runs, f"t.py::{name}")
        for name, *runs in (("a", "...", "..."), ("b", "FFF", "..."), ("c", "..F", "..."))
    ]
    return correctness_row(*tests, month=MONTH, repository_id=42, number=7, image_digest=IMAGE)


@pytest.fixture
def classification() -> Classification:
    """The classification of `Acme/Fast.py#7`."""
    return make_classification(repository_id=42, number=7, difficulty="hard", confidence=0.9, reason="it caches")


@pytest.fixture
def statement() -> ProblemStatement:
    """The statement of `Acme/Fast.py#7`."""
    return make_statement("It is slow.", month=MONTH, repository_id=42, number=7)


@pytest.fixture
def environment() -> Environment:
    """The environment of `Acme/Fast.py#7`."""
    return Environment(
        month=MONTH,
        repository_id=42,
        number=7,
        python="3.12",
        python_reason="declared",
        python_candidates=("3.12",),
        package_root=".",
        config_path="asv.conf.json",
        benchmark_dir="benchmarks",
        requirements=(),
        lock="numpy==2.0.0\n",
        lock_sha256="0",
        resolver="uv",
        exclude_newer=MERGED,
    )


@pytest.fixture
def procedure(image: BuiltImage) -> str:
    """How `Acme/Fast.py#7` was measured, with a suite copied over its checkout."""
    suite = SuiteFiles("merge commit", {"benchmarks/bench.py": b"def time_a(): ...\n", "data.bin": b"\xff"}, commit="a")
    plan = SamplingPlan()
    made = Procedure.of(
        image,
        patch=b"diff\n",
        suite=suite,
        benchmarks=["bench.time_z"],
        plan=plan,
        rule=plan.rule(RandomizationUnit.PROCESS),
        limits=ResourceLimits(),
    )
    return made.to_json()


@pytest.fixture
def records(
    record: MakeRecord,
    measurement: Measurement,
    correctness: Correctness,
    image: BuiltImage,
    statement: ProblemStatement,
    procedure: str,
) -> TaskRecords:
    """Task `acme__fast-7` with a row in every table."""
    sample = Sample(arm=Arm.ORACLE, round=3, order=1, value=0.25, calls=4)
    results = tuple(result.model_copy(update={"samples": (sample,)}) for result in measurement.results)
    measured = measurement.model_copy(
        update={
            "results": results,
            "executed": {"bench.time_z": {"base": {"f.py": (1, 2)}}},
            "returned": {"bench.time_z": Returned.SAME},
        }
    )
    replay = Replay(
        month="2026-02",
        task_id="acme__fast-7",
        attempt=1,
        release="formulacode@2026-03",
        destination="a folder",
        replayed_at=datetime(2026, 4, 1, tzinfo=UTC),
        run_id="run",
        verdict=ReplayVerdict.COULD_NOT_RUN,
        detail="its image is gone",
        is_same_harness=True,
    )
    row = record(7, benchmarks=("bench.time_a", "bench.time_z"), procedure=procedure)
    of_base = Stacks(
        frames=(Frame(file="f.py", function="f", line=3),),
        stacks=(StackTime(frames=(0,), seconds=0.5),),
        calls=2,
        seconds=0.5,
    )
    profile = TaskProfile(
        month="2026-02",
        repository_id=42,
        number=7,
        image_digest=IMAGE,
        stacks={"bench.time_z": {Arm.BASE: of_base}, "bench.time_left_out": {Arm.BASE: of_base}},
    )
    how = procedure_record(row, measured, image, statement)
    return task_records(row, measured, correctness, [replay], profile, how)


@pytest.fixture
def month(
    database: Database,
    pull_request: PullRequest,
    classification: Classification,
    statement: ProblemStatement,
    environment: Environment,
    measurement: Measurement,
    correctness: Correctness,
    image: BuiltImage,
    procedure: str,
) -> Database:
    """A month with one task, all of whose gates are open."""
    rows = (
        (artifacts.MERGED_PULL_REQUESTS, pull_request.facts),
        (artifacts.CLASSIFICATIONS, classification),
        (artifacts.PROBLEM_STATEMENTS, statement),
        (artifacts.ENVIRONMENTS, environment),
        (artifacts.IMAGES, image),
        (artifacts.CORRECTNESS, correctness),
    )
    with database.transaction() as connection:
        stored = put_blob(connection, "procedure", procedure.encode())
        for artifact, row in rows:
            artifact.save(connection, [row])
        artifacts.MEASUREMENTS.save(connection, [measurement.model_copy(update={"procedure_sha256": stored})])
        save_changes(connection, [(pull_request.change, b"diff\n")])
    for stage in (Stage.CLASSIFICATIONS, Stage.PROBLEM_STATEMENTS, Stage.ENVIRONMENTS, Stage.MEASUREMENTS):
        enter(database, stage, pull_request.item)
    open_gates(database, published_dataset, MONTH)
    return database
