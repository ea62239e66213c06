from __future__ import annotations

import os
import subprocess

import pytest

from formulacode_dagster.building.engines.owner import Owner


def test_a_process_lives_until_it_ends_and_a_reused_pid_is_another() -> None:
    me = Owner.current("run")
    assert (me.is_alive(), me.is_dead()) == (True, False)
    reused = me.model_copy(update={"started": "1"})
    assert (reused.is_alive(), reused.is_dead()) == (False, True)
    with subprocess.Popen(["true"]) as child:
        child.wait()
    gone = me.model_copy(update={"pid": child.pid, "started": "1"})
    assert gone.is_dead()
    assert Owner.parse(me.model_dump_json()) == me
    assert Owner.parse("who?") is None


@pytest.mark.parametrize(
    ("elsewhere", "dead"),
    [
        ({"host": "other 1"}, False),
        ({"host": "", "boot": "b"}, False),
        ({"boot": "an earlier one"}, True),
        ({"namespace": "pid:[1]"}, False),
    ],
)
def test_a_process_elsewhere_is_unknown_unless_this_machine_rebooted(elsewhere: dict[str, str], dead: bool) -> None:
    owner = Owner.current("run").model_copy(update={**elsewhere, "pid": os.getpid()})
    assert (owner.is_alive(), owner.is_dead()) == (False, dead)


def test_a_machine_is_told_apart_from_one_of_the_same_name() -> None:
    namesake = f"{os.uname().nodename} 0123456789abcdef"
    assert not Owner.current("run").model_copy(update={"host": namesake, "boot": "another"}).is_dead()


def test_a_process_that_proc_hides_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    me = Owner.current("run")
    monkeypatch.setattr("formulacode_dagster.building.engines.owner._started", lambda _: None)
    init = me.model_copy(update={"pid": 1})
    assert (init.is_alive(), init.is_dead()) == (False, False)
    assert me.model_copy(update={"pid": child.pid}).is_dead()
