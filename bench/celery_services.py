"""deploy/celery on this machine: a private Redis, Dagster's daemon, and workers, each started as its unit says."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import click
import yaml

from bench.scale_backfill import LOCALHOST, LOCATION, ROOT, free_port, served_code

CELERY = ROOT / "deploy" / "celery"
BIN = Path(sys.executable).parent
UNIT = CELERY / "formulacode-worker@.service"
UNHEARD_SECONDS = 2


@dataclass
class Services:
    """The launcher of `home`, and the workers that take its runs."""

    folder: Path
    environment: Mapping[str, str]
    code_port: int
    stack: ExitStack
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """The daemon, and the workers by name."""

    def start_worker(self, queue: str, name: str) -> None:
        """Start a worker called *name*, by the command of the unit for *queue*, or for several: `io,build`."""
        (line,) = (text for text in UNIT.read_text().splitlines() if text.startswith("ExecStart="))
        line = line.partition("=")[2].replace("/opt/formulacode/venv/bin", str(BIN)).replace("${WORKER_RUNS}", "1")
        command = shlex.split(line.replace("--hostname %i@%H", f"--hostname {name}@%h").replace("%i", queue))
        self._start(name, command)

    def start_daemon(self) -> None:
        """Start the daemon that dequeues runs, monitors them, and relaunches lost ones."""
        workspace = yaml.safe_load((CELERY / "workspace.yaml").read_text())
        workspace["load_from"][0]["grpc_server"]["port"] = self.code_port
        (self.folder / "workspace.yaml").write_text(yaml.safe_dump(workspace))
        program = str(BIN / "dagster-daemon")
        self._start("daemon", [program, "run", "--workspace", str(self.folder / "workspace.yaml")])

    def kill(self, name: str) -> None:
        """End a worker and the run it is at with SIGKILL, as a machine that loses power does."""
        _end(self.processes.pop(name))

    def ended(self) -> list[str]:
        """Return the processes that have ended."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

    def health(self) -> subprocess.CompletedProcess[str]:
        """Settings of deploy/celery."""
        command = [sys.executable, str(CELERY / "health.py")]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def launch(self, job: str, month: str, config: object, tags: Mapping[str, str] | None = None) -> None:
        """Put a run into Dagster's queue, as `dagster job launch` does."""
        from dagster._cli.job import job_launch_command

        tagged = json.dumps({"dagster/partition": month, **(tags or {})})
        self._dagster(job_launch_command, "--job", job, "--config-json", json.dumps(config), "--tags", tagged)

    def start_sensor(self, name: str) -> None:
        """Have the daemon ask *name*, as the switch in the UI does."""
        from dagster._cli.sensor import sensor_start_command

        self._dagster(sensor_start_command, name)

    def log(self, name: str) -> str:
        """Return the output of a process."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def said(self) -> str:
        """The ends of all logs."""
        return "\n".join(f"== {path.stem}\n{self.log(path.stem)[-3000:]}" for path in sorted(self.folder.glob("*.log")))

    def _dagster(self, command: click.Command, *arguments: str) -> None:
        """Run a command of Dagster's command line in this process: a new one takes seconds to start."""
        from click.testing import CliRunner

        where = ["--workspace", str(self.folder / "workspace.yaml"), "--location", LOCATION]
        done = CliRunner().invoke(command, [*arguments, *where], env=dict(self.environment))
        if done.exit_code:
            raise RuntimeError(f"{command.name} {' '.join(arguments)}: {done.output}")

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes[name] = process
        self.stack.callback(_end, process)


@contextmanager
def services(folder: Path, dagster_url: str, settings: Mapping[str, str]) -> Iterator[Services]:
    """All of deploy/celery but its webserver and its workers, in *folder*, for the platform's *settings*.

    Raises FileNotFoundError if there is no `redis-server`.
    """
    program = shutil.which("redis-server")
    if program is None:
        raise FileNotFoundError("no redis-server on PATH")
    with ExitStack() as stack:
        port = free_port()
        redis = [program, "--port", str(port), "--bind", LOCALHOST, "--save", "", "--dir", str(folder)]
        with (folder / "redis.log").open("wb") as log:
            stack.callback(_end, subprocess.Popen(redis, stdout=log, stderr=log, start_new_session=True))
        environment = {
            **os.environ,
            **settings,
            "DAGSTER_HOME": str(folder),
            "DAGSTER_POSTGRES_URL": dagster_url,
            "DAGSTER_CELERY_URL": f"redis://{LOCALHOST}:{port}/0",
            "PYTHONPATH": str(CELERY),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            # tests in a container run as root
            "C_FORCE_ROOT": "1",
        }
        config = yaml.safe_load((CELERY / "dagster.yaml").read_text())
        (folder / "dagster.yaml").write_text(yaml.safe_dump(impatient(config)))
        # whoever opens Dagster's instance in this process needs them, too
        stack.enter_context(patch.dict(os.environ, environment))
        code_port = stack.enter_context(served_code(folder / "code.log"))
        yield Services(folder, environment, code_port, stack)


def impatient(config: dict[str, dict[str, object]]) -> object:
    """*config*, which looks after runs more often."""
    config["run_monitoring"] |= {"poll_interval_seconds": 1}
    launcher = config["run_launcher"]["config"]
    assert isinstance(launcher, dict)
    launcher["unheard_seconds"] = UNHEARD_SECONDS
    return config


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
