"""Agents of a few lines, in the container that the real ones run in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from formulacode_dagster.building.agents.confined import ConfinedAgent
from formulacode_dagster.building.agents.container import Confinement
from formulacode_dagster.building.agents.program import AnyProgram
from formulacode_dagster.building.agents.protocol import AgentTask, PastAttempt
from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from tests.records import make_spec
from tests.support.docker import OS_IMAGE

IMAGE = OS_IMAGE.replace("{python}", "3.12")
LOG = "reader.c:1:10: fatal error: yaml.h: No such file or directory\n"

ITEM = f"owner/mypackage#{os.getpid()}"
"""Label of this process, so that its leftovers differ from those of others."""

MakeAgent = Callable[[str], ConfinedAgent]


def make_task(**fields: object) -> AgentTask:
    """A task of a spec that failed once, for want of a header."""
    attempt = PastAttempt(attempt=1, stage="task", detail="the build failed", log=LOG)
    spec = make_spec(package_name="mypackage", repository="owner/mypackage")
    defaults = {"item": ITEM, "spec": spec, "own_names": ("my-package",), "attempts": (attempt,)}
    return AgentTask.model_validate({**defaults, **fields})


@pytest.fixture(scope="session")
def daemon() -> DockerDaemon:
    """This machine's, found before a test names another: what is found once is kept for the session."""
    daemon = DockerDaemon()
    daemon.check()
    return daemon


@pytest.fixture
def make_agent(tmp_path: Path, daemon: DockerDaemon) -> MakeAgent:
    """`make_agent(script)`: a shell script as an agent, with little of everything."""

    def make(script: str) -> ConfinedAgent:
        path = tmp_path / "agent.sh"
        path.write_text(f"#!/bin/bash\nset -eu\n{script}\n")
        path.chmod(0o555)
        cli = AnyProgram(str(path))
        program = cli.find()
        assert program is not None
        bounds = Confinement(IMAGE, cpus=1, memory_mb=256, processes=48, workspace_mb=2, scratch_mb=4)
        return ConfinedAgent(cli, program, daemon, bounds)

    return make


def edit_with(line: str) -> str:
    """A shell command that writes an `edit.toml` of *line*."""
    return f"cat >/ws/edit.toml <<'END'\n{line}\nEND"
