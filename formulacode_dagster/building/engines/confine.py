"""Runs one command under strict limits, and leaves no process behind. A script: `python -I confine.py BOUNDS`.

It runs for every sample of a measurement, so it imports little, all of it from the standard library: not even `json`,
`signal` or `socket`, which cost more than everything else. BOUNDS is a dictionary, by `marshal`, in hexadecimal digits.
The limits also hold for processes that leave their group or session: this script is their child subreaper, and it kills
all descendants when the command ends, or when the pipe `lifeline` closes because its caller ends the run or is gone.
"""

from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import resource
import select
import struct
import sys

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
AF_INET = 2
SOCK_DGRAM = 2
SIGKILL = 9
CAPABILITIES = 64
CAPABILITY_VERSION = 0x20080522
CANNOT_CONFINE = 125


def main() -> int:
    """Run the command that the argument describes; its own status, or 128 + the signal that ended it."""
    task = marshal.loads(bytes.fromhex(sys.argv[1]))  # noqa: S302 - of our own process, and of the same interpreter
    lifeline: int = task["lifeline"]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        try:
            os.close(lifeline)
            os.setsid()
            network = CLONE_NEWNET if task["isolate_network"] else 0
            left = task["apart"] and leave_user(libc, network)
            if network and not left and libc.unshare(network) != 0:
                raise PermissionError(ctypes.get_errno(), "no network namespace allowed here")
            if network:
                raise_loopback(libc)
            if task["apart"] and not left:
                give_up_capabilities(libc)
            if task["limits"] is not None:
                limit(task["limits"], counted_beside(os.getuid(), left))
            libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            os.execvpe(task["argv"][0], task["argv"], os.environ)  # noqa: S606 - this script exists to start it
        except OSError as error:
            os.write(2, f"cannot start {task['argv'][0]}: {error}\n".encode())
            os._exit(127 if isinstance(error, FileNotFoundError) else CANNOT_CONFINE)
    # the child is not to look in here, either; it needs its own files of /proc until it is started
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    ended = wait(child, lifeline)
    kill_descendants()
    if not ended:
        return 128 + SIGKILL
    return os.waitstatus_to_exitcode(ended[0]) if os.WIFEXITED(ended[0]) else 128 + os.WTERMSIG(ended[0])


def wait(child: int, lifeline: int) -> tuple[int] | None:
    """Reap *child* and return its status; None when *lifeline* closed first."""
    pidfd = os.pidfd_open(child)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(lifeline, select.POLLIN | select.POLLHUP)
    ready = {fd for fd, _ in poll.poll()}
    os.close(pidfd)
    return (os.waitpid(child, 0)[1],) if pidfd in ready else None


def leave_user(libc: ctypes.CDLL, more: int) -> bool:
    """Move to new namespaces (*more*, by flags) if users may; return False if they may not.

    From there no process outside can be inspected: the kernel protects the memory and environment of the platform and
    its user's other programs, although the user is the same.
    """
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | more) != 0:
        return False
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{user} {user} 1")
    write("/proc/self/gid_map", f"{group} {group} 1")
    return True


def give_up_capabilities(libc: ctypes.CDLL) -> None:
    """The capability that lets root inspect processes of root with more capabilities; no other user has it."""
    for capability in range(CAPABILITIES):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.capset(struct.pack("Ii", CAPABILITY_VERSION, 0), bytes(24))


def raise_loopback(libc: ctypes.CDLL) -> None:
    """Start the loopback interface, the only one of a new network."""
    probe = libc.socket(AF_INET, SOCK_DGRAM, 0)
    request = struct.pack("16sH14s", b"lo", 0, b"")
    (flags,) = struct.unpack_from("H", fcntl.ioctl(probe, SIOCGIFFLAGS, request), 16)
    fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | IFF_UP, b""))
    os.close(probe)


def limit(bounds: dict[str, int], others: int) -> None:
    """Set priority, processors and resource limits; never above the hard limits that are there already.

    *others* are the threads that the kernel counts in addition to those of the command.
    """
    os.nice(bounds["nice"])
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[: max(1, bounds["cpus"])])
    wanted = {
        resource.RLIMIT_DATA: bounds["memory_bytes"],
        resource.RLIMIT_CPU: bounds["cpu_seconds"],
        resource.RLIMIT_FSIZE: bounds["file_bytes"],
        resource.RLIMIT_NPROC: bounds["processes"] + others,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        lowered = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (lowered, lowered))


def counted_beside(user: int, left: bool) -> int:
    """Return the threads that the kernel counts in addition to the command's against a limit of *user*, who *left* or
    did not.

    The limit never applies to root, and Linux counts a user namespace by itself since 5.14: with many processes,
    inspecting each takes a while.
    """
    if user == 0 or (left and kernel_version() >= (5, 14)):
        return 0
    total = 0
    for folder in process_folders():
        try:
            if os.stat(folder).st_uid == user:
                total += len(os.listdir(f"{folder}/task"))
        except OSError:
            continue
    return total


def kernel_version() -> tuple[int, int]:
    """Major and minor."""
    major, minor = os.uname().release.partition("-")[0].split(".")[:2]
    return int(major), int(minor)


def process_folders() -> list[str]:
    """The folders of all processes in `/proc`."""
    return [f"/proc/{name}" for name in os.listdir("/proc") if name.isdigit()]


def write(path: str, text: str) -> None:
    """Write a file of `/proc`."""
    with open(path, "w") as file:
        file.write(text)


def kill_descendants() -> None:
    """Kill and reap until nothing is left below this process."""
    while has_children() and (processes := descendants(os.getpid())):
        for pid in processes:
            try:
                os.kill(pid, SIGKILL)
            except ProcessLookupError:
                continue
        while True:
            try:
                if os.waitpid(-1, 0) == (0, 0):
                    break
            except ChildProcessError:
                break


def has_children() -> bool:
    """Return True if any descendant of this child subreaper is left: cheaper than listing them."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants(root: int) -> list[int]:
    """All live processes below *root*."""
    parents: dict[int, int] = {}
    for folder in process_folders():
        try:
            with open(f"{folder}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        parents[int(folder.rpartition("/")[2])] = int(fields[1])
    processes = {root}
    while more := {pid for pid, parent in parents.items() if parent in processes} - processes:
        processes |= more
    return sorted(processes - {root})


if __name__ == "__main__":
    sys.exit(main())
