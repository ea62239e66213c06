"""Runs untrusted code: as an unprivileged user, by itself, and with nothing of it left afterwards."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PUBLIC = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/var/lock")  # noqa: S108 - looked through only
SYSTEM_V = {"shm": "shmctl", "msg": "msgctl", "sem": "semctl"}
"""Objects of System V, which no process needs to stay, by the function that removes them.

https://man7.org/linux/man-pages/man7/sysvipc.7.html
"""
IPC_RMID = 0
SETTLE_SECONDS = 10.0
MEET_SECONDS, STEP_SECONDS = 2.0, 0.0005
"""Limit of the wait for a process to stop itself, and the pause between two looks."""
PACE_STEPS = 50_000
"""Of a loop that takes some milliseconds."""
CPUCLOCK_SCHED = 2
"""https://man7.org/linux/man-pages/man3/clock_getcpuclockid.3.html"""
MOST_OUTPUT = 256 * 2**20
"""Bytes kept of what a process prints; the rest is read and dropped."""
CHUNK = 2**16
MOST_PROCESSES = 512
"""Of one user: not every harness limits the container's."""
PR_SET_CHILD_SUBREAPER = 36
"""https://man7.org/linux/man-pages/man2/prctl.2.html"""


class ProcessesRemainError(Exception):
    """Some processes of untrusted code do not end."""


class Moment(NamedTuple):
    """What the clocks outside of a process say, while all that it could do stands still."""

    clock: float
    """Seconds by the clock of this process."""
    cpu: float
    """CPU seconds of all processes of its user so far, as the kernel counts them."""


class Done(NamedTuple):
    """How a command ended, and the CPU seconds of all its processes, as the kernel counts them."""

    rc: int
    stdout: bytes
    meetings: list[Moment]
    """The moments at which it stopped, in order."""
    stderr: bytes
    cpu: float
    timed_out: bool
    memory: int = 0
    """Most bytes that one of its processes was seen to occupy; 0 if none was watched."""


def adopt_orphans() -> None:
    """Become the parent of processes whose own has ended, so that their CPU time is counted."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    argv: list[str],
    *,
    user: int,
    group: int,
    timeout: float,
    cwd: str,
    environment: dict[str, str],
    stdin: bytes = b"",
    is_meeting: Callable[[bytes], bool] | None = None,
    watches_memory: bool = False,
) -> Done:
    """Run *argv* as *user*; nothing of that user's runs, and nothing of it is in public places, once it has ended.

    After a line for which *is_meeting* is true, a process stops itself, and goes on when the clocks have been read.
    Raises ProcessesRemainError.
    """

    def drop() -> None:
        with open("/proc/self/oom_score_adj", "w") as file:
            # if memory ends, it is this process's that ends it
            file.write("1000")
        resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
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
    output = _Reader(process.stdout, user, is_meeting)
    errors = _Reader(process.stderr, user, None)
    writer = threading.Thread(target=_write, args=(process.stdin, stdin), daemon=True)
    for thread in (output, errors, writer):
        thread.start()
    watch = _MemoryWatch(user)
    if watches_memory:
        watch.start()
    timed_out = False
    try:
        process.wait(timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
    watch.ended.set()
    end_processes({user})
    process.wait()
    # nobody is left who could hold a pipe open
    for thread in (output, errors, writer):
        thread.join()
    _reap()
    empty_public({user})
    spent = cpu_of_children() - before
    return Done(process.returncode, output.content(), output.meetings, errors.content(), spent, timed_out, watch.most)


class _MemoryWatch(threading.Thread):
    """Keeps the most memory that a process of *user* occupies: the kernel's own record can be reset by the process."""

    def __init__(self, user: int) -> None:
        super().__init__(daemon=True)
        self._user = user
        self.most = 0
        self.ended = threading.Event()

    def run(self) -> None:
        """Look until the command has ended."""
        while not self.ended.wait(STEP_SECONDS):
            self.most = max([self.most, *(each["resident"] for each in _processes() if each["users"] == {self._user})])


class _Reader(threading.Thread):
    """Reads a pipe to its end, and meets the processes of a user that stop after some of its lines."""

    def __init__(self, pipe: Any, user: int, is_meeting: Callable[[bytes], bool] | None) -> None:
        super().__init__(daemon=True)
        self._pipe, self._user, self._is_meeting = pipe, user, is_meeting
        self._chunks: list[bytes] = []
        self._line = b""
        self.meetings: list[Moment] = []

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
                    self._chunks.append(chunk)
                if self._is_meeting is not None:
                    *ended, self._line = (self._line + chunk)[-MOST_OUTPUT:].split(b"\n")
                    if any(map(self._is_meeting, ended)):
                        self.meetings.append(_meet(self._user))

    def content(self) -> bytes:
        """All that was read."""
        return b"".join(self._chunks)


def _meet(user: int) -> Moment:
    """Read the clocks as soon as a process of *user* has stopped, or did not do so in time, and let it go on."""
    deadline = time.monotonic() + MEET_SECONDS
    while True:
        theirs = [process for process in _processes() if process["users"] == {user}]
        stopped = [process["pid"] for process in theirs if process["state"] == "T"]
        if stopped or time.monotonic() > deadline:
            moment = Moment(time.monotonic(), sum(_cpu_of(process["pid"]) for process in theirs))
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            return moment
        time.sleep(STEP_SECONDS)


def _cpu_of(pid: int) -> float:
    """CPU seconds of a process, and of those that it waited for; 0 if it is gone."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat") as file:
            waited_for = map(int, file.read().rpartition(")")[2].split()[13:15])
        return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED) + sum(waited_for) / os.sysconf("SC_CLK_TCK")
    return 0.0


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


def pace() -> float:
    """Return the CPU seconds of a fixed piece of work on the core of timed processes: cores change their speed."""
    allowed = os.sched_getaffinity(0)
    # the last one, as `conditions.pin` numbers cores; of this thread only, and a sandbox may forbid it
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {max(allowed)})
    started, total = time.thread_time(), 0
    for number in range(PACE_STEPS):
        total += number * number % 7
    passed = time.thread_time() - started
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, allowed)
    return passed


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
        others = [process for process in everything if process["state"] not in "ZX"]
        # those of one user at once: what keeps forking has another number whenever it is looked for
        for user in (users or set()).union(*(process["users"] for process in everything)) - {0}:
            # https://man7.org/linux/man-pages/man2/kill.2.html
            _as_user(user, lambda: os.kill(-1, signal.SIGKILL))
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


def _as_user(user: int, action: Callable[[], object]) -> None:
    """Do something as *user*, in a process that ends with it."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            action()
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
                    remove_tree(entry.path)


def remove_tree(path: str) -> None:
    """Remove whatever is at *path*; untrusted code may have made folders deeper than this interpreter's stack."""
    subprocess.run(["/bin/rm", "-rf", "--", path], stderr=subprocess.DEVNULL, check=False)


def _remove_system_v(kind: str) -> None:
    with contextlib.suppress(OSError), open(f"/proc/sysvipc/{kind}") as file:
        names, *lines = (line.split() for line in file.read().splitlines())
        for line in lines:
            creator = int(line[names.index("cuid")])
            if creator:
                # which root of a container may not do
                _as_user(creator, functools.partial(_control_system_v, kind, int(line[1])))


def _control_system_v(kind: str, number: int) -> None:
    import ctypes

    arguments = (number, 0, IPC_RMID) if kind == "sem" else (number, IPC_RMID, None)
    getattr(ctypes.CDLL(None), SYSTEM_V[kind])(*arguments)


def _is_of(process: dict[str, Any], users: set[int] | None) -> bool:
    return bool(process["users"] & users) if users is not None else process["users"] != {0}


def _processes() -> list[dict[str, Any]]:
    """Return all processes but the first, each with the letter of its state."""
    told = []
    for name in os.listdir("/proc"):
        # gone meanwhile
        with contextlib.suppress(OSError):
            if name.isdigit() and name != "1":
                with open(f"/proc/{name}/status") as file:
                    fields = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
                users = {int(user) for user in fields["Uid"].split()}
                state = fields["State"].split()[0]
                resident = 1024 * int(fields.get("VmRSS", "0").split()[0])
                told.append(
                    {
                        "pid": int(name),
                        "name": fields["Name"].strip(),
                        "users": users,
                        "state": state,
                        "resident": resident,
                    }
                )
    return told


def _ancestors() -> set[int]:
    pid, ours = os.getpid(), set()
    while pid > 0:
        ours.add(pid)
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
    return ours
