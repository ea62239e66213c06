"""One image by hand, rung by rung, as the `images` stage builds it: for scripts, and for `fc-data synthesize`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from formulacode_dagster.building.agents.protocol import Agent
from formulacode_dagster.building.environments.stage import run as run_environments
from formulacode_dagster.building.images.stage import run as run_images
from formulacode_dagster.building.synthesis.docker_context import DockerContext
from formulacode_dagster.building.synthesis.importing import given_out, take_in
from formulacode_dagster.building.synthesis.month import MonthAuthors
from formulacode_dagster.building.verification.verifiers import Verifier
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName, item_key
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import ItemState, RunOptions, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import ENVIRONMENTS, IMAGES
from formulacode_dagster.operating.store.attempts import attempts_of, contexts_of
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.lookup import find_pull_request
from resources.agents import AgentsResource
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource
from resources.tools import environment_tools, image_tools

from .records import opened


class NotPlannedError(ConfigurationError):
    """A pull request is not known, has another base, or has no environment; others may be built."""


@dataclass
class Synthesizer:
    """Builds the image of one pull request whose environment was planned, and says how.

    If its environment has no lock, recipes of the nearest commits and the agent are asked for one first. For its image,
    the stored recipe of its commit is tried first, then those of the nearest commits, then the repair rules, then an
    agent: *agent* is one, the name of one, or `` for FC_AGENT. All of it is stored where the stages store it, so that a
    month continues from there.
    """

    max_attempts: int = 3
    """Requests to the agent."""
    agent: str | Agent = ""
    database: Database | str | None = None
    """One, its URL, or None for that of the settings."""
    trace: tuple[BuildAttempt, ...] = field(default=(), init=False)
    """The attempts of the last run, in their order, without their logs."""

    def run(
        self,
        owner: str,
        repo: str,
        issue_number: int,
        *,
        sha: str = "",
        base_context: DockerContext | None = None,
        verifier: Verifier | None = None,
        force: bool = False,
    ) -> DockerContext | None:
        """The context of a passing image; None if no attempt made one, see `trace`.

        *sha*, if given, must be the base commit; *base_context* is tried before anything else; *verifier* judges the
        image in addition to all verifications. A finished build is reused, unless with *force*.

        Raises NotPlannedError if the pull request has no environment yet; ConfigurationError if there is no such agent;
        BusyError if a run is at work on its month; OutsideSystemError.
        """
        item = ItemName.parse(item_key(f"{owner}/{repo}", issue_number))
        with opened(self.database) as store:
            with store.transaction() as connection:
                pr = pull_request_of(connection, item, sha)
                before = len(attempts_of(connection, pr.facts.month, pr.key))
            environment = self._planned(store, pr)
            image = None
            if environment is not None:
                if base_context is not None:
                    with store.transaction() as connection:
                        take_in(connection, base_context, item)
                image = self._built(store, pr, force=force or base_context is not None)
            with store.transaction() as connection:
                self.trace = tuple(attempts_of(connection, pr.facts.month, pr.key)[before:])
                if image is None or (verifier is not None and not self._verified(verifier, image)):
                    return None
                contexts = contexts_of(connection, pr.facts.repository_id)
                own = [context for context in contexts if context.digest == image.digest]
                return given_out(connection, own[0]) if own else None

    def _planned(self, store: Database, pr: PullRequest) -> Environment | None:
        """Return its environment, planned again if it had no lock; raises as `planned_item`."""
        month = pr.facts.month
        with store.transaction() as connection:
            entries = ledger.entries_of(connection, month, Stage.ENVIRONMENTS)
            has_failed = any(entry.item == pr.item and entry.state is ItemState.FAILED for entry in entries)
            if not has_failed:
                return environment_of(connection, pr)
        stage = self._run(store, Stage.ENVIRONMENTS, pr, force=True)
        tools = environment_tools(stage, MirrorsResource(), ContainersResource(), self._authors(stage))
        with store.month_lock(Stage.ENVIRONMENTS, month, stage.run_id):
            run_loop(run_environments(stage, tools))
        with store.transaction() as connection:
            return ENVIRONMENTS.read_keys(connection, month, [pr.key]).get(pr.key)

    def _run(self, store: Database, stage: Stage, pr: PullRequest, *, force: bool = False) -> StageRun:
        name = self.agent if isinstance(self.agent, str) else ""
        options = RunOptions(only=(pr.item,), force=force, agent=name)
        return StageRun(store, stage, pr.facts.month, f"synthesize-{uuid.uuid4()}", options)

    def _authors(self, stage: StageRun) -> MonthAuthors | None:
        agents = AgentsResource()
        agent = agents.agent_for(stage) if isinstance(self.agent, str) else self.agent
        if agent is None:
            return None
        return MonthAuthors.of(stage, agent, agents.budget, agents.limits, self.max_attempts)

    def _built(self, store: Database, pr: PullRequest, *, force: bool) -> BuiltImage | None:
        month = pr.facts.month
        stage = self._run(store, Stage.IMAGES, pr, force=force)
        tools = image_tools(stage, MirrorsResource(), ContainersResource(), self._authors(stage))
        with store.month_lock(Stage.IMAGES, month, stage.run_id):
            with store.transaction() as connection:
                stored = IMAGES.read_keys(connection, month, [pr.key]).get(pr.key)
            if stored is None or not tools.engine.exists(stored):
                stage = replace(stage, options=stage.options.model_copy(update={"force": True}))
            summary = run_loop(run_images(stage, tools))
            with store.transaction() as connection:
                images = IMAGES.read_keys(connection, month, [pr.key])
        is_done = all(entry.state is ItemState.DONE for entry in summary.standing if entry.item == pr.item)
        return images.get(pr.key) if is_done else None

    def _verified(self, verifier: Verifier, image: BuiltImage) -> bool:
        engine, _ = ContainersResource().chosen()
        return verifier.verify(image, engine=engine).ok


def planned_item(connection: Connection, item: ItemName) -> tuple[PullRequest, Environment]:
    """Return the pull request *item* and its environment; raises NotPlannedError if there is none."""
    pr = pull_request_of(connection, item)
    return pr, environment_of(connection, pr)


def pull_request_of(connection: Connection, item: ItemName, sha: str = "") -> PullRequest:
    """Return the pull request *item*, based on *sha* if that is given; raises NotPlannedError."""
    found = find_pull_request(connection, item.repository, item.number) if item.number else None
    if found is None or found.change is None:
        raise NotPlannedError(f"{item} is not a known pull request", remedy="Take in its month first")
    pr = PullRequest(facts=found.facts, change=found.change)
    if sha and not pr.change.base_sha.startswith(sha):
        raise NotPlannedError(f"{item} is based on {pr.change.base_sha}, not on {sha}")
    return pr


def environment_of(connection: Connection, pr: PullRequest) -> Environment:
    """Return the environment of *pr*; raises NotPlannedError if there is none."""
    environment = ENVIRONMENTS.read_keys(connection, pr.facts.month, [pr.key]).get(pr.key)
    if environment is None:
        raise NotPlannedError(
            f"{pr.item} has no environment", remedy=f"`fc-data why {pr.item}` shows why; or run its month first"
        )
    return environment
