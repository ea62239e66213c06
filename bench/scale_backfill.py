"""A backfill of months as the UI launches it, planned by Dagster's own daemon over our code location.

Dagster has no public way to drive its daemon: the private imports are what `dagster-daemon` calls every 30 s.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import dagster as dg
import yaml
from dagster._core.execution.backfill import PartitionBackfill
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._daemon.backfill import execute_backfill_iteration
from sqlalchemy import create_engine, make_url, text

from formulacode_dagster.models.items import MONTH_STAGES

ROOT = Path(__file__).parents[1]
LOCATION = "formulacode"
LOCALHOST = "127.0.0.1"
BACKFILL = "months"
DAGSTERS_DATABASE = "dagster"
LOOK_SECONDS = 0.2
DEPLOYED = ROOT / "deploy" / "systemd" / "dagster.yaml"
"""Whose storage is that of all deployments."""


def free_port() -> int:
    """A free port of this machine."""
    with closing(socket.create_server((LOCALHOST, 0))) as probe:
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def served_code(log: Path) -> Iterator[int]:
    """Serve our code location in a separate process, which writes to *log*; yield its port."""
    port = free_port()
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
        # SIGTERM would be ignored where SIGINT is, as in the background of a shell: Dagster maps one to the other
        server.kill()
        server.wait()


@contextmanager
def instance_with_a_queue(home: Path, storage_url: str = "") -> Iterator[dg.DagsterInstance]:
    """An instance in *home* without a dequeuer; its storage is at *storage_url*, if there is one."""
    home.mkdir(exist_ok=True)
    config = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    if storage_url:
        config["storage"] = yaml.safe_load(DEPLOYED.read_text())["storage"]
        config["storage"]["custom"]["config"]["postgres_url"] = storage_url
    (home / "dagster.yaml").write_text(yaml.safe_dump(config))
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
    """Run one iteration of a fresh daemon, with the code location at *port*; return errors."""
    with _workspace(instance, port) as workspace:
        return [error for error in execute_backfill_iteration(workspace, logging.getLogger(__name__)) if error]


def queued_months(instance: dg.DagsterInstance) -> list[str]:
    """Queued runs in order, with repetitions."""
    runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
    return sorted(run.tags["dagster/partition"] for run in runs)


def database_for_dagster(database_url: str) -> str:
    """Create a database on the server at *database_url*; return its URL, as Dagster takes it."""
    url = make_url(database_url)
    server = create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {DAGSTERS_DATABASE}"))
    server.dispose()
    dagsters = url.set(drivername="postgresql+psycopg2", database=DAGSTERS_DATABASE)
    return dagsters.render_as_string(hide_password=False)


def planning_seconds(home: Path, months: Sequence[str], storage_url: str = "") -> float:
    """Seconds until a backfill of *months* has all of them in the queue; starting the code server is not in it.

    Dagster's storage is SQLite unless *storage_url* names one.
    """
    home.mkdir()
    with served_code(home / "code-server.log") as port, instance_with_a_queue(home, storage_url) as instance:
        began = time.perf_counter()
        add_backfill(instance, port, months)
        while queued_months(instance) != sorted(months):
            if errors := iterate(instance, port):
                raise RuntimeError(str(errors[0]))
        return time.perf_counter() - began


def _workspace(instance: dg.DagsterInstance, port: int) -> WorkspaceProcessContext:
    target = GrpcServerTarget(host=LOCALHOST, port=port, socket=None, location_name=LOCATION)
    return WorkspaceProcessContext(instance, target)
