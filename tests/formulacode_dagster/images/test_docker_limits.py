"""What a Docker build may use, and that nothing of it outlives us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from formulacode_dagster.images.docker_engine import DockerEngine

from .conftest import LIMITS, PURE, command, make_sample, make_spec

pytestmark = [pytest.mark.docker, pytest.mark.network]

OS_IMAGE = os.environ.get("FC_OS_IMAGE", "fc-os:py{python}")
BUNDLE = os.environ.get("SSL_CERT_FILE")


def make_engine(build_cgroup: str = "") -> DockerEngine:
    return DockerEngine(OS_IMAGE, LIMITS, ca_bundle=Path(BUNDLE) if BUNDLE else None, build_cgroup=build_cgroup)


@pytest.fixture(scope="module", autouse=True)
def _tidy() -> Iterator[None]:
    yield
    client = make_engine().daemon.client
    for name in ("limited", "orphan"):
        for image in client.images.list(filters={"label": f"formulacode.repository=Acme/{name}"}):
            client.images.remove(str(image.id), force=True)


def running(mark: str) -> bool:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True, text=True).stdout
    return f"sleep {mark}" in found


def until(condition: bool, mark: str, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while running(mark) is not condition and time.monotonic() < ends:
        time.sleep(0.2)
    assert running(mark) is condition


def test_a_build_runs_in_the_cgroup_it_is_given_and_under_resource_limits(lock: str, tmp_path: Path) -> None:
    sample = make_sample(tmp_path / "limited", "limited", PURE, {"README.md": "x"})
    facts = make_engine().daemon.client.info()
    parent = "formulacode-test.slice" if facts["CgroupDriver"] == "systemd" else "/formulacode-test"
    shown = ("cat", "/proc/self/cgroup", "/proc/self/limits")
    spec = make_spec(sample, lock, os_image=OS_IMAGE, commands=(command(*shown),))
    log = make_engine(parent).build(spec, mirror=sample.mirror, run_id="limits").log
    assert f"Max processes             {LIMITS.processes * 8}" in log
    assert f"Max data size             {LIMITS.memory_mb * 1024 * 1024}" in log
    if facts["CgroupVersion"] == "1":
        assert f"memory:{parent}/" in log


def test_a_build_whose_builder_is_killed_does_not_go_on(lock: str, tmp_path: Path) -> None:
    mark = f"6{os.getpid()}5"
    sample = make_sample(tmp_path / "orphan", "orphan", PURE, {"README.md": "x"})
    spec = make_spec(sample, lock, os_image=OS_IMAGE, commands=(command("setsid", "--wait", "sleep", mark),))
    program = f"""
from pathlib import Path
from formulacode_dagster.images.docker_engine import DockerEngine
from formulacode_dagster.models.image import BuildSpec
bundle = {BUNDLE!r}
engine = DockerEngine({OS_IMAGE!r}, ca_bundle=Path(bundle) if bundle else None)
engine.build(BuildSpec.model_validate_json({spec.model_dump_json()!r}), mirror=Path({str(sample.mirror)!r}), run_id="x")
"""
    builder = subprocess.Popen([sys.executable, "-c", program])
    try:
        until(True, mark, 120)
    finally:
        builder.send_signal(signal.SIGKILL)
        builder.wait()
    until(False, mark, 30)
