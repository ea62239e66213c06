"""A backfill of months as the UI launches it, planned by Dagster's own daemon over our code location.

Dagster has no public way to drive its daemon: what is imported from names with an underscore is what `dagster-daemon`
calls every 30 s.
"""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import dagster as dg
from dagster._core.execution.backfill import PartitionBackfill
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._daemon.backfill import execute_backfill_iteration

from formulacode_dagster.models.items import MONTH_STAGES

ROOT = Path(__file__).parents[1]
LOCATION = "formulacode"
LOCALHOST = "127.0.0.1"
BACKFILL = "months"
LOOK_SECONDS = 0.2


@contextmanager
def served_code(log: Path) -> Iterator[int]:
    """Serve our code location in a process of its own, which writes to *log*; yields its port."""
    with closing(socket.create_server((LOCALHOST, 0))) as probe:
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-m", "dagster", "api", "grpc", "-h", LOCALHOST, "-p", str(port)]
    with log.open("wb") as output:
        command += ["-m", "formulacode_dagster.definitions"]
        server = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    try:
        answers = threading.Event()
        while server.poll() is None and not answers.wait(LOOK_SECONDS):
            with suppress(OSError), socket.create_connection((LOCALHOST, port)):
                answers.set()
        if server.poll() is not None:
            raise RuntimeError(log.read_text(errors="replace"))
        yield port
    finally:
        # SIGTERM would be ignored where SIGINT is, as in the background of a shell: Dagster makes one of the two
        server.kill()
        server.wait()


@contextmanager
def instance_with_a_queue(home: Path) -> Iterator[dg.DagsterInstance]:
    """An instance in *home*, from whose queue nobody takes."""
    home.mkdir(exist_ok=True)
    shutil.copy(ROOT / "dagster.yaml", home)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


def add_backfill(instance: dg.DagsterInstance, port: int, months: Sequence[str]) -> None:
    """Ask for every stage of *months*, as the UI does."""
    with _workspace(instance, port) as workspace:
        backfill = PartitionBackfill.from_asset_partitions(
            BACKFILL,
            workspace.create_request_context().asset_graph,
            list(months),
            [dg.AssetKey(stage.value) for stage in MONTH_STAGES],
            time.time(),
            {},
            instance,
            all_partitions=False,
            title=None,
            description=None,
            run_config=None,
        )
    instance.add_backfill(backfill)


def iterate(instance: dg.DagsterInstance, port: int) -> list[object]:
    """What a daemon that was just started does once, with the code location that *port* leads to; returns errors."""
    with _workspace(instance, port) as workspace:
        return [error for error in execute_backfill_iteration(workspace, logging.getLogger(__name__)) if error]


def queued_months(instance: dg.DagsterInstance) -> list[str]:
    """Those that are in the queue, in order, as often as they are."""
    runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
    return sorted(run.tags["dagster/partition"] for run in runs)


def planning_seconds(home: Path, months: Sequence[str]) -> float:
    """Seconds until a backfill of *months* has all of them in the queue; starting the code server is not in it."""
    home.mkdir()
    with served_code(home / "code-server.log") as port, instance_with_a_queue(home) as instance:
        began = time.perf_counter()
        add_backfill(instance, port, months)
        while queued_months(instance) != sorted(months):
            if errors := iterate(instance, port):
                raise RuntimeError(str(errors[0]))
        return time.perf_counter() - began


def _workspace(instance: dg.DagsterInstance, port: int) -> WorkspaceProcessContext:
    target = GrpcServerTarget(host=LOCALHOST, port=port, socket=None, location_name=LOCATION)
    return WorkspaceProcessContext(instance, target)
