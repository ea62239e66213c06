"""The core of a process, and the machine's other load. Without `/proc`, nothing is known."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import Emit

CPU_INFO = "/proc/cpuinfo"
STAT = "/proc/stat"
LOOK_SECONDS = 0.2


def idlest(request: dict[str, Any], emit: Emit) -> None:
    """Report the core that others use least for a moment, as `pin` numbers them; those `taken` only if all are."""
    cores = _cores()
    before = [_ticks(f"cpu{core}")[0] for core in cores]
    time.sleep(LOOK_SECONDS)
    busy = [_ticks(f"cpu{core}")[0] - then for core, then in zip(cores, before)]  # noqa: B905 - CPython 3.7
    # of equals the last: the first ones get the machine's own interrupts
    order = sorted(range(len(cores)), key=lambda number: (number in request["taken"], busy[-1 - number], number))
    emit(event="core", number=order[0] if order else 0)


def count_cores(request: dict[str, Any], emit: Emit) -> None:  # noqa: ARG001 - as every answer is called
    """Report the number of available cores; 1 if unknown."""
    emit(event="cores", number=len(_cores()) or 1)


def pin(number: int) -> int | None:
    """Keep this process and its children on the *number*-th core from the last; return it, None if impossible."""
    try:
        allowed = _cores()
        core = allowed[-1 - number % len(allowed)]
        os.sched_setaffinity(0, {core})
    except (OSError, ZeroDivisionError):
        return None
    return core


class CoreWatch:
    """Activity of a core from now on."""

    def __init__(self, core: int | None) -> None:
        """*core* as `pin` gave it; None watches the whole machine."""
        self._line = "cpu" if core is None else f"cpu{core}"
        self._core = core
        self._start = self._read()

    def conditions(self) -> dict[str, Any]:
        """Shares of the time since then: the hypervisor's, of others, its own; the load, the clock in MHz."""
        (busy, stolen, total, own), (busy0, stolen0, total0, own0) = self._read(), self._start
        ticks = max(total - total0, 1.0)
        load, mhz = 0.0, 0.0
        with contextlib.suppress(OSError, AttributeError):
            load = os.getloadavg()[0]
        with contextlib.suppress(OSError, ValueError, IndexError):
            clocks = [line.partition(":")[2] for line in _lines(CPU_INFO) if line.startswith("cpu MHz")]
            mhz = float(clocks[self._core or 0])
        return {
            "steal": max(0.0, stolen - stolen0) / ticks if total0 else 0.0,
            "others": max(0.0, busy - busy0 - (own - own0)) / ticks if total0 else 0.0,
            "own": max(0.0, own - own0) / ticks if total0 else 0.0,
            "load": load,
            "mhz": mhz,
        }

    def _read(self) -> tuple[float, float, float, float]:
        """Ticks of the core busy, stolen and in all, and those of this process and its ended children."""
        spent = os.times()
        own = sum(spent[:4]) * float(os.sysconf("SC_CLK_TCK"))
        return (*_ticks(self._line), own)


def _cores() -> list[int]:
    """Return the cores that this process may run on; none if unknown."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _ticks(line: str) -> tuple[float, float, float]:
    """Return kernel ticks in a *line*: busy, stolen and total; 0 if not reported."""
    with contextlib.suppress(OSError, ValueError):
        for told in _lines(STAT):
            name, _, rest = told.partition(" ")
            if name == line:
                user, nice, system, idle, waiting, irq, softirq, stolen = [float(ticks) for ticks in rest.split()[:8]]
                busy = user + nice + system + irq + softirq
                return busy, stolen, busy + idle + waiting + stolen
    return 0.0, 0.0, 0.0


def machine(cpu_info: str = CPU_INFO) -> str:
    """CPU model, usable cores and architecture: `AMD EPYC, 2 cores, x86_64`."""
    model = ""
    with contextlib.suppress(OSError):
        for line in _lines(cpu_info):
            name, _, value = line.partition(":")
            if name.strip() in {"model name", "Model", "cpu model"}:
                model = value.strip()
                break
    cores = len(_cores()) or os.cpu_count() or 1
    return f"{model or 'unknown CPU'}, {cores} cores, {os.uname().machine}"


def _lines(path: str) -> list[str]:
    with open(path, errors="replace") as file:
        return file.read().split("\n")
