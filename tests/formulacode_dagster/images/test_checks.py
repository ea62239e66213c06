from __future__ import annotations

from collections.abc import Callable

import pytest

from formulacode_dagster.images import checks as gates
from formulacode_dagster.models.check import GateVerdict
from formulacode_dagster.models.image import BuiltImage, Verification
from formulacode_dagster.verification import VERIFICATION_NAMES
from tests.records import make_image, make_spec
from tests.support.images import MONTH

GATES = {
    gates.declared_commit: "declared_commit",
    gates.imports: "imports",
    gates.benchmarks_discovered: "benchmarks",
    gates.one_benchmark_runs: "one_benchmark_runs",
    gates.tests_collect: "tests_collect",
    gates.nothing_planted: "nothing_planted",
    gates.no_credentials: "no_credentials",
    gates.oracle_absent: "oracle_absent",
}
Gate = Callable[[str, list[BuiltImage]], GateVerdict]


def test_every_verification_of_an_image_has_a_gate() -> None:
    assert tuple(GATES.values()) == VERIFICATION_NAMES


@pytest.fixture
def verified() -> BuiltImage:
    return make_image(
        month=MONTH,
        spec=make_spec(task_id="Acme__tiny-5"),
        benchmarks=("bench.time_x",),
        verifications=tuple(Verification(name=name, ok=True) for name in VERIFICATION_NAMES),
    )


@pytest.mark.parametrize(("gate", "name"), GATES.items())
class TestAGate:
    def test_passes_when_every_image_was_verified(self, gate: Gate, name: str, verified: BuiltImage) -> None:
        verdict = gate(MONTH, [verified, verified])
        assert verdict.passed
        assert verdict.blocking
        assert verdict.check == gate.__name__
        assert verdict.summary.startswith("2 of 2 images")

    def test_fires_on_a_verification_that_failed(self, gate: Gate, name: str, verified: BuiltImage) -> None:
        failed = tuple(
            one.model_copy(update={"ok": one.name != name, "detail": "why"}) for one in verified.verifications
        )
        verdict = gate(MONTH, [verified, verified.model_copy(update={"verifications": failed})])
        assert not verdict.passed
        assert verdict.offenders == ("Acme__tiny-5: why",)

    def test_fires_on_a_verification_that_was_never_made(self, gate: Gate, name: str, verified: BuiltImage) -> None:
        fewer = tuple(one for one in verified.verifications if one.name != name)
        verdict = gate(MONTH, [verified.model_copy(update={"verifications": fewer})])
        assert verdict.offenders == ("Acme__tiny-5: not verified",)


def test_an_image_that_names_no_benchmark_does_not_pass_whatever_was_verified(verified: BuiltImage) -> None:
    verdict = gates.benchmarks_discovered(MONTH, [verified.model_copy(update={"benchmarks": ()})])
    assert not verdict.passed


def test_a_month_without_images_passes_and_says_so(verified: BuiltImage) -> None:
    verdict = gates.imports(MONTH, [])
    assert verdict.passed
    assert verdict.summary == "no images this month"
