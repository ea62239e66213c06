"""`fc-data dev`: the Dagster UI and daemon over the instance the command line uses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from formulacode_dagster.dagster_home import ROOT
from formulacode_dagster.month_run import dagster_instance, set_pools
from formulacode_dagster.operate import database
from formulacode_dagster.sandbox.session import running_sandbox
from resources.settings import home


def serve_ui(console: Console, host: str, port: int) -> int:
    """Serve until interrupted or terminated; returns the exit status of the web server.

    Where the demo was run and no GitHub token is set, the sandbox is started too, so that runs launched in the UI work.
    """
    with ExitStack() as stack:
        repositories = home() / "sandbox" / "repositories"
        if repositories.is_dir() and not os.environ.get("GH_TOKENS"):
            sandbox = stack.enter_context(running_sandbox(repositories, home() / "sandbox"))
            os.environ.update(sandbox.environment)
            console.print("serving the sandbox too, since the demo was run and GH_TOKENS is not set")
        stack.enter_context(database())
        with dagster_instance() as instance:
            set_pools(instance)
        console.print(f"Dagster UI: http://{host}:{port}", highlight=False)
        dagster = Path(sys.executable).with_name("dagster")
        command = [str(dagster), "dev", "-w", str(ROOT / "workspace.yaml"), "-h", host, "-p", str(port)]
        child = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
        return _wait(child)


def _wait(child: subprocess.Popen[bytes]) -> int:
    def pass_on(number: int, _: object) -> None:
        os.killpg(child.pid, number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
