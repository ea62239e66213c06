"""The demo, run once as a user runs it (a subprocess, the `process` engine), shared by the tests of what it leaves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from formulacode_dagster.store.database import Database
from formulacode_dagster.store.embedded import start_embedded

ROOT = Path(__file__).parents[2]
FC_DATA = Path(sys.executable).with_name("fc-data")
KEPT = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "XDG_RUNTIME_DIR", "FC_OS_IMAGE")


@dataclass(frozen=True)
class Demo:
    """A home in which `fc-data demo` was run, and what it printed."""

    home: Path
    output: str
    status: int

    @property
    def environment(self) -> dict[str, str]:
        """A clean environment that uses this home."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {**kept, "FC_HOME": str(self.home), "FC_ENGINE": "process", "FC_RETRY_SECONDS": "0", "COLUMNS": "160"}

    def fc_data(self, *arguments: str, timeout: float = 600, **more: str) -> subprocess.CompletedProcess[str]:
        """Run `fc-data` in this home."""
        return subprocess.run(
            [str(FC_DATA), *arguments],
            env={**self.environment, **more},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The first run of the demo."""
    home = tmp_path_factory.mktemp("demo") / "home"
    unused = Demo(home, "", 0)
    first = unused.fc_data("demo", timeout=1500)
    return Demo(home, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", first.stdout + first.stderr), first.returncode)


@pytest.fixture(scope="session")
def demo_database(demo: Demo) -> Iterator[Database]:
    """The database the demo left."""
    database = Database(start_embedded(demo.home / "postgres"))
    yield database
    database.close()
