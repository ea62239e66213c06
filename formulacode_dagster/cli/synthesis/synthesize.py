"""`fc-data synthesize`: the image of one pull request, rung by rung, an agent last."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName

from ..console import console, table_of


def synthesize(
    item: Annotated[str, typer.Argument(help="owner/repo#123, whose environment is planned.")],
    agent: Annotated[
        str,
        typer.Option(help="none, auto, claude, codex, gemini or command.", show_default="FC_AGENT"),
    ] = "",
    context: Annotated[
        Path | None, typer.Option(help="A folder that is tried first.", show_default="what is stored")
    ] = None,
    max_attempts: Annotated[int, typer.Option(min=1, help="Limit on runs of the agent.")] = 3,
    force: Annotated[bool, typer.Option("--force", help="Though it is built already.", show_default="no")] = False,
) -> None:
    """Build one image: by stored recipes, by rules, then by an agent; status 1 if none succeeds."""
    from formulacode_dagster.building.synthesis.docker_context import DockerContext
    from formulacode_dagster.library.synthesizer import Synthesizer

    name = ItemName.parse(item)
    if name.number is None:
        raise ConfigurationError(f"{item} is a repository", remedy="Write a pull request as owner/repo#123")
    owner, _, repo = name.repository.partition("/")
    base = DockerContext.from_directory(context) if context else None
    synthesizer = Synthesizer(max_attempts=max_attempts, agent=agent)
    with console.status(f"building {name}"):
        made = synthesizer.run(owner, repo, name.number, base_context=base, force=force)
    table = table_of("attempt", "made of", "rule", "ended in", "tokens", "dollars", "seconds")
    for attempt in synthesizer.trace:
        tokens = attempt.tokens_in + attempt.tokens_out
        words = (str(attempt.attempt), attempt.rung.value, escape(attempt.rule), attempt.stage)
        table.add_row(*words, f"{tokens:,}", f"{attempt.dollars:.2f}", f"{attempt.seconds:.1f}")
    if synthesizer.trace:
        console.print(table)
    if made is None or made.stored is None:
        console.print(f"{name}: [red]no image passes[/]; `fc-data why {name}` shows more", highlight=False)
        raise typer.Exit(1)
    stored = made.stored
    console.print(
        f"{name}: [green]passes[/], {stored.provenance.value}, context {stored.context_id[:8]}", highlight=False
    )
