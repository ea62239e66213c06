"""`fc-data metrics`: the output of `fc-data operations`, for Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer

from formulacode_dagster.cli.console import console


def metrics(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port that Prometheus scrapes.")] = 9464,
) -> None:
    """Serve queue, spending, disks and mirrors as metrics of Prometheus until it is stopped."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.operating.monitoring.metrics import metrics_server
    from formulacode_dagster.orchestration.operations import runs_now
    from formulacode_dagster.orchestration.runs import dagster_instance
    from resources.watching import operations_now

    with (
        database() as store,
        dagster_instance() as instance,
        metrics_server(host, port, lambda: operations_now(store, runs_now(instance))) as server,
    ):
        console.print(f"metrics: http://{host}:{port}/metrics (Ctrl-C stops it)", highlight=False)
        server.serve_forever()
