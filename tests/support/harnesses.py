"""The harnesses of others, each from its own environment, as CI installs them."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

INSTALLED = Path(__file__).parents[2] / ".harnesses"
QUIET = {"HARBOR_TELEMETRY": "off", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

HARBOR = """
from harbor.cli.main import app
from harbor.environments.docker.docker import DockerEnvironment

DockerEnvironment._EGRESS_CONTROL_KERNEL_PROBE_IMAGE = "fc-os:bookworm"
app()
"""
"""Harbor's command; the image in which it looks at the kernel is one that is here, since its own cannot be pulled."""


def call_harbor(*arguments: str, cwd: Path) -> str:
    """Output of `harbor` with *arguments*; see `call`. Its sidecar is of .ci/make-egress-image."""
    return call("harbor", "python", "-c", HARBOR, *arguments, cwd=cwd)


def harbor_program(folder: Path) -> str:
    """Path of a program in *folder* that is `harbor` as in `call_harbor`."""
    program, python = folder / "harbor", INSTALLED / "harbor" / "bin" / "python"
    settings = [f"{name}={value}" for name, value in {**QUIET, "HOME": str(folder)}.items()]
    command = shlex.join(["env", *settings, "unshare", "--net", str(python), "-c", HARBOR])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    return str(program)


def call(harness: str, program: str, *arguments: str, cwd: Path) -> str:
    """Output of a program of *harness*; skips if it is not installed, fails if the program does.

    No network but the machine's own: what is downloaded while it runs is missed here.
    """
    if not (INSTALLED / harness).is_dir():
        pytest.skip(f"{harness} is not installed; run .ci/install-harnesses")
    done = subprocess.run(
        ["unshare", "--net", str(INSTALLED / harness / "bin" / program), *arguments],
        cwd=cwd,
        env={**os.environ, **QUIET, "HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=1600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
