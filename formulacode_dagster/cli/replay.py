"""`fc-data replay`: measures a released month again, only from the dataset and the published images.

`pack` and `take` do so on a machine that has neither Docker nor a network.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import RunOptions, Stage

from .console import complain, complaints, console, table_of
from .run import DryRun, Only
from .sandbox import with_demo_services

if TYPE_CHECKING:
    from formulacode_dagster.models.month import Month

app = typer.Typer()

Again = Annotated[
    bool, typer.Option("--resume/--force", help="Replay only tasks not replayed here yet, or every task.")
]
DockerHost = Annotated[
    str | None, typer.Option(help="Docker daemon to measure with, on any machine.", show_default="DOCKER_HOST")
]


PackedMonth = Annotated[str, typer.Option("--month", help="Month, YYYY-MM; of its newest release.")]
ArchiveFile = Annotated[Path, typer.Argument(help="Archive to write, a .tar.")]
PackedOnly = Annotated[
    list[str] | None, typer.Option("--only", help="Pack only these tasks, owner/repo#123.", show_default="all of them")
]
Slim = Annotated[
    bool,
    typer.Option(
        "--slim", help="Leave system and interpreter to the other machine, which must have the same version of Python."
    ),
]
ResultsFile = Annotated[Path, typer.Argument(help="Results that ./replay wrote.")]


@app.callback(invoke_without_command=True)
def replay(
    context: typer.Context,
    month: Annotated[
        str | None,
        typer.Option("--month", help="Month, YYYY-MM; its newest release is replayed.", show_default="none: give one"),
    ] = None,
    docker_host: DockerHost = None,
    only: Only = None,
    resume: Again = True,
    dry_run: DryRun = False,
) -> None:
    """Measure a released month again, only from dataset and images; status 1 if too many tasks could not be run.

    `pack` and `take` do it on a machine without Docker, network and root.
    """
    if context.invoked_subcommand is None:
        names = tuple(str(ItemName.parse(text)) for text in only or ())
        with_demo_services(_replay)(
            month=month, docker_host=docker_host, options=RunOptions(only=names, force=not resume, dry_run=dry_run)
        )


@app.command()
@with_demo_services
def pack(month: PackedMonth, file: ArchiveFile, only: PackedOnly = None, slim: Slim = False) -> None:
    """Write an archive of released tasks that is measured without Docker, network or root.

    It holds the root file systems of their images, each layer once, harness, plans and patches. On the other machine,
    unpack it and run ./replay in it, which writes results.json for `fc-data replay take`.
    """
    from rich.markup import escape

    from formulacode_dagster.releasing.replays.packing import ReleaseToPack
    from formulacode_dagster.releasing.replays.packing import pack as pack_tasks
    from formulacode_dagster.releasing.replays.released import tasks_of
    from resources.hub import HubResource
    from resources.registry import RegistryResource

    from .operate import months_of

    (wanted,) = months_of(month, None, None)
    hub = HubResource()
    released = hub.released(wanted)
    names = {str(ItemName.parse(text)) for text in only or ()}
    tasks = [task for task in tasks_of(released) if not names or task.item in names]
    if unknown := sorted(names - {task.item for task in tasks}):
        raise ConfigurationError(f"{released.tag} has no task {', '.join(unknown)}")
    release = ReleaseToPack(released.tag, wanted.key, hub.destination().name)
    with complaints.status("packing") as status:
        reader = RegistryResource().puller()

        def progress(line: str) -> None:
            status.update(escape(line))

        packed = pack_tasks(release, tasks, file, reader=reader, progress=progress, slim=slim)
    for item, why in packed.left_out.items():
        complain(f"{item} is left out: {why}")
    count = len(packed.manifest.tasks)
    console.print(f"{count} tasks in {file}, {packed.size / 1e6:.0f} MB; manifest {packed.sha256}", highlight=False)
    raise typer.Exit(1 if packed.left_out else 0)


@app.command()
@with_demo_services
def take(file: ResultsFile) -> None:
    """Store the replays in FILE beside ours, each once, judged from their samples by the rule of their rows.

    A replay is refused by name unless its task is in the release, with the same patch, procedure and image.
    """
    from formulacode_dagster.models.month import Month
    from formulacode_dagster.releasing.replays.released import tasks_of
    from formulacode_dagster.releasing.replays.taking import read_results
    from formulacode_dagster.releasing.replays.taking import take as take_replays
    from resources.hub import HubResource

    from .operate import database
    from .terminal import plain

    results = read_results(file.read_bytes(), str(file))
    month, hub = Month.parse(results.month), HubResource()
    released = hub.released(month)
    with database() as store, store.transaction() as connection:
        takings = take_replays(
            connection,
            results,
            list(tasks_of(released)),
            release=released.tag,
            destination=hub.destination().name,
        )
    for why in takings.refused.values():
        complain(why)
    console.print(
        f"{len(takings.taken)} replays taken, {len(takings.known)} known before, {len(takings.refused)} refused; "
        f"on {plain(results.machine.model)}",
        markup=False,
        highlight=False,
    )
    _show(month)
    raise typer.Exit(1 if takings.refused else 0)


def _replay(month: str | None, docker_host: str | None, options: RunOptions) -> None:
    from formulacode_dagster.orchestration.runs import dagster_instance

    from .operate import months_of, run_months

    if docker_host is not None:
        os.environ["DOCKER_HOST"] = docker_host
    months = months_of(month, None, None)
    with dagster_instance() as instance:
        succeeded = run_months(console, instance, months, options, stages=(Stage.REPLAYS,))
    _show(months[0])
    raise typer.Exit(0 if succeeded else 1)


def _show(month: Month) -> None:
    """Every replay of the month that this database knows, a line each; other machines name themselves."""
    from rich.markup import escape

    from formulacode_dagster.operating.store.measurements import replays_of
    from formulacode_dagster.releasing.dataset.validity import validity

    from .operate import database
    from .terminal import plain

    with database() as store, store.transaction() as connection:
        by_task = replays_of(connection, month.key)
    if not by_task:
        return
    table = table_of("task", "replay", "verdict", "speed-up", "95 %", "machine or reason", title="Replays")
    for task_id, made in by_task.items():
        for replayed in made:
            taken = replayed.measurement
            table.add_row(
                escape(plain(task_id)),
                str(replayed.attempt),
                replayed.verdict.value,
                taken.speedup_text if taken else "",
                f"{taken.low:.2f} to {taken.high:.2f}" if taken else "",
                replayed.failure.value if replayed.failure else escape(plain(taken.machine)) if taken else "",
            )
    console.print(table)
    counted = validity({task_id: [replayed.note for replayed in made] for task_id, made in by_task.items()})
    table = table_of(*counted[0].cells, title="Validity")
    for each in counted:
        table.add_row(*(escape(plain(cell)) for cell in each.cells.values()))
    console.print(table)
