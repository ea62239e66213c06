"""Cost of an additional task's image in our tiers, compared with one flat Dockerfile per task.

Consecutive pull requests of one repository are planned once. Then each is built twice, in turn: in the tiers, and by
the Dockerfile that a straightforward author would write (system packages, a clone checked out, pip, the build). Both
begin cold: on an OS image with a layer that no cache has seen, with empty caches. Afterwards the tasks' own tier is
built again while all below it is there; a flat image has nothing below it but the system packages, which its later
builds find anyway. Bytes are those that Docker shares with no other image.

python bench/images.py [--repositories DIR --repository owner/name]

DIR holds bare mirrors as owner/name.git; by default, the generated sample repositories are used. Needs Docker. Exit
code 1 if a target is missed. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from images_flat import FlatBuilds
from images_tasks import Task, plan_tasks

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import Tier

TARGETS = {"cold_time_ratio": 0.25, "warm_time_ratio": 0.25, "unique_bytes_ratio": 0.10}
"""Limit of an additional task's cost, as a share of its flat cost."""


@dataclass(frozen=True)
class Costs:
    """One way to build, by task: seconds cold and warm, bytes that no other image shares."""

    cold: tuple[float, ...]
    warm: tuple[float, ...]
    unique: tuple[int, ...]
    whole: int
    """Bytes of all its images together, without the OS image."""

    def figures(self) -> dict[str, float]:
        """Totals and means; marginal figures leave out the first task, which pays for the shared layers."""
        return {
            "cold_total_seconds": round(sum(self.cold), 1),
            "cold_marginal_seconds": round(mean(self.cold[1:]), 2),
            "warm_marginal_seconds": round(mean(self.warm), 2),
            "unique_bytes_per_task": round(mean(self.unique)),
            "bytes_of_all": self.whole,
        }


def main() -> None:
    """Measure, print the table and the figures, and fail when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, help="folder of bare mirrors owner/name.git")
    parser.add_argument("--repository", default="", help="owner/name; by default the one with most in one month")
    parser.add_argument("--month", default="", help="of the pull requests; by default the newest that has enough")
    parser.add_argument("--count", type=int, default=10, help="pull requests")
    options = parser.parse_args()
    from resources.containers import ContainersResource

    containers = ContainersResource()
    daemon = DockerDaemon()
    daemon.check()
    namespace = f"formulacode-bench-{uuid.uuid4().hex[:8]}"
    known = DockerEngine(containers.settings.os_image, daemon=daemon)
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as folder, tidied(daemon, namespace):
        work = Path(folder)
        tasks = plan_tasks(options, work, containers.resolver(), known, f"{namespace}:py{{python}}")
        for python in {task.spec.python for task in tasks}:
            make_fresh_os(daemon, containers.settings.os_image, namespace, python)
        ca_bundle, network = containers.certificates(), containers.settings.build_network
        settings = DockerBuildSettings(
            containers.limits, network, ca_bundle, installation=namespace, cache_namespace=namespace
        )
        engine = DockerEngine(f"{namespace}:py{{python}}", settings, daemon=daemon)
        flat = FlatBuilds(daemon, work, f"{namespace}-flat", ca_bundle, network)
        try:
            ours, theirs = measure(daemon, tasks, engine, flat, containers.settings.os_image)
        except ItemFailure as end:
            sys.exit(f"{end}\n{end.log_tail}")
    figures = judged(ours, theirs)
    print("\n".join(table(ours, theirs)))
    print(
        json.dumps({"repository": tasks[0].spec.repository, "pull_requests": [task.item for task in tasks], **figures})
    )
    missed = [name for name, most in TARGETS.items() if figures[name] > most]
    print(f"missed: {', '.join(missed)}" if missed else "every target is reached", file=sys.stderr)
    sys.exit(1 if missed else 0)


def measure(
    daemon: DockerDaemon, tasks: Sequence[Task], engine: DockerEngine, flat: FlatBuilds, os_image: str
) -> tuple[Costs, Costs]:
    """Build everything; costs of the tiers, and of the flat images."""
    cold, theirs, warm = [], [], []
    tiers: dict[str, Tier] = {}
    for task in tasks:
        outcome = engine.build(task.spec, Origins(task.mirror.path))
        tiers |= {tier.tag: tier for tier in outcome.tiers}
        cold.append(outcome.seconds)
        theirs.append(flat.build(task))
        parts = ", ".join(f"{tier.name} {tier.seconds:.1f}" for tier in outcome.tiers)
        print(f"{task.item}: tiers {cold[-1]:.1f} s ({parts}), flat {theirs[-1]:.1f} s", file=sys.stderr, flush=True)
    tags = [tag for tag, tier in tiers.items() if tier.name == "task"]
    flat_tags = [flat.tag(task) for task in tasks]
    sizes = sizes_of(daemon)
    below = sizes[os_image.replace("{python}", tasks[0].spec.python)][0]
    for task in tasks:
        warm.append(engine.build(task.spec, Origins(task.mirror.path), force=True).seconds)
    shared = max(sizes[tag][0] - sizes[tag][1] for tag in flat_tags) - below
    whole = shared + sum(sizes[tag][1] for tag in flat_tags)
    bases = len([tier for tier in tiers.values() if tier.name == "base"])
    ours = sum(tier.size_bytes for tier in tiers.values()) - bases * below
    return (
        Costs(tuple(cold), tuple(warm), tuple(sizes[tag][1] for tag in tags), ours),
        Costs(tuple(theirs), tuple(theirs[1:]), tuple(sizes[tag][1] for tag in flat_tags), whole),
    )


def sizes_of(daemon: DockerDaemon) -> dict[str, tuple[int, int]]:
    """Bytes of every image, and of those of its layers that no other image has, by tag."""
    with daemon.watched("ask for the sizes of images"):
        images = daemon.client.df()["Images"]
    return {
        tag: (image["Size"], image["Size"] - image["SharedSize"]) for image in images for tag in image["RepoTags"] or ()
    }


def make_fresh_os(daemon: DockerDaemon, os_image: str, namespace: str, python: str) -> None:
    """The OS image with one more layer, under which nothing is found in a cache."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Dockerfile").write_text(
            f"FROM {os_image.replace('{python}', python)}\nRUN echo {namespace} >/etc/formulacode-bench\n"
        )
        done = daemon.run(["buildx", "build", "--load", "--tag", f"{namespace}:py{python}", folder], timeout=600)
    if not done.ok:
        sys.exit(done.stderr.decode(errors="replace")[-2000:])


@contextmanager
def tidied(daemon: DockerDaemon, namespace: str) -> Iterator[None]:
    """Removes the images that were made within, and the caches of *namespace*."""
    before = {tag for image in daemon.client.images.list() for tag in image.tags}
    try:
        yield
    finally:
        for image in daemon.client.images.list():
            for tag in set(image.tags) - before:
                if namespace in f"{tag} {image.labels}":
                    daemon.client.images.remove(tag, force=True)
        daemon.run(["buildx", "prune", "--force", "--filter", f"description~={namespace}"], timeout=600)


def judged(ours: Costs, theirs: Costs) -> dict[str, Any]:
    """All figures."""
    mine, flat = ours.figures(), theirs.figures()
    return {
        "tiers": mine,
        "flat": flat,
        "cold_time_ratio": round(mine["cold_marginal_seconds"] / flat["cold_marginal_seconds"], 3),
        "warm_time_ratio": round(mine["warm_marginal_seconds"] / flat["warm_marginal_seconds"], 3),
        "unique_bytes_ratio": round(mine["unique_bytes_per_task"] / flat["unique_bytes_per_task"], 3),
    }


def table(ours: Costs, theirs: Costs) -> Iterator[str]:
    """Both ways side by side, in Markdown."""
    yield "| | tiers | flat |"
    yield "|---|---|---|"
    mine, flat = ours.figures(), theirs.figures()
    for name, value in mine.items():
        yield f"| {name.replace('_', ' ')} | {value:,} | {flat[name]:,} |"


if __name__ == "__main__":
    main()
