from __future__ import annotations

import pytest

from formulacode_dagster.building.images.checks import suites_load, verifications_hold
from formulacode_dagster.building.verification.verifications import VERIFICATION_NAMES
from formulacode_dagster.models.image import WORKLOADS_FOLDER, BuiltImage, Verification
from tests.records import make_image, make_spec
from tests.support.images import MONTH


@pytest.fixture
def verified() -> BuiltImage:
    return make_image(
        month=MONTH,
        spec=make_spec(task_id="Acme__tiny-5"),
        benchmarks=("bench.time_x",),
        verifications=tuple(Verification(name=name, ok=True) for name in VERIFICATION_NAMES),
    )


def test_passes_when_every_image_was_verified_in_every_way(verified: BuiltImage) -> None:
    verdict = verifications_hold([verified, verified])
    assert verdict.passed
    assert verdict.summary == f"2 of 2 images hold in all {len(VERIFICATION_NAMES)} verifications"
    assert list(verdict.tally) == list(VERIFICATION_NAMES)
    assert all(counts == {"held": 2, "failed": 0, "not made": 0, "unknown": 0} for counts in verdict.tally.values())
    assert verdict.figures == {"images": 2, "sound": 2, "benchmarks": 2, "fewest": 1, "median": 1}


@pytest.mark.parametrize("name", VERIFICATION_NAMES)
class TestAVerification:
    def test_that_failed_is_told_by_name(self, name: str, verified: BuiltImage) -> None:
        failed = tuple(
            verification.model_copy(update={"ok": verification.name != name, "detail": "why"})
            for verification in verified.verifications
        )
        verdict = verifications_hold([verified, verified.model_copy(update={"verifications": failed})])
        assert not verdict.passed
        assert verdict.offenders == (f"Acme__tiny-5: {name} failed: why",)
        assert verdict.tally[name] == {"held": 1, "failed": 1, "not made": 0, "unknown": 0}
        assert verdict.summary.startswith("1 of 2 images")

    def test_that_failed_once_has_failed_in_whatever_order_it_stands(self, name: str, verified: BuiltImage) -> None:
        again = Verification(name=name, ok=False, detail="why")
        for both in ((*verified.verifications, again), (again, *verified.verifications)):
            assert not verifications_hold([verified.model_copy(update={"verifications": both})]).passed

    def test_that_an_earlier_version_of_the_code_did_not_make_is_missed(self, name: str, verified: BuiltImage) -> None:
        fewer = tuple(verification for verification in verified.verifications if verification.name != name)
        verdict = verifications_hold([verified.model_copy(update={"verifications": fewer})])
        assert verdict.offenders == (f"Acme__tiny-5: {name} not made",)
        assert verdict.tally[name]["not made"] == 1


def test_a_verification_unknown_to_this_version_is_ignored(verified: BuiltImage) -> None:
    retired = Verification(name="looks_fine", ok=True)
    verdict = verifications_hold([verified.model_copy(update={"verifications": (*verified.verifications, retired)})])
    assert not verdict.passed
    assert verdict.offenders == ("Acme__tiny-5: looks_fine unknown",)
    assert verdict.tally["looks_fine"] == {"held": 0, "failed": 0, "not made": 0, "unknown": 1}


def test_an_image_without_benchmarks_does_not_pass(verified: BuiltImage) -> None:
    verdict = verifications_hold([verified.model_copy(update={"benchmarks": ()})])
    assert not verdict.passed
    assert verdict.offenders == ("Acme__tiny-5: names no benchmark",)


def test_an_image_that_was_planned_without_a_suite_need_not_name_one(verified: BuiltImage) -> None:
    spec = verified.spec.model_copy(update={"benchmark_dir": WORKLOADS_FOLDER})
    assert verifications_hold([verified.model_copy(update={"benchmarks": (), "spec": spec})]).passed


def test_a_month_without_images_passes_and_says_so() -> None:
    verdict = verifications_hold([])
    assert verdict.passed
    assert verdict.summary == "no images this month"


@pytest.mark.parametrize(("expected", "passed"), [(0, True), (1, True), (2, True), (3, False)])
def test_an_image_that_lost_most_of_its_suite_is_doubtful(expected: int, passed: bool, verified: BuiltImage) -> None:
    lost = Verification(name="benchmarks", ok=True, detail="1 benchmarks, bench_qt lost: fontconfig not found")
    others = tuple(each for each in verified.verifications if each.name != lost.name)
    image = verified.model_copy(update={"expected_benchmarks": expected, "verifications": (*others, lost)})
    verdict = suites_load([verified, image])
    assert verdict.passed is passed
    assert verdict.figures == {"images": 2, "doubtful": not passed}
    assert verdict.offenders == (() if passed else (f"Acme__tiny-5: {lost.detail}",))
