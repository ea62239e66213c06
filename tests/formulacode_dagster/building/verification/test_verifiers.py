from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.verification.verifications import VERIFICATION_NAMES
from formulacode_dagster.building.verification.verifiers import (
    TIMED_OUT,
    MultiVerifier,
    ProfileVerifier,
    SmokeVerifier,
    Verifier,
    VerifierResult,
)
from formulacode_dagster.library import MultiVerifier as OfTheLibrary
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.reasons import FailureKind
from tests.support.images import PURE, as_image, make_sample, make_spec


class Says(Verifier):
    """Returns a scripted result."""

    def __init__(self, rc: int, words: str) -> None:
        self.rc, self.words, self.asked = rc, words, 0

    def judge(self, evidence: object) -> VerifierResult:
        self.asked += 1
        return VerifierResult(self.rc == 0, self.rc, self.words, f"{self.words} on stderr", 1.0)


@pytest.fixture
def built(engine: ProcessEngine, tmp_path: Path, lock: str) -> Callable[[str], BuiltImage]:
    """Makes an image whose only benchmarks are those of a module."""

    def build(module: str) -> BuiltImage:
        files = {**PURE, "benchmarks/bench_total.py": module}
        sample = make_sample(tmp_path / "tinypure", "tinypure", files, {"x": "y"})
        spec = make_spec(sample, lock)
        return as_image(EngineName.PROCESS, spec, engine.build(spec, Origins(sample.mirror)))

    return build


@pytest.mark.network
class TestAnImage:
    def test_is_verified_by_importing_and_timing_it(self, compiled_image: BuiltImage) -> None:
        result = OfTheLibrary([SmokeVerifier("tinyc"), ProfileVerifier(timeout=120)]).verify(compiled_image)
        assert (result.ok, result.rc, result.stderr) == (True, 0, "")
        assert "2 modules import: tinyc, tinyc._fast" in result.stdout
        assert "1 benchmarks, 1 told by reading" in result.stdout
        assert "bench_answer.time_answer: " in result.stdout
        assert 0 < result.duration_s < 120

    def test_whose_suite_nobody_named_is_looked_up_in_its_own_configuration(self, pure_image: BuiltImage) -> None:
        spec = pure_image.spec.model_copy(update={"benchmark_dir": ""})
        result = ProfileVerifier(timeout=120).verify(pure_image.model_copy(update={"spec": spec}))
        assert result.ok
        assert "bench_total" in result.stdout

    def test_without_the_package_fails_with_the_words_of_the_import(self, pure_image: BuiltImage) -> None:
        result = MultiVerifier([SmokeVerifier("pandas"), ProfileVerifier(timeout=120)]).verify(pure_image)
        assert not result.ok
        assert result.rc != 0
        assert result.stdout == "pandas: ModuleNotFoundError: No module named 'pandas'"
        assert "Traceback" in result.stderr

    def test_that_takes_longer_than_it_may_is_never_ok(self, built: Callable[[str], BuiltImage]) -> None:
        """Failure 39: what was killed is no pass."""
        image = built("import time\n\n\ndef time_x():\n    time.sleep(60)\n")
        result = ProfileVerifier(timeout=4).verify(image)
        assert not result.ok
        assert result.rc != 0
        late = SmokeVerifier("tinypure", timeout=0.01).verify(image)
        assert (late.ok, late.rc) == (False, TIMED_OUT)

    def test_whose_benchmarks_are_found_and_fail_is_not_verified(self, built: Callable[[str], BuiltImage]) -> None:
        """Failure 40: discovery by itself verifies nothing."""
        result = ProfileVerifier(timeout=60).verify(built("def time_x():\n    1 / 0\n"))
        assert not result.ok
        assert "ZeroDivisionError" in result.stdout

    def test_is_asked_no_more_after_the_first_verifier_that_does_not_hold(self, pure_image: BuiltImage) -> None:
        first, second, third = Says(0, "first"), Says(7, "second"), Says(0, "third")
        result = MultiVerifier([first, second, third]).verify(pure_image)
        assert (result.ok, result.rc, third.asked) == (False, 7, 0)
        assert result.stdout == "first\nsecond"
        assert result.stderr == "first on stderr\nsecond on stderr"


def test_no_verifier_at_all_verifies_nothing() -> None:
    with pytest.raises(ValueError, match="at least one"):
        MultiVerifier([])


@pytest.mark.docker
def test_an_image_that_is_nowhere_or_of_somebody_else_is_refused() -> None:
    from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
    from formulacode_dagster.building.engines.docker.reference import find_image

    reference = os.environ.get("FC_OS_IMAGE", "fc-os:py{python}").replace("{python}", "3.11")
    with pytest.raises(ItemFailure, match="not an image of a task") as caught:
        find_image(DockerDaemon(), reference)
    assert caught.value.kind == "not_ours"


def test_a_verification_that_fails_gives_the_failure_its_name() -> None:
    assert set(VERIFICATION_NAMES) <= set(FailureKind)
