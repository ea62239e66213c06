"""The coding agent for failures without a repair rule; disabled by default."""

from __future__ import annotations

from formulacode_dagster.building.agents.confined import ConfinedAgent
from formulacode_dagster.building.agents.container import Confinement
from formulacode_dagster.building.agents.protocol import Agent, AgentBudget, AgentName
from formulacode_dagster.building.agents.select import AgentChoice, choose_agent
from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.synthesis.budgets import Limits, Scope
from formulacode_dagster.building.synthesis.month import MonthAuthors
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.runner.work import StageRun

from .base import SettingsResource, setting
from .setting_types import AgentSetting

PYTHON = "3.12"
"""Python version of the OS image that agents run in, unless another is set."""


class AgentsResource(SettingsResource):
    """Provides the agent, and the budget of one run. Its key is FC_AGENT_API_KEY."""

    agent: AgentSetting | None = setting("agent")
    agent_command: str | None = setting("agent_command")
    agent_model: str | None = setting("agent_model")
    agent_base_url: str | None = setting("agent_base_url")
    agent_dollars_per_million_in: float | None = setting("agent_dollars_per_million_in")
    agent_dollars_per_million_out: float | None = setting("agent_dollars_per_million_out")
    agent_image: str | None = setting("agent_image")
    agent_seconds: float | None = setting("agent_seconds")
    agent_tokens: int | None = setting("agent_tokens")
    agent_dollars: float | None = setting("agent_dollars")
    agent_turns: int | None = setting("agent_turns")
    agent_builds: int | None = setting("agent_builds")
    agent_attempts: int | None = setting("agent_attempts")
    os_image: str | None = setting("os_image")

    def preflight(self) -> tuple[bool, str]:
        """Say which agent would be asked; raises ConfigurationError when that cannot be."""
        agent = self.required()
        if agent is None:
            return True, f"FC_AGENT={self.settings.agent.value}: disabled"
        return True, f"{agent.name} runs for failures without a repair rule"

    def required(self, named: AgentSetting | None = None) -> Agent | None:
        """As `chosen`, and it can run: raises ConfigurationError, naming the setting, before any item is processed."""
        agent = self.chosen(named)
        if agent is not None:
            agent.require_place()
        return agent

    def chosen(self, named: AgentSetting | None = None) -> ConfinedAgent | None:
        """The agent *named*, or the settings'; raises ConfigurationError when it is not installed, or has no key."""
        settings = self.settings
        image = settings.agent_image or settings.os_image.replace("{python}", PYTHON)
        choice = AgentChoice(
            AgentName((named or settings.agent).value),
            Confinement(image),
            settings.agent_command,
            settings.agent_model,
            settings.agent_base_url,
            settings.agent_api_key.get_secret_value(),
            settings.agent_dollars_per_million_in,
            settings.agent_dollars_per_million_out,
        )
        return choose_agent(choice, DockerDaemon())

    def authors(self, stage: StageRun) -> MonthAuthors | None:
        """Return the agent of *stage*, or of the settings, within what the month's budgets leave; None if there is
        none.

        Raises ConfigurationError if there is no agent of that name, as `chosen` does.
        """
        agent = self.agent_for(stage)
        if agent is None:
            return None
        return MonthAuthors.of(stage, agent, self.budget, self.limits, self.settings.agent_attempts)

    def agent_for(self, run: StageRun) -> Agent | None:
        """The agent that *run* asks for, else that of the settings; raises ConfigurationError."""
        if run.options.agent and run.options.agent not in list(AgentSetting):
            raise ConfigurationError(
                f"there is no agent {run.options.agent!r}", remedy=f"Name one of {', '.join(AgentSetting)}"
            )
        return self.required(AgentSetting(run.options.agent) if run.options.agent else None)

    @property
    def limits(self) -> dict[Scope, Limits]:
        """Total budgets of agents."""
        limits: dict[Scope, dict[str, float]] = {}
        for part in self.settings.agent_budget:
            name, _, amount = part.partition("=")
            scope, _, unit = name.strip().partition(".")
            limits.setdefault(Scope(scope), {})[unit] = float(amount)
        return {scope: Limits.model_validate(amounts) for scope, amounts in limits.items()}

    @property
    def budget(self) -> AgentBudget:
        """Budget of one run."""
        settings = self.settings
        return AgentBudget(
            seconds=settings.agent_seconds,
            tokens=settings.agent_tokens,
            dollars=settings.agent_dollars,
            turns=settings.agent_turns,
            builds=settings.agent_builds,
        )
