"""`fc-data assist`: this machine helps runs of months that others lead."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.stopping import stop_request

from .console import console, one_of

Once = Annotated[
    bool, typer.Option("--once", help="End when no free items are left.", show_default="until it is stopped")
]
Stages = Annotated[
    list[Stage] | None,
    typer.Option(
        "--stage",
        metavar="STAGE",
        help=f"Help only with this one; may be repeated. {one_of(Stage)}",
        show_default="all that are shared",
    ),
]
LOOK_SECONDS = 5.0
PAUSES_SECONDS = (60.0, 300.0)
"""Pauses of a stage after its first failed run and the next ones: Docker may be restarting."""
MOST_FAILURES = len(PAUSES_SECONDS) + 1
"""Failed runs of a stage in a row, after which this machine does not try again."""


def assist(once: Once = False, stages: Stages = None) -> None:
    """Help runs of months on other machines, if FC_HELPER_RUNS lets them share their items.

    FC_DATABASE_URL must name their Postgres. Ctrl-C returns unfinished items. It ends when a stage fails three times in
    a row, with a pause of 1 min and one of 5 min between them.
    """
    from formulacode_dagster.operating.runner.claims import shared_stages
    from formulacode_dagster.operating.runner.progress import listening
    from formulacode_dagster.orchestration.runs import assist_stage, dagster_instance

    from .operate import database, show_result
    from .terminal import Bars

    succeeded = True
    failures: Counter[Stage] = Counter()
    paused_until: dict[Stage, float] = {}
    with database() as store, dagster_instance() as instance:
        while True:
            with store.transaction() as connection:
                waiting = [
                    shared
                    for shared in shared_stages(connection)
                    if shared.free and (not stages or shared.stage in stages)
                ]
            for shared in waiting:
                if time.monotonic() < paused_until.get(shared.stage, 0.0):
                    continue
                console.rule(f"[bold]{shared.stage} of {shared.month}")
                started = time.monotonic()
                with Bars(console) as bars, listening(bars):
                    result = assist_stage(instance, shared)
                show_result(console, result, time.monotonic() - started)
                succeeded = succeeded and result.success
                failures[shared.stage] = 0 if result.success else failures[shared.stage] + 1
                if failures[shared.stage] == MOST_FAILURES:
                    raise ConfigurationError(
                        f"this machine cannot help with {shared.stage}: it failed {MOST_FAILURES} times in a row",
                        why="; ".join(result.errors),
                        remedy="Check it by `fc-data preflight`, then assist again, or with other stages by --stage",
                    )
                if not result.success:
                    pause = PAUSES_SECONDS[failures[shared.stage] - 1]
                    paused_until[shared.stage] = time.monotonic() + pause
                    if not once:
                        console.print(f"{shared.stage} failed: trying again in {pause / 60:g} min", highlight=False)
            if once and not (waiting and succeeded):
                break
            stop_request().sleep(LOOK_SECONDS)
    raise typer.Exit(0 if succeeded else 1)
