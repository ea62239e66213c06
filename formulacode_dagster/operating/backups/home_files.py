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


def absolute_paths(home: Mapping[str, Path]) -> dict[str, str]:
    """Return the paths of *home* by name, as destinations of a dataset have them in their names."""
    return {name: str(path.absolute()) for name, path in home.items()}


def targets_of(files: Sequence[BackupFile], home: Mapping[str, Path], folder: Path, identity: str) -> dict[str, Path]:
    """Return where in *home* each of *files* of the backup in *folder* was, by its path there.

    Files that are there with the same content are left out. Raises ConfigurationError if *home* lacks a name or has
    another file, or as `open_compressed`.
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
    there = {path: target for path, target in targets.items() if target.exists()}
    for path, target in there.items():
        if not _has_content_of(target, folder / path, identity):
            raise ConfigurationError(
                f"{target} is there already, with another content than the backup's",
                remedy="Move it away, or restore into an empty FC_HOME",
            )
    return {path: target for path, target in targets.items() if path not in there}


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


def _has_content_of(target: Path, stored: Path, identity: str) -> bool:
    if not target.is_file():
        return False
    with disk_errors(str(target)), target.open("rb") as file, open_compressed(stored, identity) as content:
        while chunk := content.read(CHUNK):
            if file.read(len(chunk)) != chunk:
                return False
        return not file.read(1)


def _content(source: Path) -> Iterator[bytes]:
    with source.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
