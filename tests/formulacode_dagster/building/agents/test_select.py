from __future__ import annotations

import json
from pathlib import Path

import pytest

from formulacode_dagster.building.agents.container import Confinement
from formulacode_dagster.building.agents.program import AnyProgram
from formulacode_dagster.building.agents.protocol import AgentName
from formulacode_dagster.building.agents.select import AgentChoice, choose_agent
from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.models.errors import ConfigurationError

PROGRAMS = {
    "claude": "@anthropic-ai/claude-code-linux-x64/claude",
    "codex": "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    "gemini": "@google/gemini-cli/bundle/gemini.js",
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the path, without any agent; `node` is there."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    _executable(bin_folder / "node", b"\x7fELF")
    monkeypatch.setenv("PATH", str(bin_folder))
    return tmp_path


def _executable(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def _install(folder: Path, name: str) -> Path:
    """npm's layout of a package: its files, and a link in `bin` to a wrapper of it."""
    modules = folder / "lib" / "node_modules"
    program = _executable(modules / PROGRAMS[name], b"\x7fELF" if name != "gemini" else b"#!/usr/bin/env node\n")
    package = modules / Path(*Path(PROGRAMS[name]).parts[:2])
    described = {"name": str(package.relative_to(modules)), "version": "1.2.3-linux-x64"}
    (package / "package.json").write_text(json.dumps(described))
    wrapper = program if name == "gemini" else _executable(package.parent / name / "bin" / f"{name}.js", b"#!node\n")
    (folder / "bin" / name).symlink_to(wrapper)
    return program


def _choice(name: AgentName, **more: str) -> AgentChoice:
    return AgentChoice(name, Confinement("image"), key="key", **more)


def test_none_is_asked_unless_it_is_asked_for(installed: Path) -> None:
    _install(installed, "claude")
    assert choose_agent(_choice(AgentName.NONE), DockerDaemon()) is None


@pytest.mark.parametrize(
    ("here", "taken"),
    [
        (("gemini", "codex", "claude"), "claude"),
        (("gemini", "codex"), "codex"),
        (("gemini",), "gemini"),
        ((), None),
    ],
)
def test_the_first_that_is_installed_is_taken(installed: Path, here: tuple[str, ...], taken: str | None) -> None:
    programs = {name: _install(installed, name) for name in here}
    agent = choose_agent(_choice(AgentName.AUTO), DockerDaemon())
    assert (agent.name if agent is not None else None) == taken
    if agent is not None and taken is not None:
        assert agent.program.version == "1.2.3"
        mounted = programs[taken] if taken != "gemini" else programs[taken].parent
        assert mounted in agent.program.mounts
        assert agent.program.argv[-1].endswith(programs[taken].name)
        assert agent.endpoint is not None
        assert agent.endpoint.url.startswith("https://")


@pytest.mark.parametrize("name", [AgentName.CLAUDE, AgentName.CODEX, AgentName.GEMINI])
def test_one_that_is_asked_for_and_not_here_is_named(installed: Path, name: AgentName) -> None:
    with pytest.raises(ConfigurationError, match=f"FC_AGENT={name}: {name} is not on PATH"):
        choose_agent(_choice(name), DockerDaemon())


def test_one_without_a_key_is_not_started(installed: Path) -> None:
    _install(installed, "claude")
    with pytest.raises(ConfigurationError, match="FC_AGENT_API_KEY"):
        choose_agent(AgentChoice(AgentName.CLAUDE, Confinement("image")), DockerDaemon())


@pytest.mark.parametrize("url", ["https://proxy.org/openai", "https://proxy.org/openai/v1/"])
def test_an_endpoint_is_named_with_or_without_its_version(installed: Path, url: str) -> None:
    _install(installed, "codex")
    agent = choose_agent(_choice(AgentName.CODEX, url=url), DockerDaemon())
    assert agent is not None
    assert agent.endpoint is not None
    assert agent.endpoint.url == "https://proxy.org/openai"


def test_a_command_is_mounted_where_it_is_here_and_else_the_images(installed: Path) -> None:
    path = _executable(installed / "mine.py", b"#!/usr/bin/env python3\n")
    agent = choose_agent(_choice(AgentName.COMMAND, command=f"{path} --quick 'a b'"), DockerDaemon())
    assert agent is not None
    assert agent.program.argv == ("/opt/agent/mine.py", "--quick", "a b")
    assert dict(agent.program.mounts) == {path: "/opt/agent/mine.py"}
    assert agent.endpoint is None
    inside = AnyProgram("/usr/bin/of-the-image x").find()
    assert inside is not None
    assert (inside.argv, dict(inside.mounts)) == (("/usr/bin/of-the-image", "x"), {})
    with pytest.raises(ConfigurationError, match="FC_AGENT_COMMAND is empty"):
        choose_agent(_choice(AgentName.COMMAND), DockerDaemon())
