"""Servers of the versions that .ci/install-postgres installed here, each for one test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.documents import ROOT
from tests.support.running import PREFIX, memory

INSTALLED = ROOT / ".ci" / "postgres" / "node_modules"
VERSIONS = ("14", "15", "17", "18")
"""In addition to that of the embedded server, which all other tests use."""
START_SECONDS = 60
NEEDED = 2 << 30
"""Bytes of memory that a server may have for its files."""


def programs_of(version: str) -> Path | None:
    """The folder of that version's programs and libraries, if it is installed."""
    folder = INSTALLED / f"postgres-{version}" / "native"
    return folder if folder.is_dir() else None


@contextmanager
def server_of(programs: Path) -> Iterator[str]:
    """The URL of an empty server for this test, on a separate socket."""
    # whom a server has to run as cannot look into the folders of root's tests
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-postgres-", dir=memory(NEEDED)) as name:
        folder = Path(name)
        shutil.copytree(programs, folder / "native", symlinks=True)
        for link in json.loads((folder / "native" / "pg-symlinks.json").read_text()):
            target = folder / link["target"]
            if not target.exists():
                target.symlink_to(folder / link["source"])
        _run(
            folder, ["initdb", "--pgdata", str(folder / "data"), "--username", "tests", "--no-sync", "--auth", "trust"]
        )
        options = ["-D", str(folder / "data"), "-k", name, "-c", "listen_addresses=", "-c", "max_connections=200"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(_command(folder, ["postgres", *options]), stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not (folder / ".s.PGSQL.5432").exists():
                said = (folder / "log").read_text(errors="replace")
                assert server.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.05)
            yield f"postgresql+psycopg://tests@/postgres?host={name}"
        finally:
            server.terminate()
            server.wait(START_SECONDS)


def _run(folder: Path, command: Sequence[str]) -> None:
    if os.geteuid() == 0:
        folder.chmod(0o755)
        (folder / "data").mkdir(mode=0o700)
        for path in (folder, folder / "data"):
            shutil.chown(path, "nobody", "nogroup")
    subprocess.run(_command(folder, command), check=True, capture_output=True)


def _command(folder: Path, command: Sequence[str]) -> list[str]:
    """A program of this version, as who is not root: a server refuses to be."""
    program, *arguments = command
    as_nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    return [*as_nobody, str(folder / "native" / "bin" / program), *arguments]
