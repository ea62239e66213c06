"""Compressed files, encrypted in age's format (age-encryption.org/v1) if a recipient is given.

Making backups requires only the public key; the `age` tool can read them too.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.files.atomic import disk_errors
from formulacode_dagster.operating.files.byte_chunks import ByteChunks

if TYPE_CHECKING:
    import pyrage

CHUNK = 1 << 20
ENCRYPTED = ".age"


def write_compressed(path: Path, chunks: Iterable[bytes], recipient: str) -> None:
    """Write *chunks* to *path*, encrypted for *recipient* unless that is empty.

    Raises OutsideSystemError when the disk is full, ConfigurationError when the recipient is none.
    """
    import zstandard

    path.parent.mkdir(parents=True, exist_ok=True)
    source = cast("IO[bytes]", ByteChunks(chunks))
    with disk_errors(str(path)), path.open("wb") as file:
        if not recipient:
            zstandard.ZstdCompressor(level=3).copy_stream(source, file)
            return
        import pyrage

        compressed = zstandard.ZstdCompressor(level=3).stream_reader(source)
        pyrage.encrypt_io(compressed, file, [_recipient(recipient)])


@contextmanager
def open_compressed(path: Path, identity: str) -> Iterator[io.BufferedReader]:
    """Open a file that `write_compressed` wrote; *identity* is the private key of an encrypted one.

    Raises ConfigurationError if the key is missing, or does not match the recipient.
    """
    import zstandard

    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(path.open("rb"))
        if path.suffix == ENCRYPTED:
            # age's library decrypts to a writer and offers no reader
            file = _decrypted(file, path, identity, stack.enter_context(tempfile.TemporaryFile()))
        yield io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file), CHUNK)


def require_recipient(recipient: str) -> None:
    """Raise ConfigurationError unless *recipient* is a public key of age, or empty."""
    if recipient:
        _recipient(recipient)


def _recipient(text: str) -> pyrage.x25519.Recipient:
    import pyrage

    try:
        return pyrage.x25519.Recipient.from_str(text)
    except pyrage.RecipientError as error:
        raise ConfigurationError(
            "FC_BACKUP_RECIPIENT is not a public key of age",
            why=str(error),
            remedy="Make a pair with age-keygen, and set the line that begins with age1",
        ) from error


def _decrypted(file: IO[bytes], path: Path, identity: str, opened: IO[bytes]) -> IO[bytes]:
    import pyrage

    try:
        keys = [pyrage.x25519.Identity.from_str(identity)]
        pyrage.decrypt_io(file, opened, keys)
    except (pyrage.IdentityError, pyrage.DecryptError) as error:
        raise ConfigurationError(
            f"{path} is encrypted for another key" if identity else f"{path} is encrypted",
            why=str(error),
            remedy="Give the file with its private key, the line that begins with AGE-SECRET-KEY-1, by --identity",
        ) from error
    opened.seek(0)
    return opened
