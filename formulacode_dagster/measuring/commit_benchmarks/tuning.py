"""Missing system tuning of this machine, compared with `pyperf system tune`. Read only.

The recommendations are pyperf's (https://pyperf.readthedocs.io/en/latest/system.html); properties hidden by a virtual
machine or container are reported as unknown, never as fine.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from formulacode_dagster.models.base import Frozen

CPU = "sys/devices/system/cpu"
BUSY_LOAD = 0.1
"""Load of a core in the last minute that would disturb a benchmark."""


class Tuned(StrEnum):
    """State of a setting."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """The machine does not show it."""


class TuningFinding(Frozen):
    """One setting of the system."""

    name: str
    tuned: Tuned
    value: str
    """Current value."""
    remedy: str
    """Command of pyperf, or advice to a person."""


def read_tuning(root: Path = Path("/")) -> list[TuningFinding]:
    """The settings of the machine whose `/proc` and `/sys` are below *root*."""
    return [check(root) for check in _CHECKS]


def _governor(root: Path) -> TuningFinding:
    values = _each_core(root, "cpufreq/scaling_governor")
    return _finding(
        "governor", values, lambda value: value == "performance", "`cpupower frequency-set --governor performance`"
    )


def _lowest_clock(root: Path) -> TuningFinding:
    lowest, highest = (_each_core(root, f"cpufreq/scaling_{end}_freq") for end in ("min", "max"))
    text = ", ".join(sorted({f"{low} to {high} kHz" for low, high in zip(lowest, highest, strict=False)}))
    tuned = Tuned.UNKNOWN if not lowest else Tuned.YES if lowest == highest else Tuned.NO
    return TuningFinding(name="clock", tuned=tuned, value=text, remedy="Raise scaling_min_freq to scaling_max_freq")


def _turbo(root: Path) -> TuningFinding:
    remedy = "Write 1 to intel_pstate/no_turbo, or 0 to cpufreq/boost"
    if (no_turbo := _text(root / CPU / "intel_pstate/no_turbo")) is not None:
        return _finding("turbo", [no_turbo], lambda value: value == "1", remedy)
    boost = _text(root / CPU / "cpufreq/boost")
    return _finding("turbo", [boost] if boost is not None else [], lambda value: value == "0", remedy)


def _interrupts(root: Path) -> TuningFinding:
    """Return True if interrupts avoid at least one core, as with isolated cores."""
    value, cores = _text(root / "proc/irq/default_smp_affinity"), _online(root)
    remedy = "Keep interrupts to the cores without timings: /proc/irq/*/smp_affinity"
    if value is None or not cores:
        return TuningFinding(name="interrupts", tuned=Tuned.UNKNOWN, value=value or "", remedy=remedy)
    mask = int(value.replace(",", ""), 16)
    everywhere = all(mask >> core & 1 for core in cores)
    return TuningFinding(
        name="interrupts", tuned=Tuned.NO if everywhere else Tuned.YES, value=f"mask {value}", remedy=remedy
    )


def _virtual(root: Path) -> TuningFinding:
    flags = next((line for line in (_text(root / "proc/cpuinfo") or "").split("\n") if line.startswith("flags")), None)
    if flags is None:
        return TuningFinding(name="hypervisor", tuned=Tuned.UNKNOWN, value="", remedy="Benchmark on bare metal")
    virtual = "hypervisor" in flags.split()
    tuned, value = (Tuned.NO, "virtual machine") if virtual else (Tuned.YES, "bare metal")
    return TuningFinding(
        name="hypervisor", tuned=tuned, value=value, remedy="Benchmark on bare metal: others share its cores"
    )


def _stolen(root: Path) -> TuningFinding:
    """The share of all time since boot that a hypervisor gave to others."""
    line = (_text(root / "proc/stat") or "").partition("\n")[0].split()
    if len(line) < 9 or not (total := sum(map(float, line[1:9]))):
        return TuningFinding(name="stolen time", tuned=Tuned.UNKNOWN, value="", remedy="Benchmark on bare metal")
    share = float(line[8]) / total
    tuned = Tuned.YES if share < 0.001 else Tuned.NO
    return TuningFinding(
        name="stolen time", tuned=tuned, value=f"{share:.1%} since boot", remedy="Take a host of one's own"
    )


def _file(name: str, path: str, is_tuned: Callable[[str], bool], remedy: str) -> Callable[[Path], TuningFinding]:
    """Return the check of the first word of the file *path*."""

    def check(root: Path) -> TuningFinding:
        text = _text(root / path)
        return _finding(name, [] if text is None else [text.partition(" ")[0]], is_tuned, remedy)

    return check


_CHECKS: tuple[Callable[[Path], TuningFinding], ...] = (
    _governor,
    _lowest_clock,
    _turbo,
    _file(
        "address layout",
        "proc/sys/kernel/randomize_va_space",
        lambda text: text == "2",
        "Write 2 to /proc/sys/kernel/randomize_va_space: samples of many processes need every layout",
    ),
    _file("isolated cores", f"{CPU}/isolated", bool, "Boot with isolcpus= naming the cores to time on"),
    _file(
        "ticks",
        f"{CPU}/nohz_full",
        lambda text: text not in ("", "(null)"),
        "Boot with nohz_full= naming the cores to time on",
    ),
    _interrupts,
    _file(
        "perf events",
        "proc/sys/kernel/perf_event_max_sample_rate",
        lambda text: text == "1",
        "Write 1 to /proc/sys/kernel/perf_event_max_sample_rate",
    ),
    _file(
        "hyper-threads",
        f"{CPU}/smt/active",
        lambda text: text == "0",
        "Time on a core whose sibling is idle, or write off to smt/control",
    ),
    _virtual,
    _stolen,
    _file("load", "proc/loadavg", lambda text: float(text) < BUSY_LOAD, "Wait until the machine is idle"),
)


def _finding(name: str, values: list[str], is_tuned: Callable[[str], bool], remedy: str) -> TuningFinding:
    tuned = Tuned.UNKNOWN if not values else Tuned.YES if all(map(is_tuned, values)) else Tuned.NO
    return TuningFinding(
        name=name, tuned=tuned, value=", ".join(sorted(set(values))) or "none" * bool(values), remedy=remedy
    )


def _each_core(root: Path, name: str) -> list[str]:
    texts = (_text(root / CPU / f"cpu{core}" / name) for core in _online(root))
    return [text for text in texts if text is not None]


def _online(root: Path) -> list[int]:
    """Return the cores in `0-3,6`; none if unknown."""
    cores: list[int] = []
    for part in filter(None, (_text(root / CPU / "online") or "").split(",")):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return cores


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None
