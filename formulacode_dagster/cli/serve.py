"""`fc-data dev`: the Dagster UI and daemon over the instance the command line uses."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.cancellation.stopping import stop_request
from formulacode_dagster.operating.files.shipped import shipped
from formulacode_dagster.orchestration.home import WAIT_FOR_CODE
from formulacode_dagster.orchestration.orphans import SERVED_BY
from formulacode_dagster.orchestration.runs import dagster_instance, set_pools
from formulacode_dagster.orchestration.ui.webserver import SERVER
from resources.settings import read_settings

from .operate import database
from .orphans import STOP_SECONDS, end_runs, ending_orphans
from .sandbox import demo_services


def serve_ui(console: Console, host: str, port: int) -> int:
    """Serve until interrupted or terminated (then 0), or until Dagster ends by itself (then its exit status).

    If the demo was run and no outside system is set, the sandbox is started too, so that runs of the UI work. Raises
    ConfigurationError if *host*:*port* is taken.
    """
    _require_free(host, port)
    # Dagster's services have runs to end before they end themselves
    stop_request().is_unhurried = True
    # the code server must find the same home, wherever it is started
    home = read_settings().home
    os.environ["FC_HOME"] = str(home)
    # before the process that ends our runs is started: the marker distinguishes them from others
    os.environ[SERVED_BY] = Owner.current("").model_dump_json()
    try:
        with ExitStack() as stack:
            tell_leader = stack.enter_context(ending_orphans())
            stack.enter_context(demo_services())
            # held for the lifetime of the UI, so that the embedded server is not stopped and started between runs
            stack.enter_context(database())
            with dagster_instance() as instance:
                set_pools(instance)
            dagster = stack.enter_context(_dagster(host, port, tell_leader))
            console.print(f"Dagster UI: http://{host}:{port} (Ctrl-C stops it)", highlight=False)
            return dagster.wait()
    except KeyboardInterrupt:
        return 0


def _require_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port}",
                why=str(error),
                remedy="Use another --port, or stop the process that has it",
            ) from error


@contextmanager
def _dagster(host: str, port: int, tell_leader: Callable[[int], None]) -> Iterator[subprocess.Popen[bytes]]:
    command = [*SERVER, "dev", "-w", str(shipped("workspace.yaml")), "-h", host, "-p", str(port)]
    # its advice is for direct users of the command
    quiet = {"PYTHONWARNINGS": "ignore:Function `dev_command` is superseded"}
    child = subprocess.Popen(command, env={**quiet, **WAIT_FOR_CODE, **os.environ}, start_new_session=True)
    tell_leader(child.pid)
    try:
        yield child
    finally:
        # to `dagster dev` only, which ends its services in order
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
        end_runs(child.pid)
