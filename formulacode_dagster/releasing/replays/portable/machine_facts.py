"""The machine of a replay."""

from __future__ import annotations

import contextlib
import os
import platform
from typing import Any

FIELDS = {
    "model name": "model",
    "vendor_id": "vendor",
    "cpu family": "family",
    "model": "model_number",
    "stepping": "stepping",
    "microcode": "microcode",
    "CPU implementer": "vendor",
    "CPU architecture": "family",
    "CPU part": "model_number",
}
"""Our names of what `/proc/cpuinfo` says, on x86 and on ARM."""


def machine_facts(cpu_info: str = "/proc/cpuinfo") -> dict[str, Any]:
    """CPU, cores, memory and kernel; what is unknown is empty."""
    told: dict[str, Any] = dict.fromkeys(FIELDS.values(), "")
    with contextlib.suppress(OSError), open(cpu_info, errors="replace") as file:
        for line in file:
            if not line.strip() and any(told.values()):
                break
            name, _, value = line.partition(":")
            if name.strip() in FIELDS:
                told[FIELDS[name.strip()]] = value.strip()
    memory = 0
    with contextlib.suppress(OSError, ValueError):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0))
    return {
        **told,
        "cores": cores,
        "memory_bytes": memory,
        "kernel": platform.release(),
        "architecture": platform.machine(),
    }
