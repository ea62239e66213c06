"""A machine whose first process is systemd: a privileged container of Debian, along with any others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import uv

from tests.support.demo import Ui
from tests.support.deployments import DEPLOY
from tests.support.docker import ca_bundle, image_is_here
from tests.support.waiting import until

STAND_IN = "fc-service:machine"
"""By `.ci/make-service-images`."""
CHECKOUT = "/srv/checkout"
SETTINGS = "/etc/formulacode/settings.env"
SERVICES = ("formulacode-code", "formulacode-daemon", "formulacode-webserver")
START_SECONDS = 300
_UI_PORT = 3000
_SANDBOX = "http://127.0.0.1:8100"
_SECONDS = 600
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True)
class SystemdMachine:
    """A container that has booted."""

    name: str

    def run(self, *command: str, is_expected: bool = True, given: str = "") -> str:
        """Output of *command* as root there, with its errors."""
        here = {"UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy", "SSL_CERT_FILE": _CERTIFICATES}
        options = [option for name, value in here.items() for option in ("--env", f"{name}={value}")]
        done = subprocess.run(
            ["docker", "exec", "--interactive", *options, self.name, *command],
            input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        assert not is_expected or done.returncode == 0, f"{command}: {done.stdout[-4000:]}\n{self.journal()}"
        return done.stdout.strip()

    def install(self, part: str, *, is_expected: bool = True) -> None:
        """Install what `deploy/` has for *part*, as a user does."""
        self.run(f"{CHECKOUT}/deploy/{part}/install.sh", is_expected=is_expected)

    def set_up_sandbox(self) -> None:
        """Start the unit `sandbox`, which services take for GitHub once they are started again."""
        self.run(
            "systemd-run", "--quiet", "--unit", "sandbox", "--uid", "formulacode", "--setenv", "FC_HOME=.",
            "--working-directory", "/var/lib/formulacode",
            "/opt/formulacode/venv/bin/fc-data", "sandbox", "--port", "8100",
        )  # fmt: skip
        self.add_settings(
            GITHUB_API_URL=_SANDBOX, GITHUB_CLONE_URL="file:///var/lib/formulacode/sandbox/repositories",
            GH_TOKENS="sandbox", FC_MINIMUM_STARS="0", FC_LANGUAGES="any",
            FC_LISTEN_HOST="0.0.0.0",  # noqa: S104 - of the container, where the test asks the UI
        )  # fmt: skip

    def wait_until_healthy(self) -> None:
        """Wait until the platform's own question for its health is answered well."""
        until(
            lambda: self.run("systemctl", "start", "formulacode-health", is_expected=False) == "",
            self.journal,
            seconds=START_SECONDS,
        )

    def states(self, units: Sequence[str]) -> dict[str, str]:
        """`active`, `failed` … by unit."""
        return {unit: self.run("systemctl", "is-active", unit, is_expected=False) for unit in units}

    def main_process(self, unit: str) -> int:
        """Its number; 0 while there is none."""
        return int(self.run("systemctl", "show", "--value", "--property", "MainPID", unit))

    def journal(self) -> str:
        """The end of what the units of the platform have logged."""
        command = ["docker", "exec", self.name, "journalctl", "--no-pager", "--lines", "60", "--unit", "formulacode*"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def add_settings(self, **settings: str) -> None:
        """Add *settings* to those of the platform."""
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        self.run("tee", "--append", SETTINGS, given=lines)

    @property
    def ui(self) -> Ui:
        """The web server, configured to listen beyond localhost."""
        shown = subprocess.run(["docker", "inspect", self.name], capture_output=True, text=True, check=True).stdout
        (told,) = json.loads(shown)
        (network,) = told["NetworkSettings"]["Networks"].values()
        return Ui(f"http://{network['IPAddress']}:{_UI_PORT}")


@contextmanager
def booted(name: str) -> Iterator[SystemdMachine]:
    """A machine with Postgres, Redis, uv and this checkout, once systemd has started it; removed afterwards."""
    if not image_is_here(STAND_IN):
        pytest.skip(f"run .ci/make-service-images: {STAND_IN} is not here")
    uv_bin = uv.find_uv_bin()
    cache = subprocess.run([uv_bin, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    mounted = {uv_bin: "/usr/local/bin/uv:ro", cache: "/root/.cache/uv", str(DEPLOY.parent): f"{CHECKOUT}:ro"}
    if certificates := ca_bundle():
        mounted[str(certificates)] = f"{_CERTIFICATES}:ro"
    volumes = [f"{here}:{there}" for here, there in mounted.items()]
    options = [option for volume in volumes for option in ("--volume", volume)]
    options += [option for place in ("/run", "/run/lock", "/tmp") for option in ("--tmpfs", f"{place}:exec")]
    command = ["docker", "run", "--detach", "--name", name, "--privileged", "--cgroupns", "private", *options]
    machine = SystemdMachine(name)
    try:
        subprocess.run([*command, STAND_IN], stdout=subprocess.DEVNULL, check=True)
        # until systemd is there, no service answers
        until(
            lambda: machine.run("systemctl", "is-system-running", is_expected=False) == "running",
            lambda: machine.run("systemctl", "--failed", is_expected=False),
        )
        yield machine
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", name], capture_output=True, check=False)
