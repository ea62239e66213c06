"""Reads an image without running any of it: all its files, some of them, or its configuration."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

from formulacode_dagster.building.engines.files import Area, ImageConfig, ImageFile
from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.operating.files.byte_chunks import ByteChunks

from .daemon import LABEL, DockerDaemon
from .leftovers import remove_container
from .session import REPOSITORY, TOOLS, VENV

if TYPE_CHECKING:
    from docker.models.containers import Container

MOST_BYTES = 64 << 20
_AREAS = (
    (VENV.lstrip("/") + "/", Area.ENVIRONMENT),
    (REPOSITORY.lstrip("/") + "/", Area.REPOSITORY),
    (TOOLS.lstrip("/") + "/", Area.TOOLS),
)


@contextmanager
def archive_of(container: Container, path: str) -> Iterator[Iterator[bytes]]:
    """The tar stream of *path* in *container*, which the daemon does not remove before the stream has ended: it is
    closed here, read to its end or not.
    """
    with closing(cast("Generator[bytes]", container.get_archive(path)[0])) as chunks:
        yield chunks


def archived_files(chunks: Iterable[bytes], root: str = "/") -> Iterator[ImageFile]:
    """The regular files and links in the tar stream *chunks* of a container's folder *root*."""
    above = root.rpartition("/")[0]
    with tarfile.open(fileobj=ByteChunks(chunks), mode="r|", bufsize=1024 * 1024) as archive:
        for entry in archive:
            if not (entry.isfile() or entry.issym() or entry.islnk()):
                continue
            name = f"{above}/{entry.name.lstrip('/')}".lstrip("/")
            prefix, area = next(((p, a) for p, a in _AREAS if name.startswith(p)), ("", Area.SYSTEM))
            # the stream names the first of files that are one by its place in the stream
            first = f"{above}/{entry.linkname.lstrip('/')}" if entry.islnk() else None
            target = entry.linkname if entry.issym() else first
            yield ImageFile(area, name[len(prefix) :], entry.uid, target, entry.size, _Opener(archive, entry))


def read_files(daemon: DockerDaemon, digest: str, path: str) -> dict[str, bytes]:
    """The regular files below *path* in the image *digest*, by path below it; a file itself is ``.

    They come from a container that never starts. Empty if there are none, or they are larger than MOST_BYTES. Raises
    OutsideSystemError if the daemon does not answer.
    """
    import docker.errors

    labels = {LABEL: "1", f"{LABEL}.owner": Owner.current("").model_dump_json()}
    with daemon.watched(f"read {path} of {digest}"):
        container = daemon.client.containers.create(digest, ["true"], network_mode="none", labels=labels)
        packed = bytearray()
        try:
            with archive_of(container, path) as chunks:
                for chunk in chunks:
                    packed += chunk
                    if len(packed) > MOST_BYTES:
                        return {}
        except docker.errors.NotFound:
            return {}
        finally:
            remove_container(daemon, container)
    with tarfile.open(fileobj=io.BytesIO(bytes(packed))) as archive:
        return {entry.name.partition("/")[2]: _content(archive, entry).read() for entry in archive if entry.isfile()}


def image_config(configuration: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> ImageConfig:
    """The image's configuration, from the daemon's `Config` and `history` of it."""
    pairs = (str(entry).partition("=") for entry in configuration.get("Env") or ())
    commands = (part for key in ("Entrypoint", "Cmd", "OnBuild") for part in configuration.get(key) or ())
    return ImageConfig(
        variables={name: value for name, _, value in pairs},
        labels={str(name): str(value) for name, value in (configuration.get("Labels") or {}).items()},
        history=(*(str(layer.get("CreatedBy", "")) for layer in history), *map(str, commands)),
    )


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    return archive.extractfile(entry) or io.BytesIO()


@dataclass
class _Opener:
    """Opens an entry of a stream any number of times, up to MOST_BYTES: a stream can be read only once."""

    archive: tarfile.TarFile
    entry: tarfile.TarInfo
    _content: bytes | None = None

    def __call__(self) -> IO[bytes]:
        if self._content is None:
            stream = _content(self.archive, self.entry)
            if self.entry.size > MOST_BYTES:
                return stream
            self._content = stream.read()
        return io.BytesIO(self._content)
