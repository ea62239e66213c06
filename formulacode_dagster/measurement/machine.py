"""What the samples were taken on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")


def machine(cpu_info: Path = CPU_INFO) -> str:
    """CPU model, usable cores and architecture of this host: `AMD EPYC, 2 cores, x86_64`."""
    model = ""
    if cpu_info.exists():
        for line in cpu_info.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in {"model name", "Model", "cpu model"}:
                model = value.strip()
                break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{model or platform.processor() or 'unknown CPU'}, {cores} cores, {platform.machine()}"
