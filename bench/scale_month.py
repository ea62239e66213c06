"""The month of `bench/scale.py`: pull requests with durations of real ones."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RECORDED = Path(__file__).with_name("scale_recorded.tsv")
SPREAD = 0.35
"""Standard deviation of the logarithm of durations within one repository, an assumption."""
TASKS_AN_ENVIRONMENT = 8
"""Tasks of one repository and month that share a lock, and so its layer, an assumption."""


@dataclass(frozen=True)
class Recorded:
    """Seconds that one real pull request took."""

    item: str
    environment: float
    layer: float
    """Seconds of building the `env` layer, paid by the first image of a lock."""
    image: float
    """Seconds of everything else until its image was verified."""
    measurement: float


@dataclass(frozen=True)
class Task:
    """A task of the simulated month, and its seconds in each stage."""

    item: str
    lock: str
    environment: float
    layer: float
    image: float
    measurement: float

    @property
    def seconds(self) -> float:
        """From the plan of its environment to its measurement, if it is the first of its lock."""
        return self.environment + self.layer + self.image + self.measurement


def recorded(path: Path = RECORDED) -> list[Recorded]:
    """Recorded durations; lines that begin with # give their origin."""
    with path.open(encoding="utf-8") as lines:
        rows = csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t")
        return [Recorded(row.pop("item"), **{name: float(value) for name, value in row.items()}) for row in rows]


def tasks_of_a_month(number: int, repositories: int, facts: Sequence[Recorded], seed: int) -> list[Task]:
    """Return that many tasks, of which a few repositories have most (by Zipf); the same ones for the same *seed*."""
    dice = random.Random(seed)  # noqa: S311 - the same month every time, no secret
    names = [f"bench/project-{place}" for place in range(1, repositories + 1)]
    chosen = dice.choices(names, weights=[1 / place for place in range(1, repositories + 1)], k=number)
    tasks = []
    for name in names:
        fact = dice.choice(facts)
        layer = fact.layer * dice.lognormvariate(0, SPREAD)
        for place in range(chosen.count(name)):
            environment, image, measurement = (
                seconds * dice.lognormvariate(0, SPREAD) for seconds in (fact.environment, fact.image, fact.measurement)
            )
            lock = f"{name} {place // TASKS_AN_ENVIRONMENT}"
            tasks.append(Task(f"{name}#{place + 1}", lock, environment, layer, image, measurement))
    return tasks


@dataclass(frozen=True)
class Bound:
    """Lower bound of any schedule of a month's tasks, in seconds."""

    critical_path: float
    """Seconds of the longest task."""
    work: float
    """Seconds of all tasks, each layer built once."""

    def of(self, workers: int) -> float:
        """The least that so many workers need."""
        return max(self.critical_path, self.work / workers)


def bound_of(tasks: Sequence[Task]) -> Bound:
    """The bound of *tasks*, ignoring barriers between stages."""
    layers = {task.lock: task.layer for task in tasks}
    return Bound(
        critical_path=max(task.seconds for task in tasks),
        work=sum(task.seconds - task.layer for task in tasks) + sum(layers.values()),
    )
