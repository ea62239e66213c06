"""`statement_hinted`: the default statement, with the results of running the base."""

from __future__ import annotations

import re
from dataclasses import dataclass

from formulacode_dagster.models.measurement import Measurement, Source
from formulacode_dagster.models.problem import Leak, LeakKind, ProblemStatement, Variant
from formulacode_dagster.models.pull_request import MergedPullRequest

from .base_run import BaseRun, base_run_of
from .gates import Gates
from .second_look import look_at
from .statements import secrets_of
from .trails import Trails
from .writing import write_hinted


@dataclass(frozen=True)
class Hinted:
    """The text with its writer's view; no text if the base was not profiled, or *leaks* were found in it."""

    text: str | None = None
    run: BaseRun | None = None
    leaks: tuple[Leak, ...] = ()


def state_hinted(
    statement: ProblemStatement, measurement: Measurement, facts: MergedPullRequest, patch: bytes
) -> Hinted:
    """*statement* with the sources of the workloads, their times at the base and the functions these go to.

    Equal parts give an equal text. It passes the gates of the others and the check of `nothing_leaks`, or there is
    none. A name that the base itself has does not count as introduced by the patch.
    """
    run = base_run_of(measurement, Trails(facts.repository, facts.number))
    if run is None:
        return Hinted()
    text = write_hinted(statement.final_md, run)
    # a suite that came with the pull request or after it may speak of the solution
    from_base = list(run.sources.values()) if measurement.provenance.source is Source.BASE_SUITE else []
    functions = [f"{hot.file} {hot.function}" for workload in run.workloads for hot in workload.functions]
    known = frozenset(re.findall(r"\w+", "\n".join([*from_base, *functions]))) | set(statement.names_at_base)
    secrets = secrets_of(facts, patch=patch, walk=statement.walk, commits=statement.commits, names_at_base=known)
    leaks = Gates(secrets, earlier=[statement.final_md, *from_base]).judge(text, Variant.HINTED)
    knowing = statement.model_copy(update={"names_at_base": tuple(sorted(known))})
    again = look_at({Variant.HINTED: text}, knowing, facts, patch)
    # a profile says where the time of the base goes, and whoever runs the base sees it too
    told = tuple(dict.fromkeys(leak for leak in (*leaks, *again) if leak.kind is not LeakKind.LOCATION))
    return Hinted(None if told else text, run, told)
