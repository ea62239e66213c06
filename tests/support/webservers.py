"""Web servers of Dagster over a home and a code location of their own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.demo import Ui, free_port

_LOCATION = "import dagster as dg\n\n\n@dg.op\ndef work(): ...\n\n\n@dg.job\ndef some_job():\n    work()\n"
LOADED = "{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus } } } }"


@contextmanager
def webserver_of(command: Sequence[str], home: Path, **settings: str) -> Iterator[Ui]:
    """Run *command*, such as `dagster-webserver`, over one location with one job until the block ends."""
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (home / "location.py").write_text(_LOCATION)
    port, log = free_port(), home / "webserver.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*command, "-h", "127.0.0.1", "-p", str(port), "-f", str(home / "location.py")],
            env={**os.environ, "DAGSTER_HOME": str(home), **settings},
            cwd=home,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    ui = Ui(f"http://127.0.0.1:{port}")
    try:
        deadline = time.monotonic() + 120
        while not _is_loaded(ui):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield ui
    finally:
        server.terminate()
        server.wait(60)


def _is_loaded(ui: Ui) -> bool:
    try:
        entries = ui.graphql(LOADED)["workspaceOrError"]["locationEntries"]
    except httpx.TransportError:
        return False
    return [entry["loadStatus"] for entry in entries] == ["LOADED"]
