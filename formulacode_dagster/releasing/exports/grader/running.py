"""Runs untrusted code: as an unprivileged user, by itself, and with nothing of it left afterwards."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time
from typing import Any, NamedTuple

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PUBLIC = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/var/lock")  # noqa: S108 - looked through, not written to
SETTLE_SECONDS = 10.0


class Done(NamedTuple):
    """How a command ended, and the CPU seconds of all its processes, as the kernel counts them."""

    rc: int
    stdout: bytes
    stderr: bytes
    cpu: float
    timed_out: bool


def run(
    argv: list[str], *, user: int, group: int, timeout: float, cwd: str, environment: dict[str, str], stdin: bytes = b""
) -> Done:
    """Run *argv* as *user*; nothing of that user's runs, and nothing of it is in public folders, once it has ended."""

    def drop() -> None:
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)

    before = cpu_of_children()
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=environment,
        preexec_fn=drop,  # no thread runs here, and CPython 3.7 knows no `user=`
        start_new_session=True,
    )
    timed_out = False
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        end_processes({user})
        stdout, stderr = process.communicate()
    end_processes({user})
    empty_public({user})
    return Done(process.returncode, stdout, stderr, cpu_of_children() - before, timed_out)


def cpu_of_children() -> float:
    """CPU seconds of all processes that ended under this one."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def plain_environment() -> dict[str, str]:
    """The image's environment for its own scripts, without anything an agent may have added."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("FC_") or name in {"LANG", "TZ"}}
    return {**kept, "PATH": SYSTEM_PATH, "USER": "formulacode", "LOGNAME": "formulacode"}


def end_processes(users: set[int] | None) -> list[str]:
    """Kill every process of *users*, or else of all users but root, until none is left; return the killed ones.

    Raises RuntimeError if some survive.
    """
    ours = _ancestors()
    ended: list[str] = []
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        others = [process for process in _processes() if process["pid"] not in ours and _is_of(process, users)]
        if not others:
            return ended
        if time.monotonic() > deadline:
            raise RuntimeError("processes of the agent do not end: " + ", ".join(each["name"] for each in others))
        for process in others:
            if process["name"] not in ended:
                ended.append(process["name"])
            with contextlib.suppress(ProcessLookupError):
                os.kill(process["pid"], signal.SIGKILL)


def empty_public(users: set[int] | None) -> None:
    """Remove files of *users*, or of all but root, in world-writable places."""
    for folder in PUBLIC:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                owner = entry.stat(follow_symlinks=False).st_uid
                if owner in users if users is not None else owner != 0:
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path, ignore_errors=True)
                    else:
                        os.unlink(entry.path)


def _is_of(process: dict[str, Any], users: set[int] | None) -> bool:
    return bool(process["users"] & users) if users is not None else process["users"] != {0}


def _processes() -> list[dict[str, Any]]:
    """Return running processes: an ended one that waits for its parent does not count."""
    told = []
    for name in os.listdir("/proc"):
        # gone meanwhile
        with contextlib.suppress(OSError):
            if name.isdigit() and name != "1":
                with open(f"/proc/{name}/status") as file:
                    fields = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
                if fields["State"].split()[0] not in "ZX":
                    users = {int(user) for user in fields["Uid"].split()}
                    told.append({"pid": int(name), "name": fields["Name"].strip(), "users": users})
    return told


def _ancestors() -> set[int]:
    pid, ours = os.getpid(), set()
    while pid > 0:
        ours.add(pid)
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
    return ours
