"""One run of an agent, whichever: shut in, watched, ended, and its edit judged."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.models.items import Cost

from .cli import AgentReport, Cli, Program
from .container import MOST_OUTPUT, USER_HOME, AgentContainer, Confinement, confined, require_place
from .edit import SpecEdit
from .forwarder import Account, UpstreamEndpoint, forwarding
from .gates import EditRefused, read_edit, require_honest
from .limits import RunEnd
from .protocol import AgentBudget, AgentOutcome, AgentRun, AgentTask, BuildRelay, EditGate
from .relay import Relay, relaying
from .workspace import WorkspacePaths, archive_of, prompt_of, read_workspace

TRANSCRIPT = 20_000
"""Characters that are kept of each stream, of its end."""
MARGIN_SECONDS = 120.0
"""After its time, should this process be gone, the container ends by itself."""


@dataclass(frozen=True)
class ConfinedAgent:
    """Implements `Agent` with a command-line program in a container."""

    cli: Cli
    program: Program
    daemon: DockerDaemon
    bounds: Confinement
    endpoint: UpstreamEndpoint | None = None
    """Protocol of its model; None for a program without one."""
    model: str = ""
    """Empty: the program's own choice."""

    @property
    def name(self) -> str:
        """Its name as the rule of a fix spells it."""
        return self.cli.name.value

    def require_place(self) -> None:
        """See that it can run at all, before any item is worked on; raises as `container.require_place`."""
        require_place(self.daemon, self.bounds)

    def run(self, task: AgentTask, *, budget: AgentBudget, build: BuildRelay | None = None) -> AgentRun:
        """See `Agent.run`."""
        return _AgentRun(self, task, budget, build).end()


class _AgentRun:
    def __init__(self, agent: ConfinedAgent, task: AgentTask, budget: AgentBudget, build: BuildRelay | None) -> None:
        self._agent = agent
        self._task = task
        self._budget = budget
        self._build = build
        self._places = WorkspacePaths()
        self._key = f"fc-{secrets.token_hex(16)}"
        self._account: Account | None = None
        self._relay: Relay | None = None

    def end(self) -> AgentRun:
        """Let it run, and say how it ended."""
        started = time.monotonic()
        agent, bounds = self._agent, self._agent.bounds
        bounds = replace(bounds, mounts={**bounds.mounts, **agent.program.mounts})
        seconds = self._budget.seconds + MARGIN_SECONDS
        with confined(agent.daemon, bounds, seconds=seconds, run_id=self._task.item, places=self._places) as container:
            completed = self._let_run(container)
            report = agent.cli.read(completed)
            ended, edit, refused = self._how(completed, report), None, self._refused
            if ended is None:
                ended, edit, refused = self._edited(container)
        account = self._account.cost if self._account is not None else Cost()
        own = report.dollars if account.dollars == 0 else 0.0
        return AgentRun(
            agent=f"{agent.name} {agent.program.version}".strip(),
            outcome=ended.outcome,
            edit=edit,
            gate=refused.gate if refused is not None else None,
            detail=ended.detail[:500],
            until=ended.until,
            cost=account + Cost(dollars=own, seconds=round(time.monotonic() - started, 3)),
            transcript=_tail(completed),
        )

    def _let_run(self, container: AgentContainer) -> Completed:
        agent, budget = self._agent, self._budget
        with ExitStack() as stack:
            if agent.endpoint is not None:
                self._account = Account(agent.endpoint, budget, container.end)
                stack.enter_context(forwarding(container.sockets, agent.endpoint, self._account))
            if self._build is not None and budget.builds:
                self._relay = Relay(
                    container.sockets, partial(self._read, container), self._build, budget.builds, container.end
                )
                stack.enter_context(relaying(self._relay))
            start = agent.cli.start(budget, model=agent.model, key=self._key)
            container.lay(archive_of(self._task, start.home, places=self._places, user_home=USER_HOME))
            builds = budget.builds if self._relay is not None else 0
            completed = container.run(
                [*agent.program.argv, *start.arguments],
                timeout=budget.seconds,
                environment=start.environment,
                stdin=prompt_of(self._places, builds=builds, is_locked=bool(self._task.spec.lock)).encode(),
                cwd=self._places.workspace,
            )
            if completed.timed_out:
                # a build that it asked for is not waited for by anybody now, but ends by its own limit
                container.end()
        return completed

    @property
    def _refused(self) -> EditRefused | None:
        """Requests to the relay other than for a build."""
        return self._relay.refused if self._relay is not None else None

    def _how(self, completed: Completed, report: AgentReport) -> RunEnd | None:
        """How it ended if it failed; the host's observations take precedence over the agent's report."""
        if self._refused is not None:
            return RunEnd(AgentOutcome.REFUSED, str(self._refused))
        if self._account is not None and self._account.ended is not None:
            return self._account.ended
        if completed.timed_out:
            return RunEnd(AgentOutcome.TIMED_OUT, f"ended after {self._budget.seconds:g} s")
        if max(len(completed.stdout), len(completed.stderr)) >= MOST_OUTPUT:
            return RunEnd(AgentOutcome.BUDGET, f"its output exceeds {MOST_OUTPUT >> 20} MB")
        return report.ended

    def _edited(self, container: AgentContainer) -> tuple[RunEnd, SpecEdit | None, EditRefused | None]:
        try:
            edit = self._read(container)
        except EditRefused as refused:
            return RunEnd(AgentOutcome.REFUSED, str(refused)), refused.edit, refused
        if edit.is_empty or edit.asks_the_same(self._task.edit):
            return RunEnd(AgentOutcome.GAVE_UP, edit.reason or "it requests nothing new"), None, None
        return RunEnd(AgentOutcome.EDITED, edit.reason), edit, None

    def _read(self, container: AgentContainer) -> SpecEdit:
        packed = container.workspace(self._places.workspace)
        if packed is None:
            raise EditRefused(EditGate.FILES, "the workspace cannot be read any more")
        return judge_workspace(packed, self._task, key=self._key)


def judge_workspace(packed: bytes, task: AgentTask, *, key: str) -> SpecEdit:
    """The edit in the tar of a workspace; raises EditRefused with the first gate that does not let it pass."""
    return require_honest(read_edit(read_workspace(packed)), task.spec, task.own_names, key=key)


def _tail(completed: Completed) -> str:
    streams = (completed.stdout, completed.stderr)
    return "\n".join(stream.decode(errors="replace")[-TRANSCRIPT:] for stream in streams if stream)
