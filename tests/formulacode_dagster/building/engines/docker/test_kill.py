"""Leftovers in the daemon after a process of ours was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.scratch import abandoned_scratch
from tests.support.docker import OS_IMAGE
from tests.support.images import LIMITS, PURE, make_sample, make_spec
from tests.support.sampling import ENDED_IN_A_DAEMON

pytestmark = [pytest.mark.docker, pytest.mark.network]

PROGRAM = """
import sys
from pathlib import Path
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.models.image import BuildSpec, ResourceLimits
from formulacode_dagster.building.specs.context import Origins
spec, limits, mirror, bundle, installation = sys.argv[1:]
limits = ResourceLimits.model_validate_json(limits)
settings = DockerBuildSettings(limits, ca_bundle=Path(bundle) if bundle else None, installation=installation)
engine = DockerEngine({os_image!r}, settings)
engine.build(BuildSpec.model_validate_json(spec), Origins(Path(mirror)), progress=print)
"""


def processes(mark: str) -> bool:
    return f"sleep {mark}" in subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True, text=True).stdout


def wait_for(mark: str, *, running: bool) -> bool:
    for _ in range(600):
        if processes(mark) is running:
            return True
        time.sleep(0.1)
    return False


@ENDED_IN_A_DAEMON
def test_a_build_whose_process_is_killed_ends_in_the_daemon_too(
    lock: str, docker_installation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"8{os.getpid()}6"
    files = {**PURE, "setup.py": f"import subprocess\nsubprocess.run(['setsid', 'sleep', '{mark}'])\n"}
    sample = make_sample(tmp_path / "killed", "killed", files, {"README.md": "x"})
    spec = make_spec(sample, lock, os_image=OS_IMAGE)
    arguments = [
        spec.model_dump_json(),
        LIMITS.model_dump_json(),
        str(sample.mirror),
        os.environ.get("SSL_CERT_FILE", ""),
        docker_installation,
    ]
    program = PROGRAM.format(os_image=OS_IMAGE)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    building = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    try:
        assert wait_for(mark, running=True), "the build never got so far"
        assert abandoned_scratch() == (), "its process lives"
        building.kill()
        building.wait()
        assert wait_for(mark, running=False), "it goes on although nobody waits for it"
        assert abandoned_scratch() == tuple(sorted(scratch.iterdir())) != (), "housekeeping finds what it left here"
    finally:
        building.kill()
        building.wait()
