"""Limits of a Docker build."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.specs.context import Origins
from tests.support.docker import OS_IMAGE, MakeDockerEngine
from tests.support.images import LIMITS, PURE, command, make_sample, make_spec

pytestmark = [pytest.mark.docker, pytest.mark.network]


def test_a_build_runs_in_the_cgroup_it_is_given_and_under_resource_limits(
    make_docker_engine: MakeDockerEngine, lock: str, tmp_path: Path
) -> None:
    sample = make_sample(tmp_path / "limited", "limited", PURE, {"README.md": "x"})
    facts = make_docker_engine().daemon.client.info()
    parent = "formulacode-test.slice" if facts["CgroupDriver"] == "systemd" else "/formulacode-test"
    shown = ("cat", "/proc/self/cgroup", "/proc/self/limits")
    spec = make_spec(sample, lock, os_image=OS_IMAGE, commands=(command(*shown),))
    log = make_docker_engine(cgroup_parent=parent).build(spec, Origins(sample.mirror), force=True).log
    assert f"Max processes             {LIMITS.processes * 8}" in log
    assert f"Max data size             {LIMITS.memory_mb * 1024 * 1024}" in log
    if facts["CgroupVersion"] == "1":
        assert f"memory:{parent}/" in log
