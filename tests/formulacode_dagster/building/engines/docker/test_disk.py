from __future__ import annotations

import uuid

import pytest

from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.protocol import Session
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, EngineName
from tests.support.docker import OS_IMAGE, MakeDockerEngine
from tests.support.images import LIMITS, Sample, as_image, make_spec

pytestmark = [pytest.mark.docker, pytest.mark.network]

ENDLESS = """
import time
with open("/tmp/much", "wb", buffering=0) as much:
    while True:
        much.write(bytes(20_000_000))
        time.sleep(0.2)
"""


@pytest.fixture
def engine(make_docker_engine: MakeDockerEngine) -> DockerEngine:
    return make_docker_engine(LIMITS.model_copy(update={"disk_mb": 300}))


@pytest.fixture
def image(engine: DockerEngine, pure: Sample, lock: str) -> BuiltImage:
    spec = make_spec(pure, lock, os_image=OS_IMAGE)
    return as_image(EngineName.DOCKER, spec, engine.build(spec, Origins(pure.mirror)))


def test_code_that_writes_without_end_is_ended_and_what_it_wrote_is_gone(
    engine: DockerEngine, image: BuiltImage
) -> None:
    with engine.session(image, run_id=(run_id := uuid.uuid4().hex)) as session:
        assert session.run(["dd", "if=/dev/zero", "of=/tmp/some", "bs=1M", "count=100"], timeout=60).ok
        with pytest.raises(ItemFailure, match="was ended after it had written") as caught:
            session.run([session.python, "-c", ENDLESS], timeout=120)
    assert caught.value.kind == "disk"
    assert engine.daemon.client.containers.list(all=True, filters={"label": f"formulacode.run={run_id}"}) == []


def test_short_commands_that_write_much_are_ended_together(engine: DockerEngine, image: BuiltImage) -> None:
    def write_all(session: Session) -> None:
        for number in range(40):
            assert session.run(["dd", "if=/dev/zero", f"of=/tmp/{number}", "bs=1M", "count=100"], timeout=60).ok
            assert session.run(["sleep", "1"], timeout=60).ok

    with (
        engine.session(image, run_id=uuid.uuid4().hex) as session,
        pytest.raises(ItemFailure, match=r" wrote |had written") as caught,
    ):
        write_all(session)
    assert caught.value.kind == "disk"
