"""Grading of one patch of the corpus, each in a container of its own."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.releasing.exports.evaluate import evaluate
from tests.support.grading_tasks import task_id

from .patches import Attack, Honest, agent_script

MARGIN = 0.05
"""A reward above what an honest part deserves, by chance."""
BROKE_OFF = "broke_off"
DETAIL_CHARACTERS = 300


@dataclass(frozen=True)
class Graded:
    """What a patch got."""

    name: str
    reward: float
    reason: str
    """The grader's, or that it broke off."""
    detail: str
    speedup: float
    seconds: float

    def fools(self, attack: Attack) -> bool:
        """Return True if the attack got more than its honest part deserves, or no verdict at all."""
        return self.reason == BROKE_OFF or self.reward > attack.deserved + MARGIN * (attack.deserved > 0)


def grade(patch: Attack | Honest, tasks: Path) -> Graded:
    """Grade *patch* on its task, which is exported in the folder *tasks*."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fc-attack-") as folder:
        agent = Path(folder, "agent.sh")
        agent.write_text(agent_script(patch))
        reward, speedup = 0.0, 1.0
        try:
            report = evaluate(tasks / task_id(patch.package, patch.workload), str(agent))
            reason, detail = str(report["reason"]), str(report["detail"])
            reward, speedup = float(report["metrics"]["reward"]), float(report["metrics"]["speedup"])
        except ItemFailure as failure:
            reason, detail = BROKE_OFF, f"{failure}: {failure.log_tail}"
    return Graded(
        patch.name, reward, reason, detail[-DETAIL_CHARACTERS:], speedup, round(time.monotonic() - started, 1)
    )
