"""The harness as an archive that an interpreter runs, as it is put into a session."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from importlib.abc import Traversable

from formulacode_dagster.building.engines.protocol import Session
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.cancellation.programs import run_program

COMPILE_SECONDS = 120.0
MOST_IMAGES = 32
TAIL_CHARACTERS = 4000

# Unchecked, since sources of an archive have no times to compare. No file of a checkout has such a path.
_COMPILE = """
import base64, importlib.util, json, marshal, sys
compiled = {}
for name, source in json.load(sys.stdin).items():
    code = compile(source, "/fc_harness.pyz/" + name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source.encode())
    compiled[name + "c"] = base64.b64encode(head + marshal.dumps(code)).decode()
json.dump(compiled, sys.stdout)
"""
_ARGUMENTS = ("-I", "-S", "-c", _COMPILE)
_of_images: dict[str, bytes] = {}
"""The harness compiled by images, by their digests."""


def harness_archive() -> bytes:
    """The harness as an archive that an interpreter runs; equal sources give equal bytes."""
    return zipapp_of(_sources())


@cache
def compiled_archive(compiler: str) -> bytes:
    """The harness with the bytecode of the interpreter *compiler* next to each source; other interpreters use the
    source.

    Raises ConfigurationError when *compiler* cannot compile it.
    """
    done = run_program([compiler, *_ARGUMENTS], timeout=COMPILE_SECONDS, stdin=_request())
    if done.returncode != 0:
        why = done.stderr.decode(errors="replace")[-TAIL_CHARACTERS:]
        raise ConfigurationError(f"{compiler} cannot compile the harness", why=why, remedy="Mend that interpreter")
    return _with_bytecode(done.stdout)


def archive_for(session: Session) -> bytes:
    """The harness for *session*, with the bytecode of its interpreter if that can be had.

    An image's own interpreter compiles it, once for each image: only tasks of the image depend on what comes of it.
    """
    if session.compiler is not None:
        return compiled_archive(session.compiler)
    if session.image is None:
        return harness_archive()
    if session.image not in _of_images:
        if len(_of_images) >= MOST_IMAGES:
            _of_images.clear()
        done = session.run([session.python, *_ARGUMENTS], timeout=COMPILE_SECONDS, stdin=_request())
        try:
            _of_images[session.image] = _with_bytecode(done.stdout)
        except (ValueError, TypeError, AttributeError):
            # an interpreter that cannot, or says something else
            _of_images[session.image] = harness_archive()
    return _of_images[session.image]


def _request() -> bytes:
    return json.dumps({name: content.decode() for name, content in _sources().items()}).encode()


def _with_bytecode(compiled: bytes) -> bytes:
    return zipapp_of(_sources() | {name: base64.b64decode(content) for name, content in json.loads(compiled).items()})


def _sources() -> dict[str, bytes]:
    start = b"from fc_harness.answers import main\n\nmain()\n"
    folder = resources.files("formulacode_dagster.building.suites").joinpath("harness")
    return {"__main__.py": start, **dict(sorted(_modules(folder, "fc_harness")))}


def _modules(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each module in *folder* and below, which is at *path* in the archive."""
    for file in folder.iterdir():
        if file.is_dir():
            yield from _modules(file, f"{path}/{file.name}")
        elif file.name.endswith(".py"):
            yield f"{path}/{file.name}", file.read_bytes()


def zipapp_of(files: Mapping[str, bytes], head: bytes = b"") -> bytes:
    """An archive of *files* after *head*, that an interpreter runs; equal files give equal bytes."""
    buffer = io.BytesIO()
    buffer.write(head)
    with zipfile.ZipFile(buffer, "a" if head else "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0)), content)
    return buffer.getvalue()
