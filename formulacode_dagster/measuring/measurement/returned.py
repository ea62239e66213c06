"""Return values of the timed benchmarks with and without the author's patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from formulacode_dagster.building.suites.questions import ReturnValue
from formulacode_dagster.building.suites.remote import BenchmarkSelection, HarnessClient, random_hash_seed
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm, Returned

from .choosing import TRIES
from .log import Log
from .plan import SamplingPlan


def compare_returned(
    remotes: Mapping[Arm, HarnessClient], names: Sequence[str], limits: ResourceLimits, plan: SamplingPlan, log: Log
) -> dict[str, Returned]:
    """Call each of the benchmarks *names* once on base and oracle; if they differ, once more on either side.

    The first calls of both sides share a hash seed, and so do the second ones: the order of a set is then the same on
    both unless the patch changes it. Both sides run in parallel if each has a core. If the harness itself fails twice,
    nothing is known of that side: the samples are taken by then and remain valid.
    """

    def values(arm: Arm, only: Sequence[str], hash_seed: int) -> dict[str, ReturnValue]:
        for _ in range(TRIES if only else 0):
            try:
                survey = remotes[arm].survey(
                    lines={},
                    limit=float(limits.benchmark_seconds),
                    budget=plan.max_survey_seconds,
                    selection=BenchmarkSelection(only),
                    results=True,
                    hash_seed=hash_seed,
                )
            except ItemFailure as failure:
                log(f"what benchmarks return on the {arm} cannot be told: {failure}")
                continue
            return {each.name: each.returned for each in survey.benchmarks if each.returned is not None}
        return {}

    def side_by_side(arms: Sequence[Arm], only: Sequence[str]) -> list[dict[str, ReturnValue]]:
        with ThreadPoolExecutor(min(len(arms), remotes[Arm.BASE].core_count)) as pool:
            return list(pool.map(partial(values, only=only, hash_seed=random_hash_seed()), arms))

    log("comparing what benchmarks return")
    base, oracle = side_by_side((Arm.BASE, Arm.ORACLE), names)
    told = {name: first_of(base.get(name), oracle.get(name)) for name in names}
    differing = [name for name, returned in told.items() if returned is Returned.DIFFERENT]
    control, again = side_by_side((Arm.CONTROL, Arm.ORACLE), differing)
    told |= {name: of_two_calls((base[name], control.get(name)), (oracle[name], again.get(name))) for name in differing}
    for name, returned in told.items():
        types = " and ".join(value.type for side in (base, oracle) if (value := side.get(name)))
        log.keep(f"{name} returns {types or 'nothing that was seen'}: {returned}")
    return told


def of_two_calls(
    base: tuple[ReturnValue | None, ReturnValue | None], oracle: tuple[ReturnValue | None, ReturnValue | None]
) -> Returned:
    """Return the comparison of two calls per side: a difference counts only if each side agrees with itself."""
    told = first_of(base[0], oracle[0])
    if told is Returned.DIFFERENT and any(
        first is None or second is None or not first.equals(second) for first, second in (base, oracle)
    ):
        return Returned.UNSTABLE
    return told


def first_of(base: ReturnValue | None, oracle: ReturnValue | None) -> Returned:
    """Return the comparison of one call per side; None means unknown."""
    if base is None or oracle is None or not (base.form and oracle.form) or (base.is_none and oracle.is_none):
        return Returned.NOT_COMPARABLE
    return Returned.SAME if base.equals(oracle) else Returned.DIFFERENT
