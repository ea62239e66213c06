"""Result of the trial of one pull request, stored in a file of JSON lines, and the table of all of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median

from found_workloads import FoundWorkloads
from pydantic import TypeAdapter

from formulacode_dagster.models.release import ReplayVerdict

DONE = "timed"
NOT_KEPT = ("log", "laid", "found")
"""Fields of a trial in the file: too long for a line."""
COMPILED = -1
"""In place of a number of benchmarks: the change is compiled, and no build with coverage shows its callers."""


class Condition(StrEnum):
    """Differences between a replay and the original measurement, besides chance."""

    SAME = "the same"
    ONE_CORE = "one core"
    BUSY = "beside a busy process"


CONDITIONS = tuple(Condition)
"""Conditions of the first replay of a task, the second and the third; a fourth has that of the first."""


@dataclass(frozen=True)
class SourceTrial:
    """Contribution of one source of workloads for one pull request."""

    seconds: float = 0.0
    """Seconds of searching for them and of running them once."""
    timed: int = 0
    aimed: int = 0
    """As in a trial: the maximum over its sets of files."""

    def plus(self, seconds: float, result: Trial | None) -> SourceTrial:
        """The same combined with that of another set of files, if there was one, in *seconds*."""
        best = max((self.timed, self.aimed), (result.timed, result.aimed) if result else (0, 0), key=_by_aim)
        return SourceTrial(round(self.seconds + seconds, 1), *best)


def _by_aim(timed_and_aimed: tuple[int, int]) -> tuple[bool, bool, int]:
    timed, aimed = timed_and_aimed
    return aimed > 0, aimed != 0, timed


@dataclass(frozen=True)
class Trial:
    """How far one pull request came: the stage it ended in, and why."""

    item: str
    merged: str = ""
    stage: str = ""
    reason: str = ""
    detail: str = ""
    log: str = field(default="", repr=False)
    python: str = ""
    plan: str = ""
    """Tag of the first plan's image and its suite: the trial need not be made again while both are the same."""
    attempts: int = 0
    way: tuple[str, ...] = ()
    """Where each attempt at the image ended, preceded by the rule whose fix it was the first to have."""
    plan_seconds: float = 0.0
    image_seconds: float = 0.0
    """Seconds of all attempts, verification included."""
    build_seconds: float = 0.0
    verification_seconds: float = 0.0
    image_bytes: int = 0
    suite: str = ""
    source: str = ""
    """Source of its workloads, among those tried here: no comments are read, and no model is used."""
    discovered: int = 0
    timed: int = 0
    """Benchmarks that gave a time until enough was known; there may be more."""
    aimed: int = 0
    """Number of them that ran a changed function, or COMPILED."""
    workloads: tuple[str, ...] = ()
    """Names of the first of those."""
    laid: str = field(default="", repr=False)
    """Their modules, as overlaid on the checkout."""
    found: FoundWorkloads | None = field(default=None, repr=False)
    """The same workloads with all files of their suite."""
    verdict: str = ""
    """Cores of the measurement."""
    measured: str = ""
    """The speed-up, its interval, and over how much."""
    rounds: int = 0
    unit: str = ""
    """Randomization unit: `process`, or `build` if the change is compiled."""
    tests: str = ""
    """For faster ones: whether its tests pass, or why that is unknown."""
    tested: str = ""
    replays: tuple[str, ...] = ()
    """For faster and correct ones: each repetition, `confirmed` or another outcome.

    The conditions are CONDITIONS, in turn.
    """
    measuring_seconds: float = 0.0
    """Seconds of finding workloads and of all rounds."""
    testing_seconds: float | None = None
    """Seconds of the tests of faster ones; without it, the seconds of measuring include those too."""
    measuring_cpu_seconds: float | None = None
    """Seconds that all cores worked while it was measured, those of other programs too; None if it was not recorded."""
    seconds: float = 0.0
    """Seconds of everything, replays included, however it ended."""
    sources: Mapping[str, SourceTrial] = field(default_factory=dict)
    """Each source that was tried."""

    @property
    def is_built(self) -> bool:
        """Return True if its image was built and verified."""
        return self.stage in ("timing", DONE)

    @property
    def is_timed(self) -> bool:
        """Return True if it was built, verified, and at least one benchmark gave a time."""
        return self.stage == DONE


class Results:
    """The trials of a file, the last of each pull request; without a file, those of this run.

    A last line without an end was cut off with the run that wrote it: it is taken away.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._trials: dict[str, Trial] = {}
        if path is not None and path.exists():
            kept = TypeAdapter(Trial)
            text = path.read_text("utf-8", errors="replace")
            whole = text[: text.rfind("\n") + 1]
            if whole != text:
                path.write_text(whole, "utf-8")
            for line in whole.splitlines():
                trial = kept.validate_json(line)
                self._trials[trial.item] = trial

    def timed(self, item: str, plan: str) -> Trial | None:
        """Return the successful trial of *item* with the same *plan*, or replays of it: failures are tried again."""
        trial = self._trials.get(item)
        is_enough = trial is not None and f"{trial.plan}, ".startswith(f"{plan}, ")
        return trial if trial is not None and trial.is_timed and is_enough else None

    def add(self, trial: Trial) -> None:
        """Store *trial*, in the file at once."""
        self._trials[trial.item] = trial
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            kept = {name: value for name, value in asdict(trial).items() if name not in NOT_KEPT}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(kept) + "\n")

    def of(self, items: Sequence[str]) -> list[Trial]:
        """The existing trials of *items*, in that order."""
        return [self._trials[item] for item in items if item in self._trials]


def _cells(trial: Trial) -> Mapping[str, object]:
    """Columns of the table for *trial*."""
    return {
        "pull request": trial.item,
        "merged": trial.merged,
        "Python": trial.python,
        "attempts": trial.attempts,
        "way": " → ".join(trial.way),
        "ended in": trial.stage,
        "why": f"{trial.reason} {trial.detail[:160]}".strip(),
        "plan s": round(trial.plan_seconds, 1),
        "image s": round(trial.image_seconds, 1),
        "build s": round(trial.build_seconds, 1),
        "verify s": round(trial.verification_seconds, 1),
        "image bytes": trial.image_bytes,
        "suite": trial.suite,
        "source": trial.source,
        "found": trial.discovered,
        "timed": trial.timed,
        "aimed": _told(trial.aimed),
        "verdict": trial.verdict,
        "speed-up": trial.measured,
        "tests": f"{trial.tests} {trial.tested[:120]}".strip(),
        "replays": ", ".join(trial.replays),
        "measuring min": round(trial.measuring_seconds / 60, 1),
        "measuring CPU s": "" if trial.measuring_cpu_seconds is None else trial.measuring_cpu_seconds,
        "tests min": round((trial.testing_seconds or 0.0) / 60, 1),
        "minutes": round(trial.seconds / 60, 1),
        "each source": ", ".join(
            f"{name} {_told(each.aimed)} ({each.seconds / 60:.1f} min)" for name, each in trial.sources.items()
        ),
    }


def _told(aimed: int) -> str:
    return "unknown" if aimed == COMPILED else str(aimed)


def table(trials: Sequence[Trial]) -> Iterator[str]:
    """One row per pull request, in Markdown."""
    columns = list(_cells(Trial("")))
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for trial in trials:
        cells = (str(cell).replace("|", "/").replace("\n", " ") for cell in _cells(trial).values())
        yield f"| {' | '.join(cells)} |"


def figures(trials: Sequence[Trial], apart: Mapping[str, str]) -> dict[str, object]:
    """The totals; pull requests of the repositories *apart*, each with its reason, are named and not counted."""
    counted = [trial for trial in trials if trial.item.partition("#")[0] not in apart]
    timed = [trial for trial in counted if trial.is_timed]
    built = [trial for trial in counted if trial.is_built]
    measured = [trial for trial in timed if trial.verdict]
    return {
        "pull_requests": len(counted),
        "repositories": len({trial.item.partition("#")[0] for trial in counted}),
        "built": len(built),
        "aimed_of_built": round(sum(trial.aimed > 0 for trial in built) / len(built), 3) if built else 0.0,
        "verdicts": dict(Counter(trial.verdict for trial in measured)),
        "tests_of_what_is_faster": dict(Counter(trial.tests for trial in measured if trial.tests)),
        "replays": {
            condition: dict(Counter(replay for trial in measured for replay in trial.replays[place :: len(CONDITIONS)]))
            for place, condition in enumerate(CONDITIONS)
        },
        "tasks_confirmed_by_all_replays": dict(
            Counter(set(trial.replays) == {ReplayVerdict.CONFIRMED} for trial in measured if trial.replays)
        ),
        "median_measuring_minutes": {
            unit: round(median(trial.measuring_seconds for trial in measured if trial.unit == unit) / 60, 1)
            for unit in sorted({trial.unit for trial in measured})
        },
        "built_and_timed": len(timed),
        "share_timed": round(len(timed) / len(counted), 3) if counted else 0.0,
        "timed_with_a_benchmark_aimed_at_the_change": sum(trial.aimed > 0 for trial in timed),
        "timed_with_an_untraceable_change": sum(trial.aimed == COMPILED for trial in timed),
        "aimed_by_source": dict(Counter(trial.source for trial in timed if trial.aimed > 0)),
        "aimed_by_source_alone": dict(
            Counter(name for trial in timed for name, each in trial.sources.items() if each.aimed > 0)
        ),
        "tried_by_source": dict(Counter(name for trial in timed for name in trial.sources)),
        "minutes_by_source": {name: round(sum(seconds) / 60, 1) for name, seconds in _seconds(timed).items()},
        "minutes_a_pull_request": round(sum(trial.seconds for trial in counted) / 60 / len(counted), 1)
        if counted
        else 0.0,
        "repaired": sum(trial.attempts > 1 for trial in timed),
        "losses": dict(Counter(f"{trial.stage}: {trial.reason}" for trial in counted if not trial.is_timed)),
        "counted_apart": {
            trial.item: f"{trial.stage} {trial.reason}".strip() for trial in trials if trial not in counted
        },
    }


def _seconds(trials: Sequence[Trial]) -> Mapping[str, list[float]]:
    seconds: dict[str, list[float]] = {}
    for trial in trials:
        for name, each in trial.sources.items():
            seconds.setdefault(name, []).append(each.seconds)
    return seconds
