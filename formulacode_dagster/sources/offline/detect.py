"""Detection of an offline source: files, a folder of files, or a folder of mirrors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.intake import IntakeSource

from .completion import MirrorCompletion
from .files import Files, FilesSource
from .mirrors import MirrorsSource, mirrors_in
from .schema import COUNTS, FORMATS, PULL_REQUESTS, REPOSITORIES, SCHEMAS
from .side_file import SIDE_FILE

_REMEDY = (
    "Name a folder with owner/name.git mirrors, one with repositories and pull_requests as .parquet, .csv or .jsonl,"
    " or such files, comma separated; `fc-data offline schema` lists their columns"
)


@dataclass(frozen=True)
class OfflineSource:
    """A source that was found: a folder of mirrors, or files."""

    mirrors: Path | None = None
    files: Files | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The folder, or the files."""
        return self.files.paths if self.files is not None else (self.mirrors or Path(),)

    def __str__(self) -> str:
        if self.mirrors is not None:
            return f"the folder of mirrors {self.mirrors}"
        return f"files: {self.files}"

    def state(self) -> str:
        """Return a short text that changes with the source: files by size and time, mirrors by their refs."""
        paths = self.files.paths if self.files is not None else ()
        seen = [_stat(path) for path in paths]
        if self.mirrors is not None:
            seen += [ref for path in mirrors_in(self.mirrors).values() for ref in _refs(path)]
            seen.append(_stat(self.mirrors / SIDE_FILE))
        return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]

    def open(self, completion: MirrorCompletion) -> IntakeSource:
        """Open the source; *completion* fills in what files leave out. Raises ConfigurationError."""
        if self.files is not None:
            return FilesSource(self.files, completion)
        return MirrorsSource(self.mirrors or Path())


def _stat(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), -1, -1
    return str(path), status.st_size, status.st_mtime_ns


def _refs(mirror: Path) -> list[tuple[str, int, int]]:
    """Return the refs: git replaces ref files, so the times of their folders show every change."""
    folders = [Path(folder) for folder, _, _ in os.walk(mirror / "refs")]
    return sorted(_stat(path) for path in (mirror / "HEAD", mirror / "packed-refs", *folders))


def detect(text: str) -> OfflineSource:
    """Return the source at *text*, one or more comma-separated paths; raises ConfigurationError otherwise.

    Of a file's name, only the stem counts: `repositories`, `pull_requests` or `counts`.
    """
    paths = [Path(part.strip()).expanduser().absolute() for part in text.split(",") if part.strip()]
    missing = [str(path) for path in paths if not path.exists()]
    if missing or not paths:
        raise ConfigurationError(f"the offline source {', '.join(missing) or repr(text)} is not there", remedy=_REMEDY)
    folders = [path for path in paths if path.is_dir()]
    if not folders:
        return OfflineSource(files=_files(paths))
    if len(paths) > 1:
        raise ConfigurationError(f"{text} names several things, and not all are files", remedy=_REMEDY)
    folder = folders[0]
    inside = sorted(
        path for path in folder.iterdir() if path.suffix in FORMATS and path.stem in {file.name for file in SCHEMAS}
    )
    mirrors = bool(mirrors_in(folder))
    if mirrors and inside:
        raise ConfigurationError(
            f"{folder} holds both mirrors and {inside[0].name}",
            why="it is not clear which of them is meant",
            remedy="Put the files into a folder of their own",
        )
    if mirrors:
        return OfflineSource(mirrors=folder)
    if not inside:
        raise ConfigurationError(f"{folder} contains neither mirrors nor files of an offline source", remedy=_REMEDY)
    return OfflineSource(files=_files(inside))


def _files(paths: Sequence[Path]) -> Files:
    files: dict[str, Path] = {}
    for path in paths:
        if path.suffix not in FORMATS or path.stem not in {file.name for file in SCHEMAS}:
            names = ", ".join(file.name for file in SCHEMAS)
            raise ConfigurationError(
                f"{path} is not known by its name",
                remedy=f"Call it {names}, with one of the endings {', '.join(FORMATS)}",
            )
        other = files.setdefault(path.stem, path)
        if other is not path:
            raise ConfigurationError(f"both {other} and {path} hold {path.stem}", remedy="Keep one of them")
    if set(files) <= {COUNTS.name}:
        raise ConfigurationError(f"{', '.join(map(str, paths))} contains only counts", remedy=_REMEDY)
    return Files(files.get(REPOSITORIES.name), files.get(PULL_REQUESTS.name), files.get(COUNTS.name))
