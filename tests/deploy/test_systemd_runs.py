"""deploy/systemd and deploy/celery installed as a user installs them, on a machine of their own that systemd runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.docker import image_is_here
from tests.support.sampling import TAKES_MINUTES
from tests.support.sharing import RunFolder
from tests.support.systemd_machine import CHECKOUT, SETTINGS, STAND_IN, SystemdMachine, booted
from tests.support.waiting import until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.xdist_group("systemd"),
    TAKES_MINUTES.with_args(case="systemd"),
    pytest.mark.timeout(1200),
]

SERVICES = ("formulacode-code", "formulacode-daemon", "formulacode-webserver")
WORKERS = tuple(f"formulacode-worker@{queue}" for queue in ("io", "build", "measure"))
HOUSEKEEPING = "formulacode-housekeeping.timer"
MONTH, NEXT_MONTH = "2026-01", "2026-02"
START_SECONDS = 300
SANDBOX = "http://127.0.0.1:8100"


@pytest.fixture(scope="module")
def machine(run_folder: RunFolder, worker_id: str) -> Iterator[SystemdMachine]:
    if not image_is_here(STAND_IN):
        pytest.skip(f"run .ci/make-service-images: {STAND_IN} is not here")
    with booted(f"fc-test-{run_folder.uid}-{worker_id}-systemd") as started:
        started.run("systemctl", "stop", "postgresql")
        # fails, which the next one makes good
        started.run(f"{CHECKOUT}/deploy/systemd/install.sh", is_expected=False)
        started.run("systemctl", "start", "postgresql")
        started.run(f"{CHECKOUT}/deploy/systemd/install.sh")
        started.run(
            "systemd-run", "--quiet", "--unit", "sandbox", "--uid", "formulacode", "--setenv", "FC_HOME=.",
            "--working-directory", "/var/lib/formulacode",
            "/opt/formulacode/venv/bin/fc-data", "sandbox", "--port", "8100",
        )  # fmt: skip
        started.add_settings(
            GITHUB_API_URL=SANDBOX, GITHUB_CLONE_URL="file:///var/lib/formulacode/sandbox/repositories",
            GH_TOKENS="sandbox", FC_MINIMUM_STARS="0", FC_LANGUAGES="any",
            FC_LISTEN_HOST="0.0.0.0",  # noqa: S104 - of the container, where the test asks the UI
        )  # fmt: skip
        started.run("systemctl", "restart", "formulacode.target")
        until(lambda: is_healthy(started), started.journal, seconds=START_SECONDS)
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
    until(lambda: is_healthy(machine), machine.journal, seconds=START_SECONDS)
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


def test_runs_go_to_workers_of_celery_once_these_are_installed_and_all_of_it_ends_together(
    machine: SystemdMachine,
) -> None:
    machine.run(f"{CHECKOUT}/deploy/celery/install.sh")
    assert machine.states((*WORKERS, HOUSEKEEPING)) == dict.fromkeys((*WORKERS, HOUSEKEEPING), "active")
    run = machine.ui.launch_month("repositories_only", MONTH)
    assert machine.ui.wait_for_run(run) == "SUCCESS", machine.journal()
    assert run in machine.run("journalctl", "--no-pager", "--unit", "formulacode-worker@io")
    machine.run("systemctl", "stop", "formulacode.target", "sandbox")
    until(lambda: set(machine.states((*SERVICES, *WORKERS)).values()) == {"inactive"}, machine.journal)
    assert machine.run("ps", "-o", "args=", "-u", "formulacode", is_expected=False) == ""
    machine.run("systemctl", "start", "formulacode.target")
    until(lambda: set(machine.states((*WORKERS, HOUSEKEEPING)).values()) == {"active"}, machine.journal)


def is_healthy(machine: SystemdMachine) -> bool:
    """Whether the platform's own question for its health is answered well."""
    return machine.run("systemctl", "start", "formulacode-health", is_expected=False) == ""
