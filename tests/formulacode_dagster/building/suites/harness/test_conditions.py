from __future__ import annotations

import os
import subprocess
import sys

import pytest

from formulacode_dagster.building.suites.harness import conditions
from formulacode_dagster.building.suites.harness.conditions import CoreWatch, count_cores, idlest, machine, pin


def test_the_machine_is_named_by_its_processor_and_cores(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Fast CPU 3000\nflags\t: x\n")
    assert machine(str(info)).startswith("Fast CPU 3000, ")
    assert "unknown CPU" in machine(str(tmp_path / "missing"))


def test_a_process_is_kept_on_one_core_counted_from_the_last():
    before = os.sched_getaffinity(0)
    try:
        cores = sorted(before)
        assert pin(0) == cores[-1]
        assert os.sched_getaffinity(0) == {cores[-1]}
        os.sched_setaffinity(0, before)
        assert pin(len(cores)) == cores[-1]
    finally:
        os.sched_setaffinity(0, before)


@pytest.fixture
def idlest_of(tmp_path, monkeypatch):
    """The core chosen of three, by how busy others keep them, with some taken."""
    path = tmp_path / "stat"
    monkeypatch.setattr(conditions, "STAT", str(path))
    monkeypatch.setattr(conditions, "_cores", lambda: [1, 2, 3])

    def write(*busy):
        path.write_text("".join(f"cpu{core} {ticks} 0 0 9 0 0 0 0 0 0\n" for core, ticks in enumerate(busy, start=1)))

    def choose(*busy, taken=()):
        write(0, 0, 0)
        monkeypatch.setattr(conditions.time, "sleep", lambda _: write(*busy))
        told = []
        idlest({"taken": list(taken)}, lambda **fields: told.append(fields))
        return told[0]["number"]

    return choose


def test_the_core_that_others_use_least_is_chosen_counted_from_the_last(idlest_of):
    assert idlest_of(0, 9, 9) == 2
    assert idlest_of(9, 0, 9) == 1
    assert idlest_of(0, 0, 0) == 0


def test_how_many_cores_there_are_is_told(monkeypatch):
    monkeypatch.setattr(conditions, "_cores", lambda: [1, 2, 3])
    told = []
    count_cores({}, lambda **fields: told.append(fields))
    assert told == [{"event": "cores", "number": 3}]


def test_a_core_that_is_taken_is_shared_only_where_all_are(idlest_of):
    assert idlest_of(9, 5, 0, taken=[0]) == 1
    assert idlest_of(9, 5, 0, taken=[0, 1, 2]) == 0


def test_where_cores_are_not_told_it_is_the_first(monkeypatch):
    monkeypatch.setattr(conditions, "_cores", list)
    told = []
    idlest({"taken": []}, lambda **fields: told.append(fields))
    count_cores({}, lambda **fields: told.append(fields))
    assert told == [{"event": "core", "number": 0}, {"event": "cores", "number": 1}]
    assert pin(0) is None


@pytest.fixture
def stat(tmp_path, monkeypatch):
    """Write the kernel's counters of core 1: ticks of user, nice, system, idle, waiting, irq, softirq, steal."""
    path = tmp_path / "stat"
    monkeypatch.setattr(conditions, "STAT", str(path))

    def write(*ticks):
        path.write_text(f"cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 {' '.join(map(str, ticks))} 0 0\n")

    return write


def test_what_others_and_the_hypervisor_took_is_told_as_shares_of_the_core(stat):
    stat(100, 0, 0, 100, 0, 0, 0, 0)
    watch = CoreWatch(1)
    stat(500, 0, 0, 600, 0, 0, 0, 100)
    told = watch.conditions()
    assert told["steal"] == pytest.approx(0.1)
    assert told["others"] == pytest.approx(0.4, abs=0.02)


def test_ones_own_work_is_nobody_elses(stat):
    stat(100, 0, 0, 100, 0, 0, 0, 0)
    watch = CoreWatch(1)
    # what a child took counts once it has ended
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    own = sum(os.times()[2:4])
    assert own > 0
    stat(103, 0, 0, 197, 0, 0, 0, 0)
    assert watch.conditions()["others"] < 0.03


def test_the_load_and_the_clock_of_the_core_are_told(tmp_path, monkeypatch):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\ncpu MHz\t\t: 1800.000\n\nprocessor\t: 1\ncpu MHz\t\t: 2400.125\n")
    monkeypatch.setattr(conditions, "CPU_INFO", str(info))
    monkeypatch.setattr(conditions.os, "getloadavg", lambda: (1.5, 9.0, 9.0))
    told = CoreWatch(1).conditions()
    assert (told["load"], told["mhz"]) == (1.5, 2400.125)


def test_without_what_the_kernel_tells_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(conditions, "STAT", str(tmp_path / "none"))
    monkeypatch.setattr(conditions, "CPU_INFO", str(tmp_path / "none"))
    told = CoreWatch(0).conditions()
    assert (told["steal"], told["others"], told["mhz"]) == (0.0, 0.0, 0.0)
