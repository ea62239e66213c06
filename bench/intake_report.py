"""Results of the contenders of `bench/intake.py`: figures, a table, and the missed targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from intake_world import World, WorldSize

from sandbox.github import Limits

MOST_POINTS = 5.0
MOST_REST = 1.0
LEAST_SHARE = 0.6
UNSTEADY_SECONDS = 10.0
"""The rate is read after the burst that a pause allows."""


class Contender(StrEnum):
    """The contenders."""

    OURS = "ours"
    BASELINE = "baseline"


@dataclass(frozen=True)
class Outcome:
    """Results of one contender. Pull requests of the vanished repository are not expected."""

    expected: int
    found: int
    strangers: int
    """Not merged in the month, or in no repository of the world."""
    wrong: int
    """Found, with a wrong fact."""
    short: int
    """Repositories that lack pull requests without being named as failed."""
    failures: dict[str, str]
    points: int
    rest: int
    requests: int
    limit_hits: int
    broken: int
    seconds: float
    waited: float
    real_seconds: float
    peak_mb: float
    diffs_missing: int = 0

    @property
    def completeness(self) -> float:
        """Percent of the expected ones."""
        return 100 * self.found / self.expected

    def per_hundred(self, amount: int) -> float:
        """*amount* for every 100 pull requests found."""
        return 100 * amount / max(1, self.found)


def judged(contender: Contender, world: World, made: dict[str, Any], books: dict[str, Any]) -> Outcome:
    """Result for *made*, from the *world* and the sandbox's *books*."""
    told = _of_ours(world, made) if contender is Contender.OURS else made["pulls"]
    known = {repository.name: repository for repository in world.repositories}
    found = strangers = wrong = short = 0
    for name, pulls in told.items():
        truth = known[name].pulls if name in known and not known[name].vanished else {}
        for number, facts in pulls.items():
            true = truth.get(int(number))
            found += true is not None
            strangers += true is None
            wrong += true is not None and facts != {key: true[key] for key in facts}
    failures = dict(made.get("failures", {}))
    for repository in world.repositories:
        missing = set(repository.pulls) - {int(number) for number in told.get(repository.name, {})}
        short += bool(missing) and repository.name not in failures
    put_forward = made.get("waited", 0.0)
    waited = sum(resource["waited_seconds"] for resource in made.get("usage", ())) + put_forward
    return Outcome(
        expected=world.expected,
        found=found,
        strangers=strangers,
        wrong=wrong,
        short=short,
        failures=failures,
        points=books["points"].get("graphql", 0),
        rest=sum(count for name, count in books["endpoints"].items() if name.startswith("GET ")),
        requests=books["total"],
        limit_hits=sum(books["limit_hits"].values()),
        broken=sum(books["faults"].values()),
        seconds=made["seconds"],
        waited=waited,
        real_seconds=made["seconds"] + put_forward,
        peak_mb=made["peak_mb"],
        diffs_missing=made.get("diffs_missing", 0),
    )


def _of_ours(world: World, made: dict[str, Any]) -> dict[str, dict[int, dict[str, Any]]]:
    """By the name at discovery; rows under the new name are that repository's."""
    first = {repository.name_now: repository.name for repository in world.repositories}
    told: dict[str, dict[int, dict[str, Any]]] = {}
    for rows in made["pulls"].values():
        for row in rows:
            facts = {
                "title": row["title"],
                "merged_at": int(datetime.fromisoformat(row["merged_at"]).timestamp()),
                "labels": sorted(row["labels"]),
                "issues": sorted(issue["number"] for issue in row["linked_issues"]),
                "changed_files": row["changed_files"],
            }
            told.setdefault(first.get(row["repository"], row["repository"]), {})[row["number"]] = facts
    return told


@dataclass(frozen=True)
class Report:
    """Everything that one run of the bench found out."""

    size: WorldSize
    ours: Outcome
    baseline: Outcome
    rate: dict[str, Any]
    patches: dict[str, Any]
    settings: dict[str, float] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """Share of the rate that the ceilings allow, which was kept up; None when it was not measured, or read once."""
        if not self.rate or self.rate["steps"][0][0] == self.rate["steps"][-1][0]:
            return None
        steps = self.rate["steps"]
        begin = steps[0][0] + min(UNSTEADY_SECONDS, (steps[-1][0] - steps[0][0]) / 5)
        steady = [step for step in steps if step[0] >= begin]
        # a machine with much else to do reads the rate once in seconds
        (start, before), (end, after) = steady[0] if len(steady) > 1 else steps[0], steps[-1]
        limits = Limits()
        allowed = (limits.graphql_points or 0) / limits.secondary_seconds
        return float((after - before) / (end - start) / allowed)

    def missed(self) -> list[str]:
        """The targets that were not reached, in words."""
        return [words for words, reached in self._targets() if not reached]

    def _targets(self) -> Iterator[tuple[str, bool]]:
        ours = self.ours
        yield "completeness 100.000 %", ours.found == ours.expected and not ours.strangers
        yield "everything told of them true", ours.wrong == 0
        yield "no repository short, the vanished one failed by name", ours.short == 0 and len(ours.failures) == 1
        yield f"at most {MOST_POINTS:g} points per 100", ours.per_hundred(ours.points) <= MOST_POINTS
        yield f"at most {MOST_REST:g} REST call per 100", ours.per_hundred(ours.rest) <= MOST_REST
        yield "no limit met", ours.limit_hits == 0 and self.rate.get("limit_hits", 0) == 0
        if self.share is not None:
            yield f"at least {LEAST_SHARE:.0%} of the rate allowed", self.share >= LEAST_SHARE
            yield "the same rows each time", self.rate["differing"] == 0
        yield "patches without a call", self.patches["requests"] == 0

    def table(self) -> str:
        """For people."""
        ours, base = self.ours, self.baseline
        rows: list[tuple[object, ...]] = [
            ("completeness", f"{ours.completeness:.3f} %", f"{base.completeness:.3f} %"),
            ("pull requests found, of", f"{ours.found} of {ours.expected}", f"{base.found} of {base.expected}"),
            ("  not merged in the month", ours.strangers, base.strangers),
            ("  told of wrongly", ours.wrong, base.wrong),
            ("repositories failed, by name", len(ours.failures), len(base.failures)),
            ("repositories short, in silence", ours.short, base.short),
            ("GraphQL points", ours.points, base.points),
            ("  per 100 pull requests", *(f"{side.per_hundred(side.points):.2f}" for side in (ours, base))),
            ("REST calls", ours.rest, base.rest),
            ("  per 100 pull requests", *(f"{side.per_hundred(side.rest):.2f}" for side in (ours, base))),
            ("requests", ours.requests, base.requests),
            ("limits met", ours.limit_hits, base.limit_hits),
            ("answers broken on purpose", ours.broken, base.broken),
            ("diffs lost", 0, base.diffs_missing),
            ("requests a second, at work", *(f"{side.requests / side.seconds:.1f}" for side in (ours, base))),
            ("seconds at work", f"{ours.seconds:.1f}", f"{base.seconds:.1f}"),
            ("seconds waited", f"{ours.waited:.1f}", f"{base.waited:.1f}"),
            ("seconds in all", f"{ours.real_seconds:.1f}", f"{base.real_seconds:.1f}"),
            ("peak memory, MB", f"{ours.peak_mb:.0f}", f"{base.peak_mb:.0f}"),
        ]
        lines = [f"{'':40}{'ours':>18}{'baseline':>18}"]
        lines += [f"{name:40}{mine!s:>18}{theirs!s:>18}" for name, mine, theirs in rows]
        return "\n".join([*lines, "", *self._notes()])

    def _notes(self) -> Iterator[str]:
        world, told = self.size, self.settings
        yield (
            f"{world.repositories} repositories, {world.merged} merged in the month, {world.largest} of them in one; "
            f"{told['broken']:.1%} of answers broken; each answer takes {told['latency']:g} s at least"
        )
        yield (
            "Ours waits in earnest: its waits, summed over concurrent tasks, are part of its seconds at work. The "
            "baseline does not sleep where GitHub tells it to wait: the sandbox's clock is put forward by as long"
        )
        for name, why in self.ours.failures.items():
            yield f"Failed by name, and not counted as missing: {name} ({why[:90]})"
        if self.share is not None:
            rate, length = self.rate, self.rate["steps"][-1][0] - self.rate["steps"][0][0]
            yield (
                f"Rate: {self.share:.0%} of 2,000 GraphQL requests a minute, by the sandbox's books, for {length:.0f} "
                f"s in which {rate['runs']} runs at once, as a backfill has them, took in the month again and again; "
                f"without the burst at the start; {rate['pull_requests']} pull requests, {rate['limit_hits']} limits "
                f"met, {rate['faults']} answers broken, {rate['differing']} repositories differed"
            )
        yield (
            f"Patches: {self.patches['patches']} of {self.patches['repositories']} repositories in "
            f"{self.patches['seconds']:.1f} s, cloning included, and {self.patches['requests']} API requests"
        )
        for words, reached in self._targets():
            yield f"{'reached' if reached else 'MISSED '}  {words}"

    def figures(self) -> dict[str, Any]:
        """For programs."""
        rate = {name: value for name, value in self.rate.items() if name != "steps"}
        return {
            "world": asdict(self.size) | self.settings,
            "ours": asdict(self.ours) | {"completeness": self.ours.completeness},
            "baseline": asdict(self.baseline) | {"completeness": self.baseline.completeness},
            "rate": rate | {"share": self.share} if rate else {},
            "patches": self.patches,
            "missed": self.missed(),
        }
