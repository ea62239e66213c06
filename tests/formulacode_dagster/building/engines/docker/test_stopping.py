"""A request to stop ends builds and sessions in the daemon too, and leaves no container."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.operating.cancellation.stopping import Stopped, interrupted_once, signals_heard
from tests.formulacode_dagster.building.engines.docker.test_kill import processes, wait_for
from tests.support.docker import OS_IMAGE, MakeDockerEngine
from tests.support.images import PURE, as_image, make_sample, make_spec
from tests.support.sampling import ENDED_IN_A_DAEMON

pytestmark = [pytest.mark.docker, pytest.mark.network]

ENDED_SECONDS = 10.0


def stop_once_running(mark: str, asked_at: list[float]) -> None:
    if wait_for(mark, running=True):
        asked_at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)


@ENDED_IN_A_DAEMON
def test_a_build_and_a_session_end_at_once(lock: str, make_docker_engine: MakeDockerEngine, tmp_path: Path) -> None:
    engine = make_docker_engine()
    mark = f"7{os.getpid()}3"
    run_id = f"stopped-{mark}"
    hanging = {**PURE, "setup.py": f"import subprocess\nsubprocess.run(['setsid', 'sleep', '{mark}'])\n"}
    sample = make_sample(tmp_path / "stopped", "stopped", hanging, {"README.md": "x"})
    spec = make_spec(sample, lock, os_image=OS_IMAGE)
    whole = make_sample(tmp_path / "whole", "whole", PURE, {"README.md": "x"})
    whole_spec = make_spec(whole, lock, os_image=OS_IMAGE)
    image = as_image(engine.name, whole_spec, engine.build(whole_spec, Origins(whole.mirror)))

    def measure() -> None:
        with engine.session(image, run_id=run_id) as session:
            session.run(["sleep", mark], timeout=600)

    for work in (lambda: engine.build(spec, Origins(sample.mirror)), measure):
        asked_at: list[float] = []
        with signals_heard(), interrupted_once(None):
            threading.Thread(target=stop_once_running, args=(mark, asked_at)).start()
            with pytest.raises(Stopped):
                work()
            assert wait_for(mark, running=False)
            assert time.monotonic() - asked_at[0] < ENDED_SECONDS
    assert not processes(mark)
    assert engine.daemon.client.containers.list(all=True, filters={"label": f"formulacode.run={run_id}"}) == []
