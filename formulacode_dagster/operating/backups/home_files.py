"""Files of a home that no database has: single files and whole folders, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.files.atomic import PARTIAL, disk_errors

from .manifest import HOME_FOLDER, BackupFile, sha256_of
from .streams import CHUNK, ENCRYPTED, open_compressed, write_compressed

LOCK = ".lock"


def save_home(home: Mapping[str, Path], folder: Path, recipient: str) -> list[BackupFile]:
    """Write what is there of *home*, files and folders by name, to *folder*.

    It is encrypted for *recipient* unless that is empty. Raises OutsideSystemError when the disk is full.
    """
    saved: list[BackupFile] = []
    for name, source in home.items():
        for file in _files_of(source):
            path = folder / HOME_FOLDER / name / file.relative_to(source)
            path = path.with_name(f"{path.name}.zst{ENCRYPTED if recipient else ''}")
            write_compressed(path, _content(file), recipient)
            saved.append(
                BackupFile(path=str(path.relative_to(folder)), bytes=path.stat().st_size, sha256=sha256_of(path))
            )
    return saved


def targets_of(files: Sequence[BackupFile], home: Mapping[str, Path]) -> dict[str, Path]:
    """Return where in *home* each of *files* was, by its path in the backup.

    Raises ConfigurationError if *home* lacks a name, or has a file already.
    """
    targets: dict[str, Path] = {}
    for file in files:
        top, name, *rest = Path(file.path.removesuffix(ENCRYPTED).removesuffix(".zst")).parts
        source = home.get(name)
        if top != HOME_FOLDER or source is None:
            raise ConfigurationError(
                f"{file.path} belongs to nothing that this platform knows",
                remedy="Restore it with the version that made it, or one after it",
            )
        targets[file.path] = source.joinpath(*rest)
    if there := [target for target in targets.values() if target.exists()]:
        raise ConfigurationError(f"{there[0]} is there already", remedy="Restore into an empty FC_HOME")
    return targets


def load_home(targets: Mapping[str, Path], folder: Path, identity: str) -> None:
    """Restore files that `save_home` wrote. Raises OutsideSystemError when the disk is full."""
    for path, target in targets.items():
        with disk_errors(str(target)), open_compressed(folder / path, identity) as content:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                while chunk := content.read(CHUNK):
                    file.write(chunk)


def _files_of(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    return [
        path
        for path in sorted(source.rglob("*"))
        if path.is_file()
        and path.name != LOCK
        and not any(part.startswith(PARTIAL) for part in path.relative_to(source).parts)
    ]


def _content(source: Path) -> Iterator[bytes]:
    with source.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
