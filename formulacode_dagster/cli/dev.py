"""`fc-data dev`: the Dagster UI."""

from __future__ import annotations

from typing import Annotated

import typer

from .console import console


def dev(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the UI.")] = 3000,
) -> None:
    """Serve the Dagster UI and its daemon over the same instance; with the sandbox if the demo was run."""
    from .serve import serve_ui

    raise typer.Exit(serve_ui(console, host, port))
