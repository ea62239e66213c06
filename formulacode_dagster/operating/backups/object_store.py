"""Backups in a store that speaks S3, by the extra `s3`: `s3://bucket/prefix`, a key for each file of each backup.

The manifest is uploaded last and removed first, so an incomplete upload or removal leaves no backup. Credentials are
those that AWS's SDK finds: variables, profile, or the role of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError

from .backup import CUT_AFTER_SECONDS
from .manifest import MANIFEST

SYSTEM = "backup store"
SCHEME = "s3"
_REMEDY = "Look at FC_BACKUP_STORE, FC_BACKUP_ENDPOINT and the credentials of AWS's SDK, such as AWS_ACCESS_KEY_ID"
_DELETED_AT_ONCE = 1000


@dataclass(frozen=True)
class ObjectStore:
    """Backups below *prefix* of *bucket*; *endpoint* is that of a store other than Amazon's."""

    bucket: str
    prefix: str
    endpoint: str = ""

    @classmethod
    def of(cls, url: str, endpoint: str = "") -> ObjectStore:
        """Return the store at *url*; raises ConfigurationError if the URL is invalid."""
        parts = urlsplit(url)
        if parts.scheme != SCHEME or not parts.netloc:
            raise ConfigurationError(f"{url} is not a store for backups", remedy="Write s3://bucket/prefix")
        return cls(parts.netloc, f"{parts.path.strip('/')}/" if parts.path.strip("/") else "", endpoint)

    def upload(self, folder: Path) -> str:
        """Copy the backup in *folder*, its manifest last; returns its address. Raises OutsideSystemError."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
        with _errors(f"upload {folder.name}"):
            for path in [*paths, folder / MANIFEST]:
                key = f"{self.prefix}{folder.name}/{path.relative_to(folder).as_posix()}"
                self._client.upload_file(str(path), self.bucket, key)
        return f"{SCHEME}://{self.bucket}/{self.prefix}{folder.name}"

    def download(self, name: str, into: Path) -> Path:
        """Copy the backup *name* to a folder below *into* and return it; its contents are not verified.

        Raises ConfigurationError if there is no such backup, and OutsideSystemError.
        """
        keys = self._backups().get(name, {})
        if MANIFEST not in keys:
            whole = [other for other, files in self._backups().items() if MANIFEST in files]
            raise ConfigurationError(
                f"there is no complete backup {name!r} in {SCHEME}://{self.bucket}/{self.prefix}",
                remedy=f"Take one of {', '.join(sorted(whole)[-3:])}" if whole else "Make one",
            )
        folder = into / name
        for file in keys:
            target = folder / file
            if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
                raise ConfigurationError(
                    f"{file!r} is not the name of a file in a backup", remedy="Take another backup"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            with _errors(f"download {name}/{file}"):
                self._client.download_file(self.bucket, f"{self.prefix}{name}/{file}", str(target))
        return folder

    def prune(self, keep: int) -> tuple[str, ...]:
        """Remove all but the newest *keep* backups, and incomplete ones older than a day; returns what was removed."""
        before = datetime.now(tz=UTC) - timedelta(seconds=CUT_AFTER_SECONDS)
        backups = self._backups()
        whole = sorted(name for name, files in backups.items() if MANIFEST in files)
        cut = [name for name, files in backups.items() if MANIFEST not in files and max(files.values()) < before]
        gone = [*whole[: max(0, len(whole) - keep)], *cut]
        for name in gone:
            # one that is cut here is no backup any more
            self._delete([f"{self.prefix}{name}/{MANIFEST}"])
            self._delete([f"{self.prefix}{name}/{file}" for file in backups[name]])
        self._abort_uploads(before)
        return tuple(gone)

    def newest(self) -> datetime | None:
        """Return when the newest complete backup was uploaded; None if there is none."""
        return max((files[MANIFEST] for files in self._backups().values() if MANIFEST in files), default=None)

    def _backups(self) -> dict[str, dict[str, datetime]]:
        """The files of each backup, whole or cut, and when each was written."""
        backups: dict[str, dict[str, datetime]] = {}
        with _errors("list the backups"):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix):
                for stored in page.get("Contents", ()):
                    name, _, file = stored["Key"].removeprefix(self.prefix).partition("/")
                    if file:
                        backups.setdefault(name, {})[file] = stored["LastModified"]
        return backups

    def _delete(self, keys: list[str]) -> None:
        for first in range(0, len(keys), _DELETED_AT_ONCE):
            named = [{"Key": key} for key in keys[first : first + _DELETED_AT_ONCE]]
            with _errors("remove a backup"):
                answer = self._client.delete_objects(Bucket=self.bucket, Delete={"Objects": named, "Quiet": True})
            if refused := answer.get("Errors"):
                raise ConfigurationError(
                    f"{SYSTEM}: cannot remove {refused[0]['Key']}", why=refused[0].get("Message", ""), remedy=_REMEDY
                )

    def _abort_uploads(self, before: datetime) -> None:
        """Parts of a file whose upload was killed are listed nowhere else, and paid for."""
        with _errors("list uploads"):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self.bucket, Prefix=self.prefix
            )
            for upload in [upload for page in pages for upload in page.get("Uploads", ())]:
                if upload["Initiated"] < before:
                    self._client.abort_multipart_upload(
                        Bucket=self.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                    )

    @cached_property
    def _client(self) -> Any:
        with _errors("begin"):
            import boto3

            return boto3.client("s3", endpoint_url=self.endpoint or None)


@contextmanager
def _errors(attempt: str) -> Iterator[None]:
    try:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "FC_BACKUP_STORE is set, and the SDK for it is not installed", remedy="Install formulacode-dagster[s3]"
        ) from error
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise ConfigurationError(f"{SYSTEM}: cannot {attempt}", why=str(error), remedy=_REMEDY) from error
    except (Boto3Error, BotoCoreError, ClientError) as error:
        raise OutsideSystemError(SYSTEM, f"cannot {attempt}", why=str(error), remedy=_REMEDY) from error
