"""`fc-data profile`, as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.suites.overlays import BASE_SUITE
from formulacode_dagster.measuring.measurement.persistence import MeasuredPullRequest, save
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import PROCEDURE_BLOB, Procedure
from formulacode_dagster.models.measurement import Arm, RandomizationUnit
from formulacode_dagster.operating.store.artifacts import IMAGES, MERGED_PULL_REQUESTS, PROFILES
from formulacode_dagster.operating.store.blobs import put_blob
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from tests.records import make_measurement
from tests.support.command_line import FcData
from tests.support.git_world import git_bytes
from tests.support.images import LIMITS, MONTH, Sample, build_sample, make_spec

KEY = {"month": MONTH, "repository_id": 7, "number": 5}
BENCHMARK = "bench_total.time_small"


@pytest.mark.slow
def test_the_documented_command_samples_both_sides_and_stores_them(
    pure: Sample, lock: str, database: Database, database_url: str, call_fc_data: FcData, tmp_path: Path
) -> None:
    image, _ = build_sample(ProcessEngine(tmp_path / "home/builds", LIMITS), make_spec(pure, lock), pure)
    patch = git_bytes(pure.mirror, "diff", pure.base, pure.merge)
    plan = SamplingPlan()
    procedure = Procedure.of(
        image,
        patch=patch,
        suite=BASE_SUITE,
        benchmarks=(BENCHMARK,),
        plan=plan,
        rule=plan.rule(RandomizationUnit.PROCESS),
        limits=LIMITS,
    )
    pr = pure.pull_request()
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [pr.facts])
        IMAGES.save(connection, [image])
        kept = put_blob(connection, PROCEDURE_BLOB, procedure.to_json().encode())
        save(connection, [MeasuredPullRequest(make_measurement({BENCHMARK: 2.0}, **KEY, procedure_sha256=kept))])
        change = pr.change.model_copy(update={"patch_sha256": procedure.patch_sha256, "patch_bytes": len(patch)})
        save_changes(connection, [(change, patch)])
    settings = {"FC_ENGINE": "process", "FC_DATABASE_URL": database_url}
    ran = call_fc_data("profile", pr.item, "--page", "flames.html", "--seconds", "0.3", **settings)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert BENCHMARK in ran.stdout
    assert "total (tinypure/__init__.py:1)" in ran.stdout
    assert (tmp_path / "flames.html").read_text().count("<svg") == 2
    with database.transaction() as connection:
        (profile,) = PROFILES.read(connection, MONTH)
    assert set(profile.stacks[BENCHMARK]) == {Arm.BASE, Arm.ORACLE}
    ran = call_fc_data("profile", "a/b#1", **settings)
    assert (ran.returncode, "is not a task that can be profiled" in ran.stderr) == (1, True)
