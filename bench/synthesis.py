"""Yield and cost of each rung of the ladder: recipes, rules, and an agent, simulated by rules.

Every pull request is built twice: without an agent, as by default, and with the `command` adapter, confined like any
agent. Each pass begins without a recipe and stores those of passing builds, as a month does; a third one begins with
those of the second. A build that passes without an agent must have exactly the same spec with one.

python bench/synthesis.py [--repositories DIR] [--per-repository N] [--results FILE]

DIR holds bare mirrors as owner/name.git; by default, the samples are used and three pull requests that no rule repairs.
The engine is that of the settings; agents need a Docker daemon with any engine, and without one there is one pass. With
`--results FILE` an interrupted run continues. Trials that an outside system cut short are reported, tried again by the
next run, and make the status 1. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthesis_results import Climb, Climbs
from synthesis_samples import listed, samples
from yield_of_builds import laboratory_of

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.environments.lock_attempts import WITHOUT_LOCK, LockAttempts, lock_otherwise
from formulacode_dagster.building.images.recipes import context_of, declared_by, lock_recipes_for, recipes_for
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.building.specs.spec import spec_hash
from formulacode_dagster.building.synthesis.agent_request import AgentDispatcher
from formulacode_dagster.models.attempt import BuildAttempt, Rung
from formulacode_dagster.models.errors import (
    ConfigurationError,
    FormulaCodeError,
    ItemFailure,
    OutsideSystemError,
    Rejection,
)
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.recipe import StoredContext
from resources.agents import AgentsResource
from resources.setting_types import AgentSetting

if TYPE_CHECKING:
    from yield_trials import Laboratory

    from formulacode_dagster.building.engines.protocol import Engine

STAND_IN = Path(__file__).with_name("synthesis_standin.py")
MAX_ATTEMPTS = 2


@dataclass
class Pass:
    """All items once, one after the other in the order of their merges."""

    name: str
    desk: AgentDispatcher | None = None
    contexts: list[StoredContext] = field(default_factory=list)
    climbs: dict[str, Climb] = field(default_factory=dict)

    @property
    def specs(self) -> dict[str, str]:
        """Hash of the spec of each passing one."""
        return {item: climb.spec for item, climb in self.climbs.items() if climb.spec}

    @property
    def lost(self) -> dict[str, str]:
        """Kind of the end of each that does not."""
        return {item: climb.lost for item, climb in self.climbs.items() if climb.lost}

    def climb(self, laboratory: Laboratory, engine: Engine, item: str) -> Climb:
        """Take *item* up the rungs."""
        attempts: list[BuildAttempt] = []
        context, spec, lost, is_cut_short = None, "", "", False
        try:
            image, context = self._image(laboratory, engine, item, attempts)
            spec = spec_hash(image.spec)
        except (ItemFailure, Rejection) as end:
            lost = str(end.kind if isinstance(end, ItemFailure) else end.reason)
        except FormulaCodeError as end:
            lost, is_cut_short = f"cut short: {end}", True
        last = f"{attempts[-1].rung} {attempts[-1].rule}" if attempts else "plan"
        print(f"{self.name}: {item}: {lost or 'holds'} ({last})", file=sys.stderr, flush=True)
        return Climb(
            made_in=self.name,
            item=item,
            attempts=tuple(attempts),
            context=context,
            spec=spec,
            lost=lost,
            is_cut_short=is_cut_short,
        )

    def take(self, climb: Climb) -> None:
        """Count *climb*, and let later ones start from its recipe."""
        self.climbs[climb.item] = climb
        if climb.context is not None:
            self.contexts.append(climb.context)

    def _image(
        self, laboratory: Laboratory, engine: Engine, item: str, attempts: list[BuildAttempt]
    ) -> tuple[BuiltImage, StoredContext]:
        mirror, pr, _ = laboratory.change(item)
        contexts = [context for context in self.contexts if context.repository_id == pr.facts.repository_id]
        author = self.desk.author(contexts) if self.desk else None
        try:
            environment = laboratory.planned(mirror, pr, ())
        except ItemFailure as failure:
            if failure.kind not in WITHOUT_LOCK:
                raise
            task, _ = laboratory.task(mirror, pr, laboratory.unlocked(mirror, pr))
            environment = lock_otherwise(
                LockAttempts(engine, task, "synthesis", 1, attempts.append),
                failure,
                recipes=lock_recipes_for(contexts, pr.change.base_sha, declared_by(mirror, pr, task.environment)),
                author=author,
            )
        task, _ = laboratory.task(mirror, pr, environment)
        declared = declared_by(mirror, pr, task.environment)
        image, _ = build_until_it_holds(
            engine,
            task,
            run_id="synthesis",
            recipes=recipes_for(contexts, pr.change.base_sha, declared),
            author=author,
            first_attempt=len(attempts) + 1,
            keep=attempts.append,
        )
        return image, context_of(image, task, declared)

    def rungs(self) -> dict[str, dict[str, float]]:
        """By rung: attempts, passing ones, seconds, and agents' tokens and dollars."""
        made = [attempt for climb in self.climbs.values() for attempt in climb.attempts]
        by_rung = {rung: [attempt for attempt in made if attempt.rung is rung] for rung in Rung}
        return {
            rung.value: {
                "attempts": len(of_rung),
                "held": sum(not attempt.kind and attempt.made_in is Stage.IMAGES for attempt in of_rung),
                "seconds": round(sum(attempt.seconds for attempt in of_rung), 1),
                "tokens": sum(attempt.tokens_in + attempt.tokens_out for attempt in of_rung),
                "dollars": round(sum(attempt.dollars for attempt in of_rung), 4),
            }
            for rung, of_rung in by_rung.items()
        }


def figures(passes: Sequence[Pass]) -> dict[str, Any]:
    """Content of the last line; `changed` names builds that pass without an agent but change if one is available."""
    plain = passes[0]
    return {
        "items": len(plain.climbs),
        "passes": {each.name: {"held": len(each.specs), "lost": each.lost, "rungs": each.rungs()} for each in passes},
        "changed": sorted(
            item for item, spec in plain.specs.items() for each in passes[1:2] if each.specs.get(item) != spec
        ),
        "cut_short": sorted({item for each in passes for item, climb in each.climbs.items() if climb.is_cut_short}),
    }


def table(passes: Sequence[Pass]) -> list[str]:
    """One line for each rung of each pass."""
    lines = ["| pass | rung | attempts | hold | seconds | tokens | dollars |", "|---|---|---|---|---|---|---|"]
    for each in passes:
        for rung, of_rung in each.rungs().items():
            cells = (each.name, rung, *(str(value) for value in of_rung.values()))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append(f"| {each.name} | all | | {len(each.specs)} of {len(each.climbs)} | | | |")
    return lines


def main() -> None:
    """Build everything in two or three passes, print the table; status 1 when an agent in reach changed anything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, help="folder of bare mirrors owner/name.git")
    parser.add_argument("--per-repository", type=int, default=2, help="pull requests of each mirror")
    parser.add_argument("--only", action="append", default=[], help="owner/repo#123; may be repeated")
    parser.add_argument("--results", type=Path, help="file of JSON lines, one an item and pass, to go on from")
    options = parser.parse_args()
    try:
        desk = _stand_in()
    except ConfigurationError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory(prefix="bench-synthesis-") as folder:
        if options.repositories is None:
            repositories, items = samples(Path(folder))
        else:
            repositories = options.repositories.absolute()
            items = list(listed(repositories, options.per_repository))
        items = [item for item in items if not options.only or item in options.only]
        laboratory, engine = laboratory_of(repositories, None, every_source=False)
        climbs = Climbs(options.results)
        passes = [Pass("none")]
        if desk is not None:
            passes.append(Pass("command", desk))
            passes.append(Pass("again", contexts=passes[1].contexts))
        # builds without an agent are in the build cache when they are repeated with one
        for together in (passes[:2], passes[2:]):
            for item in items:
                for each in together:
                    climb = climbs.made(each.name, item) or climbs.keep(each.climb(laboratory, engine, item))
                    each.take(climb)
    print("\n".join(table(passes)))
    result = figures(passes)
    print(json.dumps(result))
    sys.exit(1 if result["changed"] or result["cut_short"] else 0)


def _stand_in() -> AgentDispatcher | None:
    """A dispatcher with the stand-in; None without a daemon. Raises ConfigurationError, which names the setting."""
    agents = AgentsResource(agent=AgentSetting.command, agent_command=str(STAND_IN))
    try:
        DockerDaemon().check()
    except OutsideSystemError as error:
        print(f"no agent runs unconfined: one pass, without one ({error})", file=sys.stderr)
        return None
    agent = agents.required()
    return None if agent is None else AgentDispatcher(agent, run=agents.budget, max_attempts=MAX_ATTEMPTS)


if __name__ == "__main__":
    main()
