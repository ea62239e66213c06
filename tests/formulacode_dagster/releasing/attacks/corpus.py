"""All patches that a grader is tried on."""

from __future__ import annotations

from . import clocks, honest, judging, memory, metrics, moved, processes, recognition, results, tables
from .patches import Attack, Honest

ATTACKS: tuple[Attack, ...] = (
    *recognition.ATTACKS,
    *results.ATTACKS,
    *judging.ATTACKS,
    *clocks.ATTACKS,
    *processes.ATTACKS,
    *memory.ATTACKS,
    *tables.ATTACKS,
    *moved.ATTACKS,
    *metrics.ATTACKS,
)
HONEST: tuple[Honest, ...] = honest.HONEST
