"""The dataset in a local folder, under the rules of the Hub: `releases/<tag>/` is written once and never again.

Next to it, `data/`, `verified/`, `README.md` and `months.json` show all months together, as the Hub's main branch does.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from pydantic import Field, ValidationError

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.check import Acceptance
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import Release
from formulacode_dagster.operating.files.atomic import PARTIAL, disk_errors, sync_folder, write_atomically

from .destination import ReleasedMonth, edition_to_release, files_of, newest_release, read_back, released_tables
from .edition import Edition
from .index import INDEX_FILE, DatasetIndex
from .tables import MonthTables

MANIFEST = "manifest.json"
LOCK_SECONDS = 60


class ReleaseManifest(Frozen):
    """Parts of a release."""

    month: str
    tag: str
    released_at: datetime
    files: dict[str, str] = Field(description="SHA-256 by path, the manifest aside")


class FolderDestination:
    """A folder that keeps the dataset under tags."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._releases = self._path / "releases"

    @property
    def name(self) -> str:
        """The folder's path."""
        return str(self._path)

    @property
    def url(self) -> str:
        """See `Destination.url`."""
        return ""

    def release(
        self, month: Month, tables: MonthTables, accepted: Sequence[Acceptance] = (), correction: str = ""
    ) -> Release:
        """See `Destination.release`; the revision is a hash over the release's files."""
        with disk_errors(f"the dataset in {self._path}"), self._locked():
            tags = [path.name for path in self._releases.iterdir()]
            edition, tables, is_new = edition_to_release(
                month, tables, tags, self.content, self.name, accepted, correction
            )
            files = files_of(edition, tables, self._index(""))
            released = self._releases / edition.tag
            if is_new:
                self._write_release(edition, files)
            manifest = _manifest(released)
            back = released_tables(month, edition.tag, self.content, self.name)
            for path, wanted in files.items():
                if self.content(path) != wanted:
                    write_atomically(self._path / path, wanted)
        where, revision = self.name, revision_of(released)
        return read_back(edition, tables, back, destination=where, revision=revision, released_at=manifest.released_at)

    def _index(self, tag: str) -> DatasetIndex:
        return DatasetIndex.parse(self.content(INDEX_FILE, tag), str(self._folder(tag) / INDEX_FILE))

    def _folder(self, tag: str) -> Path:
        return self._releases / tag if tag else self._path

    def content(self, path: str, tag: str = "") -> bytes | None:
        """See `Destination.content`; a released file is compared with its hash in the manifest."""
        file = self._folder(tag) / path
        with disk_errors(str(file)):
            content = file.read_bytes() if file.exists() else None
        if tag and self._folder(tag).is_dir():
            _require_released(file, content, _manifest(self._folder(tag)).files.get(path))
        return content

    def read(self, month: Month) -> ReleasedMonth | None:
        """See `Destination.read`."""
        return newest_release(month, self.tags(), self.content, self.name)

    def require_write(self) -> None:
        """See `Destination.require_write`; creates the folder if it is missing."""
        with disk_errors(f"the dataset in {self._path}"), self._locked():
            pass

    def tags(self) -> Mapping[str, str]:
        """See `Destination.tags`; a revision is computed from the files as they are now."""
        if not self._releases.is_dir():
            return {}
        with disk_errors(f"the releases in {self._releases}"):
            folders = sorted(path for path in self._releases.iterdir() if path.is_dir())
            return {path.name: revision_of(path) for path in folders if not path.name.startswith(PARTIAL)}

    def _write_release(self, edition: Edition, files: Mapping[str, bytes]) -> None:
        partial = self._releases / f"{PARTIAL}{uuid4().hex}"
        checksums = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
        manifest = ReleaseManifest(
            month=edition.month.key, tag=edition.tag, released_at=datetime.now(UTC), files=checksums
        )
        try:
            for path, content in files.items():
                write_atomically(partial / path, content)
            write_atomically(partial / MANIFEST, manifest.model_dump_json(indent=2).encode())
            partial.rename(self._releases / edition.tag)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        sync_folder(self._releases)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock, Timeout

        self._releases.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._path / ".lock", timeout=LOCK_SECONDS):
                for left_over in self._releases.glob(f"{PARTIAL}*"):
                    shutil.rmtree(left_over)
                yield
        except Timeout as error:
            raise OutsideSystemError(
                "disk",
                f"{self._path} is locked",
                why=f"another run has been writing there for {LOCK_SECONDS} s",
                remedy="Wait for it, then run the month again",
            ) from error


def revision_of(released: Path) -> str:
    """A hash over paths and contents of a release's files, the manifest aside. Raises OSError."""
    digest = hashlib.sha256()
    for path in sorted(file for file in released.rglob("*") if file.is_file() and file.name != MANIFEST):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(released).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def _require_released(file: Path, content: bytes | None, sha256: str | None) -> None:
    if (None if content is None else hashlib.sha256(content).hexdigest()) != sha256:
        raise ItemFailure(
            FailureKind.UNREADABLE,
            f"{file} is not {'there' if content is None else 'the file that was released'}",
            why="its hash in the manifest of the release is another" if sha256 else "the manifest does not list it",
            remedy="Restore the folder from a backup, or release to another one",
        )


def _manifest(released: Path) -> ReleaseManifest:
    try:
        return ReleaseManifest.model_validate_json((released / MANIFEST).read_bytes())
    except (ValidationError, FileNotFoundError) as error:
        raise ItemFailure(
            FailureKind.UNREADABLE,
            f"{released / MANIFEST} is missing or malformed",
            why="somebody changed a released folder",
            remedy="Restore the folder from a backup, or release to another one",
        ) from error
