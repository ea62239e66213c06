"""`fc-data sandbox`: a GitHub, a model, a Hub and a registry on localhost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import console


def sandbox(
    repositories: Annotated[
        Path | None, typer.Option(help="Folder of bare repositories owner/name.git.", show_default="the samples")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on, or a name of this machine.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65532, help="First of four ports; 0: those of the last time, or free ones.")
    ] = 0,
) -> None:
    """Serve a GitHub, a model, a Hub and a registry on localhost until interrupted."""
    from sandbox.session import serve_until_interrupted

    serve_until_interrupted(console, repositories, host, port)
