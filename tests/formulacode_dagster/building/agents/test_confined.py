"""What an agent cannot do: reach anything, stay, fill, shout. Real containers; none of them outlives its test."""

from __future__ import annotations

from dataclasses import replace

import pytest

from formulacode_dagster.building.agents.confined import ConfinedAgent
from formulacode_dagster.building.agents.container import Confinement
from formulacode_dagster.building.agents.edit import SpecEdit
from formulacode_dagster.building.agents.protocol import (
    AgentBudget,
    AgentOutcome,
    AgentRun,
    EditGate,
    RelayedBuild,
)
from formulacode_dagster.building.engines.docker.daemon import LABEL, DockerDaemon
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.operating.cancellation.stopping import Stopped, signals_heard
from tests.support.confined_agents import ITEM, MakeAgent, edit_with, make_task

pytestmark = pytest.mark.docker

PATIENT = AgentBudget(seconds=240, builds=2)
HASTY = AgentBudget(seconds=1.5)
GOOD_EDIT = edit_with('reason = "yaml.h is missing"\nsystem_packages = ["libyaml-dev"]')


@pytest.fixture(autouse=True)
def _nothing_is_left(daemon: DockerDaemon) -> object:
    yield
    assert not daemon.client.containers.list(all=True, filters={"label": f"{LABEL}.run={ITEM}"})


def _run(agent: ConfinedAgent, budget: AgentBudget = PATIENT, build: object = None) -> AgentRun:
    return agent.run(make_task(), budget=budget, build=build)  # type: ignore[arg-type]


def test_an_agent_reads_its_task_and_edits(make_agent: MakeAgent) -> None:
    run = _run(make_agent(f"grep -q edit.toml\ngrep -q yaml.h /task/attempts/001.log\n{GOOD_EDIT}"))
    assert run.outcome is AgentOutcome.EDITED, run.detail
    assert run.edit == SpecEdit(reason="yaml.h is missing", system_packages=("libyaml-dev",))
    assert run.cost.seconds > 0


def test_an_edit_that_is_left_as_it_is_gives_up(make_agent: MakeAgent) -> None:
    run = _run(make_agent("echo no idea"))
    assert (run.outcome, run.edit) == (AgentOutcome.GAVE_UP, None)
    assert "no idea" in run.transcript


def test_nothing_of_the_host_and_no_network_is_inside(make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKENS", "ghp_ofthehost0123456789")
    looks = [
        "env; cat /proc/1/environ; ls /run/formulacode /home /root 2>&1 || true",
        "! touch /usr/made /run/formulacode/made 2>&1 || exit 3",
        "ls /sys/class/net; grep Cap /proc/self/status; grep NoNewPrivs /proc/self/status",
        "! ls /var/run/docker.sock 2>&1 || exit 4",
    ]
    run = _run(make_agent("\n".join(looks)))
    assert run.outcome is AgentOutcome.GAVE_UP, run.detail
    assert "ghp_" not in run.transcript
    assert "CapEff:\t0000000000000000" in run.transcript
    assert "NoNewPrivs:\t1" in run.transcript
    assert [line for line in run.transcript.splitlines() if line in ("eth0", "lo")] == ["lo"]


def test_one_that_hangs_is_ended_with_all_it_has_started(make_agent: MakeAgent) -> None:
    run = _run(make_agent("trap '' TERM\nsetsid sleep 300 & (trap '' TERM; sleep 300) & sleep 300"), HASTY)
    assert run.outcome is AgentOutcome.TIMED_OUT


def test_one_that_loops_is_ended(make_agent: MakeAgent) -> None:
    assert _run(make_agent("while :; do :; done"), HASTY).outcome is AgentOutcome.TIMED_OUT


def test_one_that_shouts_is_ended_before_its_time(make_agent: MakeAgent) -> None:
    run = _run(make_agent("yes shout"))
    assert run.outcome is AgentOutcome.BUDGET, run.detail
    assert "MB" in run.detail
    assert len(run.transcript) < 50_000


def test_one_that_forks_without_end_harms_only_itself(make_agent: MakeAgent) -> None:
    run = _run(make_agent("bomb() { bomb | bomb & }; bomb; sleep 300"), HASTY)
    assert run.outcome in (AgentOutcome.TIMED_OUT, AgentOutcome.CRASHED)


def test_one_that_fills_disks_fills_none(make_agent: MakeAgent) -> None:
    fill = "for folder in /ws /task /tmp /home/agent; do ! head -c 100M /dev/zero >$folder/filling || exit 9; done"
    run = _run(make_agent(f"{fill}\nexit 1"))
    assert run.outcome is AgentOutcome.CRASHED
    assert run.transcript.count("No space left") == 4


def test_one_that_takes_all_memory_is_ended(make_agent: MakeAgent) -> None:
    run = _run(make_agent("exec python3 -c 'bytearray(1 << 30)'"))
    assert run.outcome is AgentOutcome.CRASHED


def test_one_that_ends_its_container_crashes(make_agent: MakeAgent) -> None:
    assert _run(make_agent("kill -9 -1; sleep 300")).outcome is AgentOutcome.CRASHED


def test_a_workspace_with_anything_else_is_refused(make_agent: MakeAgent) -> None:
    run = _run(make_agent(f"{GOOD_EDIT}\nln -s /etc/passwd /ws/passwd"))
    assert (run.outcome, run.gate) == (AgentOutcome.REFUSED, EditGate.FILES)
    assert "link or device 'passwd'" in run.detail


def test_an_agent_asks_for_builds_and_mends_by_their_logs(make_agent: MakeAgent) -> None:
    asked = []

    def build(edit: SpecEdit) -> RelayedBuild:
        asked.append(edit.system_packages)
        ok = edit.system_packages == ("libyaml-dev",)
        return RelayedBuild(ok=ok, stage="done" if ok else "task", log="" if ok else "use libyaml-dev")

    steps = [
        edit_with('system_packages = ["yaml"]'),
        "name=$(/run/formulacode/bridge.py | grep -o 'libyaml-dev') || true",
        'echo "system_packages = [\\"$name\\"]" >/ws/edit.toml',
        "/run/formulacode/bridge.py",
        "! /run/formulacode/bridge.py",
    ]
    run = _run(make_agent("\n".join(steps)), build=build)
    assert run.outcome is AgentOutcome.EDITED, (run.detail, run.transcript)
    assert asked == [("yaml",), ("libyaml-dev",)]
    assert "all 2 builds are used up" in run.transcript


def test_nothing_is_built_of_what_a_gate_refuses(make_agent: MakeAgent) -> None:
    steps = [edit_with('requirements = ["my_package==2.0"]'), "/run/formulacode/bridge.py || true"]
    run = _run(make_agent("\n".join(steps)), build=lambda _: pytest.fail("was built"))
    assert (run.outcome, run.gate) == (AgentOutcome.REFUSED, EditGate.OWN_PACKAGE)
    assert "nothing was built" in run.transcript


def test_a_request_for_something_else_ends_the_run(make_agent: MakeAgent) -> None:
    ask = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/formulacode/build.sock'); "
    ask += "s.sendall(b'build ../../etc'); s.shutdown(1); s.recv(9)"
    run = _run(make_agent(f'python3 -c "{ask}"\nsleep 300'), build=lambda _: pytest.fail("was built"))
    assert (run.outcome, run.gate) == (AgentOutcome.REFUSED, EditGate.RELAY)


def test_what_a_build_raises_ends_the_run(make_agent: MakeAgent) -> None:
    def build(_: SpecEdit) -> RelayedBuild:
        raise OutsideSystemError("docker", "is gone")

    with pytest.raises(OutsideSystemError, match="is gone"):
        _run(make_agent(f"{GOOD_EDIT}\n/run/formulacode/bridge.py; sleep 300"), build=build)


def test_a_run_that_is_to_stop_ends_its_agent_at_once(make_agent: MakeAgent) -> None:
    with signals_heard() as asked:

        def build(_: SpecEdit) -> RelayedBuild:
            asked.request()
            return RelayedBuild(ok=False, stage="task", log="")

        with pytest.raises(Stopped):
            _run(make_agent(f"{GOOD_EDIT}\n/run/formulacode/bridge.py; sleep 300"), build=build)


@pytest.mark.parametrize("host", ["tcp://docker.example.org:2376", "ssh://somebody@docker.example.org"])
def test_a_daemon_of_another_machine_is_told_before_anything_runs(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    agent = make_agent("true")
    monkeypatch.setenv("DOCKER_HOST", host)
    away = replace(agent, daemon=DockerDaemon())
    with pytest.raises(ConfigurationError, match=rf"DOCKER_HOST is {host}. Run stages with agents .* FC_AGENT=none"):
        away.require_place()


def test_an_image_that_cannot_be_had_is_told_with_its_setting(make_agent: MakeAgent) -> None:
    agent = make_agent("true")
    agent.require_place()
    gone = replace(agent, bounds=Confinement("localhost:1/agents:gone"))
    with pytest.raises(ConfigurationError, match=r"localhost:1/agents:gone .* Set FC_AGENT_IMAGE"):
        gone.require_place()
