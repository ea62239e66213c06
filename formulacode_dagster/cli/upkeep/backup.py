"""`fc-data backup` and `fc-data restore`: this machine's state, into a folder and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from formulacode_dagster.cli.console import console
from formulacode_dagster.models.errors import ConfigurationError

Into = Annotated[
    Path | None, typer.Argument(help="Folder for the backups.", show_default="FC_BACKUP_DIR, else FC_HOME/backups")
]
Backup = Annotated[
    str, typer.Argument(help="Folder of one backup, with its manifest.json; or s3://bucket/prefix/backup.")
]
Identity = Annotated[
    Path | None,
    typer.Option(help="File with the private key of age, for an encrypted backup.", show_default="it is not"),
]
_LINE_OF_KEY = "AGE-SECRET-KEY-1"


def backup(into: Into = None) -> None:
    """Write a backup, while months run: both databases as of one moment each, own dashboards, and the local dataset."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.orchestration.backups import back_up_all

    with database() as store, console.status("backing up") as status:
        folder, manifest = back_up_all(store, into, progress=lambda name: status.update(f"backing up {name}"))
    encrypted = ", encrypted" if manifest.encrypted else ""
    console.print(
        f"{escape(str(folder))}: {manifest.rows} rows of {len(manifest.tables)} tables, "
        f"{len(manifest.files) + len(manifest.home)} files, {manifest.bytes / 1e6:.1f} MB{encrypted}",
        highlight=False,
    )


def restore(backup: Backup, identity: Identity = None) -> None:
    """Restore a backup into an empty FC_HOME or an empty FC_DATABASE_URL; months then continue where they were.

    Runs that were under way are ended, as canceled. Every file is looked at before anything is written. Nothing else of
    ours may run meanwhile.
    """
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.operating.backups.backup import restore as take_back
    from formulacode_dagster.orchestration.backups import dagster_storage, files_of_home, folder_of
    from formulacode_dagster.orchestration.orphans import end_restored
    from formulacode_dagster.orchestration.runs import dagster_instance
    from resources.settings import read_settings

    settings, private_key = read_settings(), _key(identity) if identity else ""
    if settings.dagster_database_url.get_secret_value():
        with dagster_instance():
            # makes Dagster's tables
            pass
    with (
        folder_of(backup, settings.backup_endpoint) as folder,
        database(migrated=False) as store,
        dagster_storage(settings) as dagster,
        console.status("restoring") as status,
    ):
        manifest = take_back(
            folder,
            store,
            dagster,
            home=files_of_home(settings),
            identity=private_key,
            key=settings.backup_key.get_secret_value(),
            progress=lambda name: status.update(f"restoring {name}"),
        )
    with dagster_instance() as instance:
        ended = end_restored(instance)
    console.print(
        f"restored {manifest.rows} rows of {manifest.made_at:%Y-%m-%d %H:%M} UTC, "
        f"and ended {len(ended)} runs that were under way; "
        "mirrors, builds and images are made again when they are needed",
        highlight=False,
    )


def _key(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read", why=str(error), remedy="Give the file age-keygen wrote"
        ) from error
    key = next((line.strip() for line in lines if line.startswith(_LINE_OF_KEY)), None)
    if key is None:
        raise ConfigurationError(f"{path} contains no private key", remedy=f"It has a line that begins {_LINE_OF_KEY}")
    return key
