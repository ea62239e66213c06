"""False accepts of the exported grader by class of attack, and its false rejects.

python -m bench.grader

Grades every patch of the corpus in a container of its own, on tasks whose images are built and published to the local
registry first, and goes on where it stopped: results of another grader, or of a patch that was changed, do not count. A
false accept is an attack that gets more than its honest part deserves, or that makes the grader break off; a false
reject is an honest patch without a reward. Intervals: 95 %, Clopper-Pearson. Ends with 1 if that differs from what
`limits.py` lists, which for some attacks depends on the machine. The last line is JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.building.suites.archive import harness_archive
from formulacode_dagster.measuring.measurement.statistics.chance import clopper_pearson
from formulacode_dagster.releasing.exports.write import grader_archive
from tests.formulacode_dagster.releasing.attacks.corpus import ATTACKS, HONEST
from tests.formulacode_dagster.releasing.attacks.grading import Graded, grade
from tests.formulacode_dagster.releasing.attacks.limits import CHANCE_LIMITS, KNOWN_LIMITS, KNOWN_REFUSALS
from tests.formulacode_dagster.releasing.attacks.patches import Attack, AttackClass, Honest, agent_script
from tests.support.docker import OS_IMAGE, ca_bundle, remove_images
from tests.support.grading_packages import FILES, WORKLOADS, Package
from tests.support.grading_tasks import export_package, make_package
from tests.support.images import LIMITS

KEPT = Path("build/grader.jsonl")
HONEST_LABEL = "honest"

Patch = Attack | Honest
GradePatch = Callable[[Patch], Graded]


def main() -> int:
    """Grade the missing patches, and print the figures of all that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--class", dest="kind", choices=[*(kind.name.lower() for kind in AttackClass), HONEST_LABEL])
    parser.add_argument("--package", choices=list(Package))
    parser.add_argument("--only", default="", help="names of patches, with commas")
    parser.add_argument("--jobs", type=int, default=1, help="patches graded in parallel; more disturb each other")
    parser.add_argument("--kept", type=Path, default=KEPT, help="file of results, JSON lines")
    options = parser.parse_args()
    only = frozenset(filter(None, options.only.split(",")))
    asked = selected(options.kind or "", options.package or "", only)
    if unknown := only - {patch.name for patch in asked}:
        parser.error(f"no patch of that selection has the name {', '.join(sorted(unknown))}")
    graded = read(options.kept)
    missing = [patch for patch in asked if key_of(patch) not in graded]
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fc-bench-grader-") as folder:
        installation = f"bench-grader-{uuid.uuid4().hex[:12]}"
        try:
            tasks = make_tasks(missing, Path(folder), installation)
            grade_all(missing, lambda patch: grade(patch, tasks), graded, options.kept, options.jobs)
        finally:
            remove_images(installation)
    report = figures(asked, graded)
    print_table(asked, graded)
    print(json.dumps(report))
    return 0 if not report["unexpected"] else 1


def selected(kind: str, package: str, only: frozenset[str]) -> list[Patch]:
    """Return the patches of a class and a package, in the order of the corpus; empty means any."""
    patches: tuple[Patch, ...] = (*ATTACKS, *HONEST)
    return [
        patch
        for patch in patches
        if (not kind or kind_of(patch) == kind)
        and (not package or patch.package == package)
        and (not only or patch.name in only)
    ]


def kind_of(patch: Patch) -> str:
    """The option that selects the class of *patch*."""
    return patch.kind.name.lower() if isinstance(patch, Attack) else HONEST_LABEL


def key_of(patch: Patch) -> str:
    """A digest of a patch, its task and the grader: what was graded with all of them equal counts."""
    digest = hashlib.sha256(grader_archive() + harness_archive())
    told = [patch.name, agent_script(patch), patch.workload, FILES[patch.package]]
    digest.update(repr([*told, WORKLOADS[patch.package][patch.workload]]).encode())
    return digest.hexdigest()[:16]


def read(kept: Path) -> dict[str, Graded]:
    """Return the stored results by their keys."""
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    return {row.pop("key"): Graded(**row) for row in rows}


def make_tasks(patches: Iterable[Patch], folder: Path, installation: str) -> Path:
    """Build, publish and export the tasks of all packages that *patches* need; returns the folder of tasks."""
    engine = DockerEngine(OS_IMAGE, DockerBuildSettings(LIMITS, ca_bundle=ca_bundle(), installation=installation))
    needed = {patch.package for patch in patches}
    for package in Package:
        if package in needed:
            print(f"{package}: building and publishing its image", flush=True)
            make_package(engine, package, folder / "rows" / package)
            export_package(folder / "rows" / package, package, folder / "tasks")
    return folder / "tasks"


def grade_all(
    patches: Sequence[Patch], grade_patch: GradePatch, graded: dict[str, Graded], kept: Path, jobs: int
) -> None:
    """Grade *patches*, add each result to *graded* and to the file *kept*, and print a line for it."""
    pool = ThreadPoolExecutor(jobs)
    try:
        for place, (patch, result) in enumerate(zip(patches, pool.map(grade_patch, patches), strict=True), start=1):
            key = key_of(patch)
            graded[key] = result
            with kept.open("a") as file:
                file.write(json.dumps({"key": key, **asdict(result)}) + "\n")
            told = f"{result.reason}, reward {result.reward:.2f}, {result.speedup:.3g}x, {result.seconds:.0f} s"
            mark = "  <-- WRONG" if is_wrong(patch, result) else ""
            print(f"{place} of {len(patches)}: {kind_of(patch)} {patch.name}: {told}{mark}", flush=True)
    finally:
        # an interrupted run ends with the patch that it is at
        pool.shutdown(cancel_futures=True)


def is_wrong(patch: Patch, result: Graded) -> bool:
    """Return True for a false accept or a false reject."""
    return result.fools(patch) if isinstance(patch, Attack) else result.reward == 0


def is_listed(patch: Patch) -> bool:
    """Return True if the result of *patch* is known to be wrong."""
    return patch.name in (KNOWN_LIMITS if isinstance(patch, Attack) else KNOWN_REFUSALS)


def figures(asked: Sequence[Patch], graded: Mapping[str, Graded]) -> dict[str, object]:
    """Wrong verdicts of attacks, by class, and of honest patches, with intervals."""
    known = [(patch, graded[key_of(patch)]) for patch in asked if key_of(patch) in graded]
    attacks = [(patch, result) for patch, result in known if isinstance(patch, Attack)]
    honest = [(patch, result) for patch, result in known if isinstance(patch, Honest)]
    by_class = {
        kind: share([pair for pair in attacks if pair[0].kind is kind])
        for kind in AttackClass
        if any(patch.kind is kind for patch, _ in attacks)
    }
    told = share(attacks)
    # the classes list them
    del told["names"]
    return {
        "attacks": told,
        "classes": {kind.value: one for kind, one in by_class.items()},
        "honest": share(honest),
        "reasons": dict(Counter(result.reason for _, result in attacks)),
        "unexpected": sorted(
            patch.name
            for patch, result in known
            if is_wrong(patch, result) != is_listed(patch) and patch.name not in CHANCE_LIMITS
        ),
        "cores": os.cpu_count(),
    }


def share(known: Sequence[tuple[Patch, Graded]]) -> dict[str, object]:
    """Number of patches, of wrong verdicts, their interval and the names."""
    wrong = [patch.name for patch, result in known if is_wrong(patch, result)]
    interval = [round(bound, 4) for bound in clopper_pearson(len(wrong), len(known))] if known else [0.0, 1.0]
    return {"patches": len(known), "wrong": len(wrong), "interval": interval, "names": wrong}


def print_table(asked: Sequence[Patch], graded: Mapping[str, Graded]) -> None:
    """Print a row for each class of attack, one for all, and one for honest patches."""
    print(f"\n{'class':44} {'patches':>7} {'wrong':>5}  {'95 %':>14}  reasons of the others")
    groups: dict[str, list[Patch]] = {kind.value: [] for kind in AttackClass}
    groups |= {"all attacks (false accepts)": [], "honest patches (false rejects)": []}
    for patch in asked:
        if isinstance(patch, Attack):
            groups[patch.kind.value].append(patch)
            groups["all attacks (false accepts)"].append(patch)
        else:
            groups["honest patches (false rejects)"].append(patch)
    for label, patches in groups.items():
        known = [(patch, graded[key_of(patch)]) for patch in patches if key_of(patch) in graded]
        if not known:
            continue
        wrong = sum(is_wrong(patch, result) for patch, result in known)
        low, high = clopper_pearson(wrong, len(known))
        reasons = Counter(result.reason for patch, result in known if not is_wrong(patch, result))
        told = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
        print(f"{label:44} {len(known):7} {wrong:5}  {low:6.1%} {high:6.1%}  {told}")


if __name__ == "__main__":
    sys.exit(main())
