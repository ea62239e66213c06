"""`fc-data profile`: where the time of a task goes before and after its patch, as flame graphs."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from formulacode_dagster.cli.console import console, table_of
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName

if TYPE_CHECKING:
    from formulacode_dagster.models.measurement import TaskProfile


def profile(
    item: Annotated[str, typer.Argument(help="owner/repo#123, a task of a month that was run.")],
    page: Annotated[
        Path | None, typer.Option(help="HTML file of the flame graphs.", dir_okay=False, show_default="none")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="Own time of each benchmark that is looked at.")] = 0.5,
) -> None:
    """Sample in which stacks base and patch of a task spend their time; it is kept, and shown in the month's report."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.measuring.measurement.procedure import Procedure
    from formulacode_dagster.measuring.measurement.stacks import profile_task
    from formulacode_dagster.operating.files.atomic import disk_errors, write_atomically
    from formulacode_dagster.operating.store.artifacts import IMAGES, MEASUREMENTS, PROFILES
    from formulacode_dagster.operating.store.blobs import get_blob
    from formulacode_dagster.operating.store.lookup import find_pull_request
    from formulacode_dagster.releasing.reporting.flames import flames_page
    from resources.containers import ContainersResource

    name = ItemName.parse(item)
    with database() as store:
        with store.transaction() as connection:
            stored = find_pull_request(connection, name.repository, name.number) if name.number else None
            key = (stored.facts.repository_id, stored.facts.number) if stored else (0, 0)
            month = stored.facts.month if stored else ""
            image = IMAGES.read_keys(connection, month, [key]).get(key)
            measured = MEASUREMENTS.read_keys(connection, month, [key]).get(key)
            if stored is None or stored.patch is None or image is None or not (measured and measured.procedure_sha256):
                raise ConfigurationError(
                    f"{name} is not a task that can be profiled", remedy=f"`fc-data why {name}` shows how far it got"
                )
            procedure = Procedure.parse(get_blob(connection, measured.procedure_sha256).decode(), stored.facts.item)
        engine, why = ContainersResource().engine_for_repositories([name.repository], [image.engine])
        console.print(why, highlight=False)
        with console.status(f"profiling {name}"):
            made = profile_task(engine, image, procedure, patch=stored.patch, run_id=uuid.uuid4().hex, seconds=seconds)
        with store.transaction() as connection:
            PROFILES.save(connection, [made])
    _show(made)
    if page is not None:
        with disk_errors(str(page)):
            write_atomically(page, flames_page(stored.facts.item, made).encode())
        console.print(f"{page} has the flame graphs", markup=False, highlight=False)


def _show(made: TaskProfile) -> None:
    from formulacode_dagster.models.measurement import Arm
    from formulacode_dagster.releasing.reporting.flames import hot_frames

    for benchmark, by_arm in made.stacks.items():
        table = table_of("own ms a call", "base", "oracle")
        for frame, own in hot_frames(by_arm, 5):
            figures = [f"{1000 * own[arm]:.3g}" if arm in own else "–" for arm in (Arm.BASE, Arm.ORACLE)]
            table.add_row(escape(f"{frame.function} ({frame.file}:{frame.line})"), *figures)
        console.print(benchmark, markup=False, highlight=False)
        console.print(table)
