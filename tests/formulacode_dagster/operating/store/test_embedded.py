"""The embedded server after a kill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

START = """
import sys
from pathlib import Path
from formulacode_dagster.operating.store.embedded import start_embedded
print(start_embedded(Path(sys.argv[1])))
"""


@pytest.mark.slow
def test_locks_of_an_unreaped_killed_server_do_not_prevent_a_start(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    start = [sys.executable, "-c", START, str(folder)]
    subprocess.run(start, check=True, capture_output=True)
    # a zombie of the server's user, as long as no process waits for it
    killed = subprocess.Popen(["true"], user=(folder / "PG_VERSION").stat().st_uid)
    while (Path("/proc") / str(killed.pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
        pass
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        (folder / name).write_text(f"{killed.pid}\n{folder}\n0\n5432\n{folder}\n")
    again = subprocess.run(start, check=True, capture_output=True, text=True)
    assert again.stdout.startswith("postgresql+psycopg://")
    killed.wait()
