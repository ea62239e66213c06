"""Cost of a command in a session of the Docker engine: by the container's first process and by `docker exec`, in turns.

python bench/session_commands.py --image fc-os:py3.12 [--python python3] [--commands 40] [--turns 3]

Counted are seconds of all cores of this machine, which should be idle and run the daemon. The last line is JSON:
milliseconds of a command, the median over turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from formulacode_dagster.building.engines.docker.commands import CommandChannel, command_that_serves
from formulacode_dagster.building.engines.docker.daemon import DockerDaemon

COMMAND, SECONDS = ("true",), 60.0


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--image", required=True, help="an image with an interpreter, 3.7 or later")
    parser.add_argument("--python", default="python3", help="that interpreter")
    parser.add_argument("--commands", type=int, default=40)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    daemon = DockerDaemon()
    serve = command_that_serves(options.python, 3600)
    container: Any = daemon.client.containers.create(options.image, serve, stdin_open=True, entrypoint=[])
    try:
        container.start()
        channel = CommandChannel(daemon, container)
        channel.hold()
        ways: dict[str, Callable[[], bool]] = {
            "first_process_ms": lambda: (
                channel.run(COMMAND, timeout=SECONDS, cwd="/", environment={}, stdin=None).completed.ok
            ),
            "docker_exec_ms": lambda: daemon.run(["exec", container.id, *COMMAND], timeout=SECONDS).ok,
        }
        cost: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(options.turns):
            for way, run in ways.items():
                cost[way].append(milliseconds(run, options.commands))
        channel.release()
    finally:
        container.remove(force=True)
    figures = {way: round(statistics.median(each), 2) for way, each in cost.items()}
    print(json.dumps(figures | {"commands": options.commands, "turns": options.turns}))
    return 0


def milliseconds(run: Callable[[], bool], commands: int) -> float:
    """Return what each of so many *commands* costs all cores; raises RuntimeError if one fails."""
    before = busy_seconds()
    for _ in range(commands):
        if not run():
            raise RuntimeError("a command failed")
    return 1000 * (busy_seconds() - before) / commands


def busy_seconds() -> float:
    """Return the seconds that all cores have worked since the machine started (proc(5), `/proc/stat`)."""
    user, nice, system, _idle, _iowait, *others = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return (int(user) + int(nice) + int(system) + sum(map(int, others[:3]))) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
