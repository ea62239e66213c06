"""Missing tuning of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.measuring.commit_benchmarks.tuning import Tuned, read_tuning

CPU = "sys/devices/system/cpu"
TUNED = {
    f"{CPU}/online": "0-1",
    f"{CPU}/isolated": "1",
    f"{CPU}/nohz_full": "1",
    f"{CPU}/smt/active": "0",
    f"{CPU}/intel_pstate/no_turbo": "1",
    **{f"{CPU}/cpu{core}/cpufreq/scaling_governor": "performance" for core in (0, 1)},
    **{f"{CPU}/cpu{core}/cpufreq/scaling_{end}_freq": "2000" for core in (0, 1) for end in ("min", "max")},
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/sys/kernel/perf_event_max_sample_rate": "1",
    "proc/irq/default_smp_affinity": "1",
    "proc/cpuinfo": "processor: 0\nflags\t: fpu sse\n",
    "proc/stat": "cpu  900 0 50 9000 0 0 0 0 0 0\n",
    "proc/loadavg": "0.00 0.00 0.00 1/1 1",
}
OFF = {
    "governor": {f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"},
    "clock": {f"{CPU}/cpu0/cpufreq/scaling_min_freq": "800"},
    "turbo": {f"{CPU}/intel_pstate/no_turbo": "0"},
    "address layout": {"proc/sys/kernel/randomize_va_space": "0"},
    "isolated cores": {f"{CPU}/isolated": ""},
    "ticks": {f"{CPU}/nohz_full": "(null)"},
    "interrupts": {"proc/irq/default_smp_affinity": "00000000,00000003"},
    "perf events": {"proc/sys/kernel/perf_event_max_sample_rate": "100000"},
    "hyper-threads": {f"{CPU}/smt/active": "1"},
    "hypervisor": {"proc/cpuinfo": "flags\t: fpu hypervisor\n"},
    "stolen time": {"proc/stat": "cpu  900 0 50 9000 0 0 0 300 0 0\n"},
    "load": {"proc/loadavg": "1.50 0.00 0.00 1/1 1"},
}


def tuning(root: Path, files: dict[str, str]) -> dict[str, Tuned]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return {finding.name: finding.tuned for finding in read_tuning(root)}


def test_a_tuned_machine_has_nothing_off(tmp_path):
    assert tuning(tmp_path, TUNED) == dict.fromkeys(OFF, Tuned.YES)


@pytest.mark.parametrize("name", OFF)
def test_each_setting_is_told_when_it_is_off(tmp_path, name):
    told = tuning(tmp_path, {**TUNED, **OFF[name]})
    assert {each for each, tuned in told.items() if tuned is Tuned.NO} == {name}


def test_what_the_machine_does_not_show_is_unknown(tmp_path):
    assert tuning(tmp_path, {}) == dict.fromkeys(OFF, Tuned.UNKNOWN)
