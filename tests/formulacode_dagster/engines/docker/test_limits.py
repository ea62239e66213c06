"""What a Docker build may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from formulacode_dagster.engines.docker.engine import DockerEngine
from tests.support.images import LIMITS, PURE, command, make_sample, make_spec

pytestmark = [pytest.mark.docker, pytest.mark.network]

OS_IMAGE = os.environ.get("FC_OS_IMAGE", "fc-os:py{python}")
BUNDLE = os.environ.get("SSL_CERT_FILE")


def make_engine(build_cgroup: str = "") -> DockerEngine:
    return DockerEngine(OS_IMAGE, LIMITS, ca_bundle=Path(BUNDLE) if BUNDLE else None, build_cgroup=build_cgroup)


@pytest.fixture(scope="module", autouse=True)
def _tidy() -> Iterator[None]:
    yield
    client = make_engine().daemon.client
    for image in client.images.list(filters={"label": "formulacode.repository=Acme/limited"}):
        client.images.remove(str(image.id), force=True)


def test_a_build_runs_in_the_cgroup_it_is_given_and_under_resource_limits(lock: str, tmp_path: Path) -> None:
    sample = make_sample(tmp_path / "limited", "limited", PURE, {"README.md": "x"})
    facts = make_engine().daemon.client.info()
    parent = "formulacode-test.slice" if facts["CgroupDriver"] == "systemd" else "/formulacode-test"
    shown = ("cat", "/proc/self/cgroup", "/proc/self/limits")
    spec = make_spec(sample, lock, os_image=OS_IMAGE, commands=(command(*shown),))
    log = make_engine(parent).build(spec, mirror=sample.mirror, run_id="limits", force=True).log
    assert f"Max processes             {LIMITS.processes * 8}" in log
    assert f"Max data size             {LIMITS.memory_mb * 1024 * 1024}" in log
    if facts["CgroupVersion"] == "1":
        assert f"memory:{parent}/" in log
