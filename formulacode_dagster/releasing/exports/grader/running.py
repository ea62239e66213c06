"""Runs untrusted code: as an unprivileged user, by itself, and with nothing of it left afterwards."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from typing import Any, NamedTuple

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PUBLIC = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/var/lock")  # noqa: S108 - looked through only
SYSTEM_V = {"shm": "shmctl", "msg": "msgctl", "sem": "semctl"}
"""Objects of System V, which no process needs to stay, by the function that removes them.

https://man7.org/linux/man-pages/man7/sysvipc.7.html
"""
IPC_RMID = 0
SETTLE_SECONDS = 10.0
MOST_OUTPUT = 256 * 2**20
"""Bytes kept of what a process prints; the rest is read and dropped."""
CHUNK = 2**16
PR_SET_CHILD_SUBREAPER = 36
"""https://man7.org/linux/man-pages/man2/prctl.2.html"""


class ProcessesRemainError(Exception):
    """Some processes of untrusted code do not end."""


class Done(NamedTuple):
    """How a command ended, and the CPU seconds of all its processes, as the kernel counts them."""

    rc: int
    lines: list[tuple[float, bytes]]
    """Lines of its output, each with the moment it arrived, by the clock of this process."""
    stderr: bytes
    cpu: float
    timed_out: bool

    @property
    def stdout(self) -> bytes:
        """Its whole output."""
        return b"\n".join(line for _, line in self.lines)


def adopt_orphans() -> None:
    """Become the parent of processes whose own has ended, so that their CPU time is counted."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    argv: list[str], *, user: int, group: int, timeout: float, cwd: str, environment: dict[str, str], stdin: bytes = b""
) -> Done:
    """Run *argv* as *user*; nothing of that user's runs, and nothing of it is in public places, once it has ended.

    Raises ProcessesRemainError.
    """

    def drop() -> None:
        with open("/proc/self/oom_score_adj", "w") as file:
            # if memory ends, it is this process's that ends it
            file.write("1000")
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
    output, errors = _Reader(process.stdout), _Reader(process.stderr)
    writer = threading.Thread(target=_write, args=(process.stdin, stdin), daemon=True)
    for thread in (output, errors, writer):
        thread.start()
    timed_out = False
    try:
        process.wait(timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
    end_processes({user})
    process.wait()
    # nobody is left who could hold a pipe open
    for thread in (output, errors, writer):
        thread.join()
    _reap()
    empty_public({user})
    return Done(process.returncode, output.lines(), errors.content(), cpu_of_children() - before, timed_out)


class _Reader(threading.Thread):
    """Reads a pipe to its end, and notes when each piece arrived."""

    def __init__(self, pipe: Any) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._chunks: list[tuple[float, bytes]] = []

    def run(self) -> None:
        """Read until every process has closed its end."""
        kept = 0
        with self._pipe:
            while True:
                chunk = os.read(self._pipe.fileno(), CHUNK)
                if not chunk:
                    return
                kept += len(chunk)
                if kept <= MOST_OUTPUT:
                    self._chunks.append((time.monotonic(), chunk))

    def content(self) -> bytes:
        """All that was read."""
        return b"".join(chunk for _, chunk in self._chunks)

    def lines(self) -> list[tuple[float, bytes]]:
        """Lines, each with the moment its end arrived."""
        found, begun = [], b""
        for moment, chunk in self._chunks:
            *ended, rest = chunk.split(b"\n")
            for line in ended:
                found.append((moment, begun + line))
                begun = b""
            begun += rest
        return [*found, (time.monotonic(), begun)] if begun else found


def _write(pipe: Any, content: bytes) -> None:
    with contextlib.suppress(OSError), pipe:
        pipe.write(content)


def _reap() -> None:
    """Let the kernel count the time of adopted processes, which have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


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

    Raises ProcessesRemainError if some survive.
    """
    ours = _ancestors()
    ended: list[str] = []
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        everything = [process for process in _processes() if process["pid"] not in ours and _is_of(process, users)]
        others = [process for process in everything if process["is_running"]]
        # those of one user at once: what keeps forking has another number whenever it is looked for
        for user in (users or set()).union(*(process["users"] for process in everything)) - {0}:
            _kill_as(user)
        if not others:
            return ended
        if time.monotonic() > deadline:
            names = ", ".join(each["name"] for each in others)
            raise ProcessesRemainError(f"processes of the agent do not end: {names}")
        for process in others:
            if process["name"] not in ended:
                ended.append(process["name"])
            with contextlib.suppress(ProcessLookupError):
                os.kill(process["pid"], signal.SIGKILL)


def _kill_as(user: int) -> None:
    """Kill all processes of *user* in one call: https://man7.org/linux/man-pages/man2/kill.2.html"""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def empty_public(users: set[int] | None) -> None:
    """Remove what *users*, or all but root, left in world-writable places, and all objects of System V."""
    for kind in SYSTEM_V:
        _remove_system_v(kind)
    for folder in PUBLIC:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                owner = entry.stat(follow_symlinks=False).st_uid
                if owner in users if users is not None else owner != 0:
                    with contextlib.suppress(OSError):
                        if entry.is_dir(follow_symlinks=False):
                            shutil.rmtree(entry.path, ignore_errors=True)
                        else:
                            os.unlink(entry.path)


def _remove_system_v(kind: str) -> None:
    import ctypes

    with contextlib.suppress(OSError), open(f"/proc/sysvipc/{kind}") as file:
        _, *lines = file.readlines()
        for line in lines:
            number = int(line.split()[1])
            arguments = (number, 0, IPC_RMID) if kind == "sem" else (number, IPC_RMID, None)
            getattr(ctypes.CDLL(None), SYSTEM_V[kind])(*arguments)


def _is_of(process: dict[str, Any], users: set[int] | None) -> bool:
    return bool(process["users"] & users) if users is not None else process["users"] != {0}


def _processes() -> list[dict[str, Any]]:
    """Return all processes; one that ended and waits for its parent is not running."""
    told = []
    for name in os.listdir("/proc"):
        # gone meanwhile
        with contextlib.suppress(OSError):
            if name.isdigit() and name != "1":
                with open(f"/proc/{name}/status") as file:
                    fields = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
                users = {int(user) for user in fields["Uid"].split()}
                is_running = fields["State"].split()[0] not in "ZX"
                told.append(
                    {"pid": int(name), "name": fields["Name"].strip(), "users": users, "is_running": is_running}
                )
    return told


def _ancestors() -> set[int]:
    pid, ours = os.getpid(), set()
    while pid > 0:
        ours.add(pid)
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
    return ours
