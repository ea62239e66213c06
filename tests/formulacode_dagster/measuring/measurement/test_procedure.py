from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import RandomizationUnit, Source
from tests.records import make_image

PLAN = SamplingPlan(max_seconds=240)
LAID = SuiteFiles(
    "2 of its own tests",
    {"benchmarks/b.py": b"\xff\r\n", "tests/a.py": b""},
    Source.OWN_TESTS,
    "c" * 40,
    ("a: b",),
    "c/d",
)


def procedure_of(suite: SuiteFiles) -> Procedure:
    return Procedure.of(
        make_image(),
        patch=b"diff",
        suite=suite,
        benchmarks=("bench.time_a(1)",),
        plan=PLAN,
        rule=PLAN.rule(RandomizationUnit.BUILD),
        limits=ResourceLimits(benchmark_seconds=5),
    )


@pytest.mark.parametrize("suite", [BASE_SUITE, LAID], ids=["the checkout's own", "laid"])
def test_a_procedure_gives_back_all_that_measuring_took(suite: SuiteFiles) -> None:
    procedure = Procedure.parse(procedure_of(suite).to_json(), "a__b-1")
    assert procedure.suite_files == suite
    assert procedure.provenance == suite.provenance
    assert (procedure.plan, procedure.rule, procedure.limits.benchmark_seconds) == (
        PLAN,
        PLAN.rule(RandomizationUnit.BUILD),
        5,
    )
    assert (procedure.spec, procedure.image_digest) == (make_image().spec, make_image().digest)
    assert procedure.patch_sha256 == hashlib.sha256(b"diff").hexdigest()
    assert procedure.benchmarks == ("bench.time_a(1)",)


def test_equal_procedures_are_equal_texts_however_their_files_came() -> None:
    turned = dataclasses.replace(LAID, files=dict(reversed((LAID.files or {}).items())))
    assert procedure_of(turned).to_json() == procedure_of(LAID).to_json()


@pytest.mark.parametrize("change", [{"version": 2}, {"benchmarks": []}, {"a_later_field": 1}])
def test_a_procedure_of_another_platform_is_unreadable_with_its_origin(change: dict[str, object]) -> None:
    text = json.dumps({**json.loads(procedure_of(LAID).to_json()), **change})
    with pytest.raises(ItemFailure, match="the procedure of a__b-1 cannot be read") as caught:
        Procedure.parse(text, "a__b-1")
    assert caught.value.kind == "unreadable"
