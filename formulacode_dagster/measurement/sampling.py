"""Taking the samples: interleaved rounds of fresh processes over the three sides."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import BenchmarkFailure, Sample, Side
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.suites.remote import NotTimed, Remote

from .plan import SamplingPlan, interleave
from .relevance import Candidate

Note = Callable[[str], None]


@dataclass(frozen=True)
class Samples:
    """The samples of each benchmark, those that could not be timed, and those there was no time for."""

    by_benchmark: dict[str, list[Sample]]
    failures: tuple[BenchmarkFailure, ...]
    dropped: tuple[str, ...]


def take_samples(
    remotes: Mapping[Side, Remote], candidates: Sequence[Candidate], *, plan: SamplingPlan, note: Note
) -> Samples:
    """Time every candidate on every side in each round.

    A round before the first is thrown away: it fills caches, and tells what a round costs, so that benchmarks which do
    not fit into the plan's time are dropped before rather than cut short. A benchmark that fails on one side is dropped
    on all. Raises ItemFailure (`oracle_breaks_benchmarks`) when it fails with the oracle alone.
    """
    generator = random.Random(plan.seed)  # noqa: S311 - spreads hash seeds, protects nothing
    failures: dict[str, BenchmarkFailure] = {}
    seconds: dict[str, float] = {candidate.name: 0.0 for candidate in candidates}
    samples: dict[str, list[Sample]] = {candidate.name: [] for candidate in candidates}

    def one_round(number: int, order: Iterable[tuple[Candidate, Side]]) -> None:
        # One hash seed for the three sides: what it moves, it moves alike, and it differs between rounds.
        hash_seed = generator.randrange(1, 2**32)
        for position, (candidate, side) in enumerate(order):
            if candidate.name in failures:
                continue
            timed, spent = remotes[side].time(
                candidate.by_side[side],
                isolate=candidate.isolate,
                seconds=plan.seconds_per_sample,
                hash_seed=hash_seed,
            )
            seconds[candidate.name] += spent
            if isinstance(timed, NotTimed):
                failures[candidate.name] = BenchmarkFailure(
                    benchmark=candidate.name, side=side, kind=timed.kind, message=timed.message
                )
                note(f"{candidate.name} failed on the {side}: {timed.kind}")
            elif number >= 0:
                samples[candidate.name].append(
                    Sample(side=side, round=number, position=position, seconds=timed.seconds, calls=timed.calls)
                )

    note(f"warming up {len(candidates)} benchmarks")
    for order in interleave(candidates, rounds=1, seed=plan.seed):
        one_round(-1, order)
    fitting = _fitting([c for c in candidates if c.name not in failures], seconds, plan)
    dropped = [c.name for c in candidates if c.name not in failures and c not in fitting]
    for number, order in enumerate(interleave(fitting, rounds=plan.rounds, seed=plan.seed + 1)):
        note(f"round {number + 1} of {plan.rounds}")
        one_round(number, order)
    _raise_if_oracle_breaks(failures.values())
    timed_names = [c.name for c in fitting if c.name not in failures]
    return Samples({name: samples[name] for name in timed_names}, tuple(failures.values()), tuple(dropped))


def _fitting(candidates: Sequence[Candidate], seconds: Mapping[str, float], plan: SamplingPlan) -> list[Candidate]:
    """The candidates, in order, whose rounds fit into the plan's time by the cost of the first; at least one."""
    remaining = plan.max_seconds
    fitting = []
    for candidate in candidates:
        cost = seconds[candidate.name] * plan.rounds
        if cost <= remaining:
            fitting.append(candidate)
            remaining -= cost
    if not fitting and candidates:
        return [min(candidates, key=lambda candidate: seconds[candidate.name])]
    return fitting


def _raise_if_oracle_breaks(failures: Iterable[BenchmarkFailure]) -> None:
    broken = [failure for failure in failures if failure.side is Side.ORACLE and failure.kind != "skipped"]
    if broken:
        raise ItemFailure(
            FailureKind.ORACLE_BREAKS_BENCHMARKS,
            f"{len(broken)} benchmarks ran with the author's patch once and then failed",
            why=f"{broken[0].benchmark}: {broken[0].kind}",
            remedy="Look at the message: a benchmark that fails now and then cannot be measured",
            log_tail=broken[0].message,
        )
