"""One image by hand, rung by rung, as the `images` stage builds it: for scripts, and for `fc-data synthesize`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection

from formulacode_dagster.agents.protocol import Agent
from formulacode_dagster.images.stage import TaskBuilds, inputs_of
from formulacode_dagster.items.runner import in_thread, run_items
from formulacode_dagster.items.work import StageRun, WorkItem
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName, item_key
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import ItemState, RunOptions, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.running.loops import run_loop
from formulacode_dagster.store.artifacts import ENVIRONMENTS, IMAGES
from formulacode_dagster.store.attempts import attempts_of, contexts_of
from formulacode_dagster.store.database import Database
from formulacode_dagster.store.lookup import find_pull_request
from formulacode_dagster.synthesis.docker_context import DockerContext
from formulacode_dagster.synthesis.importing import given_out, take_in
from formulacode_dagster.synthesis.month import author_of, desk_of
from formulacode_dagster.verification.verifiers import Verifier
from resources.agents import AgentsResource
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource

from .records import opened


@dataclass
class Synthesizer:
    """Builds the image of one pull request whose environment is planned, and says how.

    The stored recipe of its commit is tried first, then those of the nearest commits, then the repair rules, then an
    agent: *agent* is one, the name of one, or `` for FC_AGENT. All of it is kept where the `images` stage keeps it, so
    that a month goes on from there.
    """

    max_attempts: int = 3
    """Times the agent is asked."""
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
        """The context of an image that holds; None where no attempt made one, which `trace` tells of.

        *sha*, where it is given, must be the base commit; *base_context* is tried before anything else; *verifier*
        judges the image beside all verifications. What is built already is not built again, unless with *force*.

        Raises ConfigurationError when the pull request has no environment yet, or there is no such agent; BusyError
        when a run is at work on its month; OutsideSystemError.
        """
        item = ItemName.parse(item_key(f"{owner}/{repo}", issue_number))
        with opened(self.database) as store:
            with store.transaction() as connection:
                pr, environment = planned_item(connection, item, sha)
                if base_context is not None:
                    take_in(connection, base_context, item)
                before = len(attempts_of(connection, pr.facts.month, pr.key))
            image = self._built(store, pr, environment, force=force or base_context is not None)
            with store.transaction() as connection:
                self.trace = tuple(attempts_of(connection, pr.facts.month, pr.key)[before:])
                if image is None or (verifier is not None and not self._verified(verifier, image)):
                    return None
                contexts = contexts_of(connection, pr.facts.repository_id)
                own = [context for context in contexts if context.digest == image.digest]
                return given_out(connection, own[0]) if own else None

    def _built(self, store: Database, pr: PullRequest, environment: Environment, *, force: bool) -> BuiltImage | None:
        month, run_id = pr.facts.month, f"synthesize-{uuid.uuid4()}"
        name = self.agent if isinstance(self.agent, str) else ""
        run = StageRun(store, Stage.IMAGES, month, run_id, RunOptions(only=(pr.item,), force=force, agent=name))
        containers, agents = ContainersResource(), AgentsResource()
        engine, _ = containers.engine_for(store, month)
        agent = agents.agent_for(run) if isinstance(self.agent, str) else self.agent
        desk = None if agent is None else desk_of(run, agent, agents.budget, agents.limits, self.max_attempts)
        os_image = containers.settings.os_image
        authors = partial(author_of, run, desk) if desk else None
        builds = TaskBuilds(run, engine, MirrorsResource().cache(), containers.resolver(), os_image, authors)
        work = WorkItem(pr.item, inputs_of(environment, os_image, engine.name), (pr, environment))
        with store.month_lock(Stage.IMAGES, month, run_id):
            with store.transaction() as connection:
                stored = IMAGES.read_keys(connection, month, [pr.key]).get(pr.key)
            redo = [] if stored is not None and engine.exists(stored) else [pr.item]
            summary = run_loop(run_items(run, [work], in_thread(builds.build), IMAGES.save, prune=False, redo=redo))
            with store.transaction() as connection:
                images = IMAGES.read_keys(connection, month, [pr.key])
        is_done = all(entry.state is ItemState.DONE for entry in summary.standing)
        return images.get(pr.key) if is_done else None

    def _verified(self, verifier: Verifier, image: BuiltImage) -> bool:
        engine, _ = ContainersResource().chosen()
        return verifier.verify(image, engine=engine).ok


def planned_item(connection: Connection, item: ItemName, sha: str = "") -> tuple[PullRequest, Environment]:
    """The pull request *item*, based on *sha* where that is given, and its environment; raises ConfigurationError."""
    found = find_pull_request(connection, item.repository, item.number) if item.number else None
    if found is None or found.change is None:
        raise ConfigurationError(f"{item} is no pull request of ours", remedy="Take in its month first")
    pr = PullRequest(facts=found.facts, change=found.change)
    environment = ENVIRONMENTS.read_keys(connection, pr.facts.month, [pr.key]).get(pr.key)
    if environment is None:
        raise ConfigurationError(
            f"{item} has no environment", remedy=f"`fc-data why {item}` tells why; or run its month first"
        )
    if sha and not pr.change.base_sha.startswith(sha):
        raise ConfigurationError(f"{item} is based on {pr.change.base_sha}, not on {sha}")
    return pr, environment
