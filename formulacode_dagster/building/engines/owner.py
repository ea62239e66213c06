"""Whose a container or a session folder is, and whether that process still lives."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from formulacode_dagster.models.base import Frozen


class Owner(Frozen):
    """A process, distinguished from every other one with the same number."""

    run_id: str
    host: str
    boot: str
    namespace: str
    pid: int
    started: str

    @classmethod
    def current(cls, run_id: str) -> Owner:
        """The process that calls, working for run *run_id*."""
        return cls(
            run_id=run_id,
            host=_host(),
            boot=_boot(),
            namespace=_namespace(),
            pid=os.getpid(),
            started=_started(os.getpid()) or "",
        )

    @classmethod
    def parse(cls, text: str | bytes) -> Owner | None:
        """Parse the output of `model_dump_json`; return None for anything else."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None

    def is_alive(self) -> bool:
        """Return True if the process certainly lives."""
        here = (_host(), _boot(), _namespace())
        return (self.host, self.boot, self.namespace) == here and _started(self.pid) == self.started

    def is_dead(self) -> bool:
        """Return True if the process is certainly gone. For one on another machine or in another container this is
        unknown.
        """
        if self.host != _host():
            return False
        if self.boot != _boot():
            return True
        is_other = self.namespace == _namespace() and _started(self.pid) != self.started
        return is_other and not _is_hidden(self.pid)


@cache
def _host() -> str:
    """The machine's name and id: another one of the same name may use the same remote Docker daemon."""
    machine = Path("/etc/machine-id")
    return f"{socket.gethostname()} {machine.read_text().strip() if machine.is_file() else ''}".strip()


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def _started(pid: int) -> str | None:
    """Return the start of process *pid*, in clock ticks since boot; None if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def _is_hidden(pid: int) -> bool:
    """Return True if process *pid* exists but /proc hides it: another user's, under `ProtectProc=invisible`."""
    if _started(pid) is not None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
