"""`fc-data contexts`: additions of images to their declarations; imports and exports them as folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from formulacode_dagster.models.identity import ItemName

from ..console import console, table_of

if TYPE_CHECKING:
    from formulacode_dagster.models.recipe import StoredContext

Context = Annotated[str, typer.Argument(metavar="ID", help="The beginning of its id; `list` shows them.")]
SHOWN = 200

app = typer.Typer(help="Additions of images to their declarations: list, show, export, import.", no_args_is_help=True)


@app.command(name="list")
def list_contexts(
    repository: Annotated[str, typer.Argument(help="owner/repo.", show_default="all of them")] = "",
) -> None:
    """One line for each context, the newest first."""
    from formulacode_dagster.operating.store.attempts import contexts_named

    from ..operate import database

    with database() as store, store.transaction() as connection:
        contexts = contexts_named(connection, repository)
    if not contexts:
        console.print("There is no context: each built image leaves one.")
        return
    table = table_of("id", "pull request", "from", "made by", "held", "fixes")
    for context in contexts[:SHOWN]:
        table.add_row(
            context.context_id[:8],
            f"{context.repository}#{context.number}",
            context.provenance.value,
            escape(context.made_by[:60]),
            _held(context),
            str(len(context.fixes)),
        )
    console.print(table)
    if len(contexts) > SHOWN:
        console.print(f"… and {len(contexts) - SHOWN} older ones: name a repository", highlight=False)


@app.command()
def show(context: Context) -> None:
    """Show every change of one context to the build, and its origin."""
    from formulacode_dagster.building.synthesis.importing import named

    from ..operate import database

    with database() as store, store.transaction() as connection:
        stored = named(connection, context)
    console.print(
        f"{stored.context_id}: {stored.repository}#{stored.number} at {stored.base_sha}, {stored.provenance.value} "
        f"({stored.made_by or 'no additions to the declarations'}), {_held(stored)}",
        markup=False,
        highlight=False,
    )
    table = table_of("rule", "what", "value", title="Fixes")
    for fix in stored.fixes:
        for name, value in fix.model_dump(mode="json", exclude_defaults=True, exclude={"rule"}).items():
            table.add_row(escape(fix.rule), name, escape(str(value)[:400]))
    if stored.fixes:
        console.print(table)


@app.command()
def export(context: Context, folder: Annotated[Path, typer.Argument(help="Created if missing.")]) -> None:
    """Write a context as a folder with a Dockerfile and `docker_build_*.sh`."""
    from formulacode_dagster.building.synthesis.importing import given_out, named

    from ..operate import database

    with database() as store, store.transaction() as connection:
        written = given_out(connection, named(connection, context))
    written.to_directory(folder)
    console.print(f"{folder}: {', '.join(sorted(written.files))}", markup=False, highlight=False)


@app.command(name="import")
def import_context(
    folder: Annotated[Path, typer.Argument(help="Contains a Dockerfile or `docker_build_*.sh`.")],
    item: Annotated[str, typer.Argument(help="owner/repo#123, whose base commit it builds.")],
) -> None:
    """Take a folder in as the recipe of one commit: its next build begins with it, and is verified like every other."""
    from formulacode_dagster.building.synthesis.docker_context import DockerContext
    from formulacode_dagster.building.synthesis.importing import take_in

    from ..operate import database

    context = DockerContext.from_directory(folder)
    with database() as store, store.transaction() as connection:
        stored = take_in(connection, context, ItemName.parse(item))
    console.print(f"{stored.context_id[:8]} is tried first when {item} is built next.", highlight=False)
    for line in context.recipe()[1].left_out:
        console.print(f"left out: {line}", markup=False, highlight=False)


def _held(context: StoredContext) -> str:
    return f"held {context.held_at:%Y-%m-%d}" if context.held_at else "not built yet"
