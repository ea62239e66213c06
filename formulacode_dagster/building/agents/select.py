"""Selects the agent: the requested one, or the first that is installed here."""

from __future__ import annotations

from dataclasses import dataclass, field

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.models.errors import ConfigurationError

from .claude import Claude
from .cli import Cli
from .codex import Codex
from .confined import ConfinedAgent
from .container import Confinement
from .forwarder import UpstreamEndpoint
from .gemini import Gemini
from .program import AnyProgram
from .protocol import AgentName
from .wire import Wire

PUBLIC = {
    Wire.ANTHROPIC: "https://api.anthropic.com",
    Wire.RESPONSES: "https://api.openai.com",
    Wire.GEMINI: "https://generativelanguage.googleapis.com",
}
"""Default endpoints of the models."""


@dataclass(frozen=True)
class AgentChoice:
    """Settings of the agent."""

    name: AgentName
    bounds: Confinement
    command: str = ""
    model: str = ""
    url: str = ""
    key: str = field(default="", repr=False)
    dollars_per_million_in: float = 0.0
    dollars_per_million_out: float = 0.0


def choose_agent(choice: AgentChoice, daemon: DockerDaemon) -> ConfinedAgent | None:
    """Return the agent of *choice*; None for `none`, and for `auto` if none is installed.

    Raises ConfigurationError when the one asked for is not installed, or has no key.
    """
    if choice.name is AgentName.NONE:
        return None
    clis: dict[AgentName, Cli] = {cli.name: cli for cli in (Claude(), Codex(), Gemini(), AnyProgram(choice.command))}
    if choice.name is AgentName.AUTO:
        wanted = [clis[name] for name in (AgentName.CLAUDE, AgentName.CODEX, AgentName.GEMINI)]
    else:
        wanted = [clis[choice.name]]
    for cli in wanted:
        program = cli.find()
        if program is not None:
            return ConfinedAgent(cli, program, daemon, choice.bounds, _endpoint(cli, choice), choice.model)
    if choice.name is AgentName.AUTO:
        return None
    what = "FC_AGENT_COMMAND is empty" if choice.name is AgentName.COMMAND else f"{choice.name} is not on PATH"
    raise ConfigurationError(f"FC_AGENT={choice.name}: {what}", remedy="Install it, or set FC_AGENT=none")


def _endpoint(cli: Cli, choice: AgentChoice) -> UpstreamEndpoint | None:
    if cli.wire is None:
        return None
    if not choice.key:
        raise ConfigurationError(
            f"the agent {cli.name} has no key",
            why="its container holds none, and the forwarder adds the one of the settings",
            remedy="Set FC_AGENT_API_KEY",
        )
    # agents add the version to the path themselves
    url = choice.url.rstrip("/").removesuffix("/v1") or PUBLIC[cli.wire]
    return UpstreamEndpoint(cli.wire, url, choice.key, choice.dollars_per_million_in, choice.dollars_per_million_out)
