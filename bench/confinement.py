"""Cost of confining code in the process engine: the same timings with and without a view, in turns.

Each turn starts a process in the network, user and limits of a measurement, once with all files of the machine and once
with a view (own files, processes and user). The process times computing, memory and system calls. `timing_ratio_…` is
the median over turns of time with a view by time without; `process_ms_…` is the whole process, of which
`FC_SAMPLE_SECONDS` times benchmarks.

python bench/confinement.py --turns 40

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from formulacode_dagster.building.engines.processes import Bounds, run_bounded
from formulacode_dagster.building.engines.view import CommandView, hand_over, installation_of
from formulacode_dagster.models.image import ResourceLimits

WORKLOADS = ("computing", "memory", "system_calls")
TIMED = """
import json, os, time

def least(act, times):
    took = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        took.append(time.perf_counter() - start)
    return min(took)

content = os.urandom(1 << 22)
print(json.dumps([
    least(lambda: sum(i * i for i in range(40_000)), 12),
    least(lambda: bytearray(content).count(7), 12),
    least(lambda: [os.stat("kept") for _ in range(2_000)], 12),
]))
"""


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=40, help="pairs of processes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        figures = compare(Path(name), options.turns)
    for label, value in figures.items():
        print(f"{label:32} {value}")
    print(json.dumps(figures))


def compare(folder: Path, turns: int) -> dict[str, float]:
    """Return ratios of timings and seconds of processes, by *turns* in *folder*."""
    folder.chmod(0o755)
    (folder / "kept").touch()
    hand_over(folder)
    python = Path(sys.executable).resolve()
    view = CommandView((folder,), installation_of(python))
    ratios: list[list[float]] = []
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(turns + 1):
        timings: dict[bool, list[float]] = {}
        for confined in (turn % 2 == 0, turn % 2 == 1):
            bounds = Bounds(ResourceLimits(), isolate_network=True, view=view if confined else None)
            done = run_bounded(
                [str(python), "-I", "-c", TIMED],
                timeout=60,
                bounds=bounds,
                environment={"PATH": os.defpath, "HOME": str(folder)},
                cwd=folder,
            )
            assert done.ok, done.stderr
            timings[confined] = json.loads(done.stdout)
            # the first turn fills caches
            seconds[confined] += [done.seconds] if turn else []
        if turn:
            ratios.append([inside / outside for inside, outside in zip(timings[True], timings[False], strict=True)])
    medians = [statistics.median(column) for column in zip(*ratios, strict=True)]
    return {
        "turns": turns,
        **{f"timing_ratio_{name}": round(value, 4) for name, value in zip(WORKLOADS, medians, strict=True)},
        "process_ms_confined": round(statistics.median(seconds[True]) * 1e3, 1),
        "process_ms_unconfined": round(statistics.median(seconds[False]) * 1e3, 1),
    }


if __name__ == "__main__":
    main()
