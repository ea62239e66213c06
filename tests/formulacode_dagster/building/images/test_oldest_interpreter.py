"""A package of 2022 built, verified and timed on the oldest interpreter that an image may have."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.building.specs.spec import INSTRUMENT_VERSIONS
from formulacode_dagster.building.suites.questions import Timed
from formulacode_dagster.building.suites.remote import HarnessClient
from tests.support.declarations import resolve
from tests.support.docker import OS_IMAGE
from tests.support.images import LIMITS, Sample, build_sample, make_spec
from tests.support.measurement import take
from tests.support.sampling import TAKES_MINUTES, sampled

ENGINES = sampled(["process", pytest.param("docker", marks=pytest.mark.docker)], most=1, of=__name__)

pytestmark = [pytest.mark.network, TAKES_MINUTES.with_args(case="Python")]

OLDEST = INSTRUMENT_VERSIONS[0]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    if request.param == "process":
        return ProcessEngine(tmp_path / "engine", LIMITS)
    return request.getfixturevalue("make_docker_engine")()


def test_a_task_of_the_oldest_interpreter_is_built_verified_and_timed(
    engine: Engine, compiled: Sample, tmp_path: Path
) -> None:
    interpreters = engine.interpreters()
    if interpreters is not None and OLDEST not in interpreters:
        pytest.skip(f"no Python {OLDEST} on this machine")
    at = datetime(2022, 7, 1, tzinfo=UTC)
    lock = resolve(Resolver(tmp_path / "cache"), ["setuptools", "wheel"], python=OLDEST, exclude_newer=at).lock
    spec = make_spec(compiled, lock, python=OLDEST, os_image=OS_IMAGE, exclude_newer=at)
    image, _ = build_sample(engine, spec, compiled, run_id="test-oldest", force=True)
    assert all(verification.ok for verification in image.verifications)
    assert image.benchmarks == ("bench_answer.time_answer",)
    with engine.session(image, run_id="test-oldest") as session:
        remote = HarnessClient(session, benchmark_dir="benchmarks")
        survey = remote.survey(lines={}, limit=10, budget=30)
        timed = take(remote, survey.benchmarks[0], seconds=0.05)
        assert isinstance(timed, Timed)
