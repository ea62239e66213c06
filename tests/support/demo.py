"""A home in which `fc-data` is run as a user runs it, and the UI over it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

KEPT = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "XDG_RUNTIME_DIR", "FC_OS_IMAGE")
# a benchmark takes 24 samples at least; of the samples' speed-ups none is so small that short ones would miss it
SETTINGS = {"FC_ENGINE": "process", "FC_RETRY_SECONDS": "0", "FC_SAMPLE_SECONDS": "0.02"}


@dataclass(frozen=True)
class Demo:
    """A home in which `fc-data demo` was run, and what it printed."""

    program: Path
    home: Path
    output: str
    status: int

    @property
    def environment(self) -> dict[str, str]:
        """A clean environment that uses this home."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {**kept, **SETTINGS, "FC_HOME": str(self.home), "COLUMNS": "160"}

    @property
    def empty_folder(self) -> Path:
        """A folder to stand in, with nothing of a checkout in it."""
        folder = self.home.with_name(f"{self.home.name}-empty")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def fc_data(self, *arguments: str, timeout: float = 600, **more: str) -> subprocess.CompletedProcess[str]:
        """Run `fc-data` in this home."""
        return subprocess.run(
            [str(self.program), *arguments],
            env={**self.environment, **more},
            cwd=self.empty_folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


_STATUS = "query Status($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
_LAUNCH = """
mutation Launch($parameters: ExecutionParams!) {
  launchPipelineExecution(executionParams: $parameters) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}
"""


@dataclass(frozen=True)
class Ui:
    """A web server of Dagster."""

    url: str

    def graphql(self, query: str, **variables: Any) -> Any:
        """Ask the web server as the UI does; returns `data`."""
        answer = httpx.post(f"{self.url}/graphql", json={"query": query, "variables": variables}, timeout=60)
        body = answer.json()
        assert "errors" not in body, body["errors"]
        return body["data"]

    def launch(self, parameters: dict[str, Any]) -> str:
        """Launch a run as the UI's launch dialog does; returns the run's id."""
        answer = self.graphql(_LAUNCH, parameters=parameters)["launchPipelineExecution"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def launch_month(self, job: str, month: str) -> str:
        """Launch *job* of our code location for *month*, with its settings as they are; returns the run's id."""
        names = {"repositoryName": "__repository__", "repositoryLocationName": "formulacode", "pipelineName": job}
        metadata = {"tags": [{"key": "dagster/partition", "value": month}]}
        return self.launch({"selector": names, "runConfigData": "{}", "executionMetadata": metadata, "mode": "default"})

    def status_of(self, run_id: str) -> str:
        """The status of a run now."""
        return str(self.graphql(_STATUS, id=run_id)["runOrError"]["status"])

    def wait_for_run(self, run_id: str, seconds: float = 300) -> str:
        """The status of a run: its final one, or the one it has after *seconds*."""
        deadline = time.monotonic() + seconds
        while True:
            status = self.status_of(run_id)
            if status in ("SUCCESS", "FAILURE", "CANCELED") or time.monotonic() > deadline:
                return status
            time.sleep(1)


@dataclass(frozen=True)
class Served(Ui):
    """A running `fc-data dev`."""

    process: subprocess.Popen[bytes]
    log: Path


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


ServeUi = Callable[..., AbstractContextManager[Served]]


@contextmanager
def serve_ui_of(demo: Demo, **more: str) -> Iterator[Served]:
    port = free_port()
    demo.home.mkdir(parents=True, exist_ok=True)
    log = demo.home / f"dev-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(demo.program), "dev", "--port", str(port)],
            env={**demo.environment, **more},
            cwd=demo.empty_folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    served = Served(f"http://127.0.0.1:{port}", process, log)
    try:
        _wait_for(served)
        yield served
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(served: Served) -> None:
    deadline = time.monotonic() + 120
    query = "{ workspaceOrError { ... on Workspace { locationEntries { loadStatus } } } }"
    while time.monotonic() < deadline and served.process.poll() is None:
        try:
            entries = served.graphql(query)["workspaceOrError"]["locationEntries"]
        except httpx.TransportError:
            entries = []
        if entries and all(entry["loadStatus"] == "LOADED" for entry in entries):
            return
        time.sleep(0.5)
    raise AssertionError(f"fc-data dev does not answer:\n{served.log.read_text()[-4000:]}")
