"""What each rung of the ladder yields and costs: recipes, rules, and an agent that a program of rules stands in for.

Every pull request is built twice: without an agent, as by default, and with the `command` adapter, confined as any
agent is. Each pass begins without a recipe and keeps those of what holds, as a month does; a third one begins with
those of the second. What holds without an agent must be built by the very same spec with one.

    python bench/synthesis.py [--repositories DIR] [--per-repository N]

DIR holds bare mirrors as owner/name.git; without it, the samples are taken and three pull requests that no rule mends.
The engine is that of the settings; agents need a Docker daemon whatever builds, and without one there is one pass.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthesis_samples import listed, samples
from yield_of_builds import laboratory_of

from formulacode_dagster.engines.docker.daemon import DockerDaemon
from formulacode_dagster.images.recipes import context_of, declared_by, recipes_for
from formulacode_dagster.images.repairs.loop import build_until_it_holds
from formulacode_dagster.models.attempt import BuildAttempt, Rung
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, Rejection
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.recipe import StoredContext
from formulacode_dagster.specs.spec import spec_hash
from formulacode_dagster.synthesis.asking import AgentDesk
from resources.agents import AgentsResource
from resources.settings import AgentSetting

if TYPE_CHECKING:
    from yield_trials import Laboratory

    from formulacode_dagster.engines.protocol import Engine

STAND_IN = Path(__file__).with_name("synthesis_standin.py")
MAX_ATTEMPTS = 2


@dataclass
class Pass:
    """All items once, one after the other in the order of their merges."""

    name: str
    desk: AgentDesk | None = None
    contexts: list[StoredContext] = field(default_factory=list)
    attempts: dict[str, list[BuildAttempt]] = field(default_factory=dict)
    specs: dict[str, str] = field(default_factory=dict)
    """Hash of the spec of each that holds."""
    lost: dict[str, str] = field(default_factory=dict)

    def climb(self, laboratory: Laboratory, engine: Engine, item: str) -> None:
        """Take *item* up the rungs."""
        attempts = self.attempts.setdefault(item, [])
        try:
            image = self._image(laboratory, engine, item, attempts)
        except (ItemFailure, Rejection) as end:
            self.lost[item] = str(getattr(end, "kind", "") or getattr(end, "reason", ""))
        else:
            self.specs[item] = spec_hash(image.spec)
        last = f"{attempts[-1].rung} {attempts[-1].rule}" if attempts else "plan"
        print(f"{self.name}: {item}: {self.lost.get(item, 'holds')} ({last})", file=sys.stderr, flush=True)

    def _image(self, laboratory: Laboratory, engine: Engine, item: str, attempts: list[BuildAttempt]) -> BuiltImage:
        mirror, pr, _ = laboratory.change(item)
        task, _ = laboratory.task(mirror, pr, laboratory.planned(mirror, pr, ()))
        declared = declared_by(mirror, pr, task.environment)
        contexts = [context for context in self.contexts if context.repository_id == pr.facts.repository_id]
        image, _ = build_until_it_holds(
            engine,
            task,
            run_id="synthesis",
            recipes=recipes_for(contexts, pr.change.base_sha, declared),
            author=self.desk.author(contexts) if self.desk else None,
            keep=attempts.append,
        )
        self.contexts.append(context_of(image, task, declared))
        return image

    def rungs(self) -> dict[str, dict[str, float]]:
        """By rung: attempts, those that hold, seconds, and what agents took of tokens and dollars."""
        made = [attempt for attempts in self.attempts.values() for attempt in attempts]
        by_rung = {rung: [attempt for attempt in made if attempt.rung is rung] for rung in Rung}
        return {
            rung.value: {
                "attempts": len(of_rung),
                "held": sum(not attempt.kind for attempt in of_rung),
                "seconds": round(sum(attempt.seconds for attempt in of_rung), 1),
                "tokens": sum(attempt.tokens_in + attempt.tokens_out for attempt in of_rung),
                "dollars": round(sum(attempt.dollars for attempt in of_rung), 4),
            }
            for rung, of_rung in by_rung.items()
        }


def figures(passes: Sequence[Pass]) -> dict[str, Any]:
    """What the last line says; `changed` names what an agent in reach has changed of what holds without one."""
    plain = passes[0]
    return {
        "items": len(plain.attempts),
        "passes": {each.name: {"held": len(each.specs), "lost": each.lost, "rungs": each.rungs()} for each in passes},
        "changed": sorted(
            item for item, spec in plain.specs.items() for each in passes[1:2] if each.specs.get(item) != spec
        ),
    }


def table(passes: Sequence[Pass]) -> list[str]:
    """One line for each rung of each pass."""
    lines = ["| pass | rung | attempts | hold | seconds | tokens | dollars |", "|---|---|---|---|---|---|---|"]
    for each in passes:
        for rung, of_rung in each.rungs().items():
            cells = (each.name, rung, *(str(value) for value in of_rung.values()))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append(f"| {each.name} | all | | {len(each.specs)} of {len(each.attempts)} | | | |")
    return lines


def main() -> None:
    """Build everything in two or three passes, print the table; status 1 when an agent in reach changed anything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, help="folder of bare mirrors owner/name.git")
    parser.add_argument("--per-repository", type=int, default=2, help="pull requests of each mirror")
    parser.add_argument("--only", action="append", default=[], help="owner/repo#123; may be repeated")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-synthesis-") as folder:
        if options.repositories is None:
            repositories, items = samples(Path(folder))
        else:
            repositories = options.repositories.absolute()
            items = list(listed(repositories, options.per_repository))
        items = [item for item in items if not options.only or item in options.only]
        laboratory, engine = laboratory_of(repositories, None, every_source=False)
        passes = [Pass("none")]
        desk = _stand_in()
        if desk is not None:
            passes.append(Pass("command", desk))
            passes.append(Pass("again", contexts=passes[1].contexts))
        for each in passes:
            for item in items:
                each.climb(laboratory, engine, item)
    print("\n".join(table(passes)))
    result = figures(passes)
    print(json.dumps(result))
    sys.exit(1 if result["changed"] else 0)


def _stand_in() -> AgentDesk | None:
    with suppress(OutsideSystemError):
        DockerDaemon().check()
        agents = AgentsResource(agent=AgentSetting.command, agent_command=str(STAND_IN))
        agent = agents.chosen()
        return None if agent is None else AgentDesk(agent, run=agents.budget, max_attempts=MAX_ATTEMPTS)
    print("no Docker daemon answers, and no agent runs unconfined: one pass, without one", file=sys.stderr)
    return None


if __name__ == "__main__":
    main()
