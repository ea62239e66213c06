"""A pytest for environments that have none: of their era, pinned, carried into the session, never in the image."""

from __future__ import annotations

import io
import tempfile
import zipfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from formulacode_dagster.building.engines.failures import last_line
from formulacode_dagster.building.planning import uv_messages
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.programs import run_program

INSTALL_SECONDS = 300
_FOLDER = Path(__file__).with_name("collectors")
_PYTEST_5 = datetime(2019, 7, 1, tzinfo=UTC)
"""pytest 5 removed features that earlier versions had warned about."""


def collector_for(python: str, written: datetime | None) -> str:
    """Return the set of pins that fits tests written at *written*, on interpreter *python* (`3.11`)."""
    minor = int(python.partition(".")[2])
    if minor <= 8 and written is not None and written < _PYTEST_5:
        return "pytest-4"
    return "pytest-7" if minor <= 12 else "pytest-8"


@cache
def collector_archive(name: str) -> bytes:
    """The pinned and hashed wheels of *name*, all of them pure Python, unpacked into one archive.

    Raises OutsideSystemError when the package index does not answer, ItemFailure (`collector`) when uv refuses.
    """
    import uv

    with tempfile.TemporaryDirectory(prefix="fc-collector-") as folder:
        command = [uv.find_uv_bin(), "--no-config", "pip", "install", "--quiet", "--target", folder, "--no-deps"]
        command += ["--only-binary", ":all:", "--require-hashes", "--requirement", str(_FOLDER / f"{name}.txt")]
        done = run_program(command, timeout=INSTALL_SECONDS)
        if done.returncode != 0:
            said = uv_messages.scrub(done.stderr.decode(errors="replace"))
            why, remedy = last_line(said) or "uv says nothing", "Check the network and the index settings"
            if uv_messages.UNREACHABLE.search(said) or uv_messages.REFUSED.search(said):
                raise OutsideSystemError("package index", f"{name} cannot be had", why=why, remedy=remedy)
            raise ItemFailure(FailureKind.COLLECTOR, f"{name} cannot be had", why=why, remedy=remedy)
        return _packed(Path(folder))


def _packed(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder).as_posix()
            if path.is_file() and path.suffix != ".pyc" and not inside.startswith("bin/"):
                archive.write(path, inside)
    return buffer.getvalue()
