"""deploy/systemd installed as a user installs it, on a machine of its own that systemd runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sampling import TAKES_MINUTES
from tests.support.sharing import RunFolder
from tests.support.systemd_machine import SERVICES, SETTINGS, SystemdMachine, booted
from tests.support.waiting import until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.xdist_group("systemd"),
    TAKES_MINUTES.with_args(case="systemd"),
    pytest.mark.timeout(1200),
]

MONTH, NEXT_MONTH = "2026-01", "2026-02"


@pytest.fixture(scope="module")
def machine(run_folder: RunFolder, worker_id: str) -> Iterator[SystemdMachine]:
    with booted(f"fc-test-{run_folder.uid}-{worker_id}-systemd") as started:
        started.run("systemctl", "stop", "postgresql")
        # fails, which the next one makes good
        started.install("systemd", is_expected=False)
        started.run("systemctl", "start", "postgresql")
        started.install("systemd")
        started.set_up_sandbox()
        started.run("systemctl", "restart", "formulacode.target")
        started.wait_until_healthy()
        yield started


def test_what_was_installed_is_healthy_and_kept_from_others(machine: SystemdMachine) -> None:
    units = (*SERVICES, "formulacode-health.timer", "formulacode.target")
    assert machine.states(units) == dict.fromkeys(units, "active")
    owners = [machine.run("ps", "-o", "user=", "-p", str(machine.main_process(unit))) for unit in SERVICES]
    assert owners == ["formulacode"] * len(SERVICES)
    told = machine.run("stat", "--format", "%a %U", SETTINGS, "/var/lib/formulacode").split("\n")
    assert told == ["600 root", "700 formulacode"]


def test_a_month_is_taken_in_by_a_run_below_the_code_location(machine: SystemdMachine) -> None:
    run = machine.ui.launch_month("repositories_only", MONTH)
    assert machine.ui.wait_for_run(run) == "SUCCESS", machine.journal()


def test_a_service_that_is_killed_is_started_again(machine: SystemdMachine) -> None:
    before = machine.main_process("formulacode-daemon")
    machine.run("systemctl", "kill", "--signal", "KILL", "formulacode-daemon")
    until(lambda: machine.main_process("formulacode-daemon") not in (0, before), machine.journal)
    # the queue waits for the daemon
    run = machine.ui.launch_month("repositories_only", MONTH)
    assert machine.ui.wait_for_run(run) == "SUCCESS", machine.journal()


@pytest.fixture
def run_under_way(machine: SystemdMachine) -> Iterator[str]:
    """A run that waits for GitHub, which answers again afterwards."""
    # its code location may have been stopped before
    machine.wait_until_healthy()
    machine.run("systemctl", "kill", "--signal", "STOP", "sandbox")
    run = machine.ui.launch_month("repositories_only", NEXT_MONTH)
    until(lambda: machine.ui.status_of(run) == "STARTED", machine.journal)
    yield run
    machine.run("systemctl", "kill", "--signal", "CONT", "sandbox")


def test_a_code_location_that_is_stopped_ends_its_runs_in_order(machine: SystemdMachine, run_under_way: str) -> None:
    machine.run("systemctl", "restart", "formulacode-code")
    assert machine.ui.wait_for_run(run_under_way, 60) == "CANCELED", machine.journal()


def test_a_run_whose_code_location_was_killed_is_failed(machine: SystemdMachine, run_under_way: str) -> None:
    machine.run("systemctl", "kill", "--signal", "KILL", "formulacode-code")
    assert machine.ui.wait_for_run(run_under_way) == "FAILURE", machine.journal()
