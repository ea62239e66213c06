"""`kill -9` leaves nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.cli.orphans import end_runs
from formulacode_dagster.orchestration.orphans import CODE_SERVER, SERVED_BY
from formulacode_dagster.orchestration.runs import dagster_instance

PARENT = """
import subprocess, sys, time
from formulacode_dagster.cli.orphans import ending_orphans
services = [sys.executable, "-c", sys.argv[1]]
with ending_orphans() as tell_leader:
    leader = subprocess.Popen(services, start_new_session=True, stdout=subprocess.PIPE, text=True)
    tell_leader(leader.pid)
    print(leader.pid, leader.stdout.readline().strip(), flush=True)
    sys.stdin.readline()
leader.wait()
"""
LEADER = """
import signal, subprocess, sys, time
child = subprocess.Popen(["sleep", "300"])
print(child.pid, flush=True)
signal.signal(signal.SIGTERM, lambda *_: (child.kill(), child.wait(), sys.exit(0)))
time.sleep(300)
"""
WITHOUT_ITS_CHILDREN = LEADER.replace("child.kill(), child.wait(), ", "")


@pytest.fixture
def parent(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Who has started services, and the pids of these."""
    environment = {**os.environ, "FC_HOME": str(tmp_path / "home")}
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, getattr(request, "param", LEADER)],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    services = [int(pid) for pid in process.stdout.readline().split()]
    yield process, services
    for pid in services:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    process.kill()
    process.communicate()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def users_of(home: Path) -> list[int]:
    """Processes with *home* in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "environ").read_bytes()
        except OSError:
            continue
        if f"FC_HOME={home}".encode() in told and is_alive(int(process.name)):
            found.append(int(process.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("parent", [LEADER, WITHOUT_ITS_CHILDREN], indirect=True, ids=["orderly", "careless"])
def test_of_a_killed_process_nothing_is_left(parent: tuple[subprocess.Popen[str], list[int]], tmp_path: Path) -> None:
    """Neither what leads its services, nor what that has left, nor who has ended them."""
    process, services = parent
    assert len(services) == 2
    assert all(map(is_alive, services))
    # as a terminal or a service manager would, to all that is in reach
    os.killpg(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while users_of(tmp_path / "home") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert users_of(tmp_path / "home") == []
    assert not any(map(is_alive, services))


def test_what_ends_in_order_is_ended_by_nobody_else(
    parent: tuple[subprocess.Popen[str], list[int]], tmp_path: Path
) -> None:
    process, services = parent
    print(file=process.stdin, flush=True)
    deadline = time.monotonic() + 30
    # a service that is just being started has no environment for a moment
    while (left := sorted(users_of(tmp_path / "home"))) != sorted([process.pid, *services]):
        assert time.monotonic() < deadline, f"who waited has not gone, or more than that: {left}"
        time.sleep(0.05)
    assert all(map(is_alive, services))


@dg.job
def some_job() -> None:
    """Stands for any run."""


@pytest.mark.slow
def test_runs_of_another_machine_over_the_same_storage_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Owner.current("")
    servers = [owner.model_dump_json() for owner in (here, here.model_copy(update={"host": "another machine"}))]
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.setenv(SERVED_BY, servers[0])
    monkeypatch.delenv("FC_DAGSTER_DATABASE_URL", raising=False)
    services = subprocess.Popen(["sleep", "300"], start_new_session=True)
    started = dg.DagsterRunStatus.STARTED
    with dagster_instance() as instance:
        runs = [instance.create_run_for_job(some_job, status=started, tags={CODE_SERVER: its}) for its in servers]
        end_runs(services.pid)
        assert services.wait() == -signal.SIGKILL
        left = [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[started]))]
    assert left == [runs[1].run_id]
