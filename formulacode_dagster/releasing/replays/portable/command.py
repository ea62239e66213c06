"""The command `./replay`: verifies the archive, measures its tasks, writes their samples and the machine as JSON."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

from .arms import BASE, PackedArms
from .contents import ArchiveRefusedError, Contents
from .entering import IMAGE_USER, WAYS, installed, session_user
from .harness_requests import TaskFailedError
from .layers import RootFileSystem, image_of, remove_tree
from .machine_facts import machine_facts
from .results_file import earlier_replays, write_results
from .sampling import PATIENCE, ReplayBudget, RoundSampler, survey
from .sessions import HOME, SessionMachine, enter
from .slim import SLIM_WAYS, find_interpreter, lay_machine, require_machine

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS_VERSION = 1
IDENTITY = ("image", "image_id", "procedure_sha256", "patch_sha256", "harness_sha256")
SCRIPTS = ("confine.py", "view_mounts.py", "plain_mounts.py")
LOG_CHARACTERS = 20_000


def main(arguments: list[str], archive: str, script: Callable[[str], bytes]) -> int:
    """Replay the tasks next to *archive*, this file, of which *script* gives the parts that run by themselves.

    Returns 0 if every replay in the file of results was measured, 1 if some could not be, 2 if nothing was tried.
    """
    options = _options(arguments)
    # so that what was unpacked is removed when a scheduler ends the job
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        contents = Contents(os.path.dirname(os.path.abspath(archive)))
        say("verifying hashes")
        say(f"{contents.verify() / 1e6:.0f} MB are as they were packed")
        tasks = [each for each in contents.manifest["tasks"] if not options.only or each["item"] in options.only]
        if unknown := sorted(set(options.only) - {each["item"] for each in tasks}):
            raise ArchiveRefusedError(f"not in this archive: {', '.join(unknown)}")
        require_machine(tasks, options.python)
        results = _replayed(contents, tasks, options, script)
    except (ArchiveRefusedError, OSError) as error:
        say(f"refused: {error}")
        return 2
    failed = sum(each["outcome"] != "measured" for each in results["replays"])
    say(f"{len(results['replays']) - failed} replays measured, {failed} could not be run: {options.results}")
    return 1 if failed else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./replay",
        description="Measure the packed tasks on this machine, without Docker, network or root. "
        "`fc-data replay take` reads the results.",
    )
    parser.add_argument("--only", action="append", default=[], metavar="OWNER/REPO#N", help="Only this task.")
    parser.add_argument("--times", type=int, default=1, help="Replays of each task, earlier ones included (1).")
    parser.add_argument("--results", default="results.json", help="File to write, or to continue (results.json).")
    parser.add_argument(
        "--enter", choices=[way.name for way in WAYS], help="Way into the root file system (the first that works)."
    )
    parser.add_argument(
        "--python", default="", help="Interpreter for tasks of a slim archive (searched for by version)."
    )
    parser.add_argument("--work", help="Folder for root file systems, removed afterwards (next to the archive).")
    return parser.parse_args(arguments)


def say(line: str) -> None:
    """Print a line of progress."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()


def _replayed(
    contents: Contents, tasks: list[dict[str, Any]], options: argparse.Namespace, script: Callable[[str], bytes]
) -> dict[str, Any]:
    """Make the replays of *tasks* that the file of results lacks; it is written before the first and after each.

    Raises ArchiveRefusedError if that file cannot be continued.
    """
    results: dict[str, Any] = {
        "version": RESULTS_VERSION,
        "archive_sha256": contents.sha256,
        "release": contents.manifest["release"],
        "month": contents.manifest["month"],
        "machine": machine_facts(),
    }
    results["replays"] = earlier_replays(options.results, results)
    made = Counter(each["task_id"] for each in results["replays"])
    left = [(task, number) for task in tasks for number in range(made[task["task_id"]] + 1, options.times + 1)]
    if made:
        say(f"continuing {options.results}, which has {sum(made.values())} replays: {len(left)} left")
    if not left:
        return results
    # a file that cannot be written would lose hours of work
    write_results(options.results, results)
    work = tempfile.mkdtemp(prefix="replay-", dir=options.work or contents.folder)
    try:
        # root's sessions run as another user
        os.chmod(work, 0o755)  # noqa: S103
        tools = os.path.join(work, "tools")
        lay_tools(tools, contents, script)
        roots: dict[str, SessionMachine] = {}
        for task, number in left:
            name = f"{task['item']} ({number} of {options.times})" if options.times > 1 else task["item"]
            results["replays"].append(_one(contents, task, options, work, roots, name))
            write_results(options.results, results)
    finally:
        remove_tree(work)
    return results


def _one(
    contents: Contents,
    task: dict[str, Any],
    options: argparse.Namespace,
    work: str,
    roots: dict[str, SessionMachine],
    name: str,
) -> dict[str, Any]:
    """Measure one task once: its identity, and its samples or why there are none."""
    lines: list[str] = []

    def note(line: str) -> None:
        lines.append(line)
        say(f"{name}: {line}")

    if task["image"] not in roots:
        for machine in roots.values():
            remove_tree(machine.root.folder)
        roots.clear()
        roots[task["image"]] = _entered(contents, task, options, work, note)
    machine = roots[task["image"]]._replace(limits=task["limits"])
    told: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "task_id": task["task_id"],
        **{key: task[key] for key in IDENTITY},
        "seed": random.SystemRandom().randrange(1, 2**31),
        "entered_by": f"{machine.way.name}{', slim' if task['slim'] else ''}",
        "started": _now(),
    }
    folder = os.path.join(work, "arms")
    os.makedirs(folder)
    arms = PackedArms(machine, task, folder, note)
    try:
        told.update(_measured(arms, contents, task, told["seed"], note))
    except TaskFailedError as failure:
        note(f"could not be run: {failure}")
        told.update({"outcome": failure.kind, "message": str(failure), "failure_log": failure.log[-LOG_CHARACTERS:]})
    finally:
        arms.close()
        remove_tree(folder)
    return {**told, "ended": _now(), "log": "\n".join(lines)[-LOG_CHARACTERS:]}


def _measured(
    arms: PackedArms, contents: Contents, task: dict[str, Any], seed: int, note: Callable[[str], object]
) -> dict[str, Any]:
    arms.prepare(contents.read(task["patch"]))
    budget = ReplayBudget(task["plan"]["max_seconds"] * PATIENCE)
    surveys = survey(arms, task, budget, note)
    core = arms.by_name[BASE].idlest_core()
    sampler = RoundSampler(arms, task, surveys, budget, seed, core, note)
    sampler.take()
    seconds = budget.spent
    returned = arms.returned(float(task["plan"]["max_survey_seconds"]))
    counting, share = contents.manifest["counting"], task["plan"]["instructions_share"]
    return {
        "outcome": "measured",
        "machine": sampler.machine,
        "rounds": sampler.rounds,
        "cut_short": sampler.cut_short,
        "seconds": seconds,
        "surveys": surveys,
        "samples": sampler.samples,
        "conditions": sampler.conditions,
        "instructions": arms.count(surveys, counting, share * seconds / 2) if counting and share else {},
        "returned": returned,
    }


def _entered(
    contents: Contents, task: dict[str, Any], options: argparse.Namespace, work: str, note: Callable[[str], object]
) -> SessionMachine:
    """Unpack the task's image, and find a way into it; raises ArchiveRefusedError without one."""
    slim = task["slim"]
    layers, variables = image_of(contents, slim["digest"] if slim else task["image"])
    root = RootFileSystem(os.path.join(work, f"root-{task['image'][-12:]}"))
    root.unpack(contents, layers, note)
    named = [way for way in WAYS if options.enter in (None, way.name) and (way.name in SLIM_WAYS or not slim)]
    ways = [way for way in named if installed(way)]
    binds = lay_machine(root.folder, find_interpreter(slim["python"], options.python)) if slim else ()
    tools = os.path.join(work, "tools")
    machine, reasons = enter(SessionMachine(root, variables, WAYS[0], tools, task["limits"], binds), ways)
    for reason in reasons:
        note(f"no entry by {reason}")
    note(f"entered by {machine.way.name}")
    return machine


def lay_tools(folder: str, contents: Contents, script: Callable[[str], bytes]) -> None:
    """Lay out what sessions need besides the image."""
    os.makedirs(f"{folder}/harness")
    for name in SCRIPTS:
        with open(f"{folder}/{name}", "wb") as file:
            file.write(script(name))
    of_harness = ["fc_harness.pyz", *(name for name in contents.manifest["files"] if name.startswith("counting/"))]
    for name in of_harness:
        with open(f"{folder}/harness/{os.path.basename(name)}", "wb") as file:
            file.write(contents.read(name))
    user, group = session_user()
    with open(f"{folder}/passwd", "w") as file:
        file.write(f"root:x:0:0::/root:/bin/sh\nformulacode:x:{user}:{group}::{HOME}:/bin/sh\n")
        if user != IMAGE_USER:
            file.write(f"image:x:{IMAGE_USER}:{IMAGE_USER}::{HOME}:/bin/sh\n")
    for place, _, names in os.walk(folder):
        os.chmod(place, 0o755)  # noqa: S103
        for name in names:
            os.chmod(os.path.join(place, name), 0o755)  # noqa: S103


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
