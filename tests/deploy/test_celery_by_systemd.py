"""deploy/celery installed where deploy/systemd is, as a user installs it, on a machine of its own that systemd runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sampling import TAKES_MINUTES
from tests.support.sharing import RunFolder
from tests.support.systemd_machine import SERVICES, SystemdMachine, booted
from tests.support.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]

WORKERS = tuple(f"formulacode-worker@{queue}" for queue in ("io", "build", "measure"))
HOUSEKEEPING = "formulacode-housekeeping.timer"
MONTH = "2026-01"


@pytest.fixture
def machine(run_folder: RunFolder, worker_id: str) -> Iterator[SystemdMachine]:
    with booted(f"fc-test-{run_folder.uid}-{worker_id}-celery") as started:
        started.install("systemd")
        yield started


@TAKES_MINUTES.with_args(case="Celery by systemd, a run")
def test_runs_go_to_workers_of_celery_once_these_are_installed(machine: SystemdMachine) -> None:
    machine.set_up_sandbox()
    machine.install("celery")
    run = machine.ui.launch_month("repositories_only", MONTH)
    assert machine.ui.wait_for_run(run) == "SUCCESS", machine.journal()
    assert run in machine.run("journalctl", "--no-pager", "--unit", "formulacode-worker@io")


@TAKES_MINUTES.with_args(case="Celery by systemd, its end")
def test_workers_end_and_begin_with_the_services(machine: SystemdMachine) -> None:
    machine.install("celery")
    assert machine.states((*WORKERS, HOUSEKEEPING)) == dict.fromkeys((*WORKERS, HOUSEKEEPING), "active")
    machine.run("systemctl", "stop", "formulacode.target")
    until(lambda: set(machine.states((*SERVICES, *WORKERS)).values()) == {"inactive"}, machine.journal)
    assert machine.run("ps", "-o", "args=", "-u", "formulacode", is_expected=False) == ""
    machine.run("systemctl", "start", "formulacode.target")
    until(lambda: set(machine.states((*WORKERS, HOUSEKEEPING)).values()) == {"active"}, machine.journal)
