from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from formulacode_dagster.engines.docker.engine import DockerEngine
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, EngineName
from tests.support.images import LIMITS, Sample, as_image, make_spec

pytestmark = [pytest.mark.docker, pytest.mark.network]

OS_IMAGE = os.environ.get("FC_OS_IMAGE", "fc-os:py{python}")
ENDLESS = """
import time
with open("/tmp/much", "wb", buffering=0) as much:
    while True:
        much.write(bytes(20_000_000))
        time.sleep(0.2)
"""


@pytest.fixture
def engine() -> Iterator[DockerEngine]:
    bundle, name = os.environ.get("SSL_CERT_FILE"), uuid.uuid4().hex
    limits = LIMITS.model_copy(update={"disk_mb": 300})
    yield (made := DockerEngine(OS_IMAGE, limits, ca_bundle=Path(bundle) if bundle else None, installation=name))
    for image in made.daemon.client.images.list(filters={"label": f"formulacode.installation={name}"}):
        made.daemon.client.images.remove(str(image.id), force=True)


@pytest.fixture
def image(engine: DockerEngine, pure: Sample, lock: str) -> BuiltImage:
    spec = make_spec(pure, lock, os_image=OS_IMAGE)
    return as_image(EngineName.DOCKER, spec, engine.build(spec, mirror=pure.mirror, run_id="disk"))


def test_code_that_writes_without_end_is_ended_and_what_it_wrote_is_gone(
    engine: DockerEngine, image: BuiltImage
) -> None:
    with engine.session(image, run_id="disk") as session:
        assert session.run(["dd", "if=/dev/zero", "of=/tmp/some", "bs=1M", "count=100"], timeout=60).ok
        with pytest.raises(ItemFailure, match="was ended after it had written") as caught:
            session.run([session.python, "-c", ENDLESS], timeout=120)
    assert caught.value.kind == "disk"
    assert engine.daemon.client.containers.list(all=True, filters={"label": "formulacode.run=disk"}) == []
