"""`fc-data verify`: the verifications of one task folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import console


def verify(
    task: Annotated[
        Path, typer.Option(help="Folder of one task: task.toml, with the image's name in it, or with a Dockerfile.")
    ],
) -> None:
    """Verify the image of one task; writes verification_success.json or failure.json; status 1 if one fails."""
    from .task_verification import verify_task

    raise typer.Exit(0 if verify_task(console, task) else 1)
