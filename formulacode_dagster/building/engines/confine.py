"""Runs one command under strict limits, and leaves no process behind. A script: `python -I confine.py BOUNDS`.

It runs for every sample of a measurement, so it imports little, all of it from the standard library: not even `json`,
`signal` or `socket`, which cost more than everything else. BOUNDS is a dictionary, by `marshal`, in hexadecimal digits.
The limits also hold for processes that leave their group or session: this script is their child subreaper, and it kills
all descendants when the command ends, or when the pipe `lifeline` closes because its caller ends the run or is gone.

With a *view*, the command runs in mount, process and IPC namespaces of its own: it has the folders of the view, the
system's programs and libraries, and no other process, file or socket of this machine. Root becomes another user there.
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
VIEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID
PR_SET_PDEATHSIG = 1
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
            if task["view"] is None:
                enter_namespaces(libc, task)
            else:
                enter_view(libc, task)
            libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            execute(task["argv"])
        except OSError as error:
            os.write(2, f"cannot start {task['argv'][0]}: {error}\n".encode())
            os._exit(127 if isinstance(error, FileNotFoundError) else CANNOT_CONFINE)
    # the child is not to look in here, either; it needs its own files of /proc until it is started
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    ended = wait(child, lifeline)
    kill_descendants()
    return status_of(ended[0]) if ended else 128 + SIGKILL


def execute(argv: list[str]) -> None:
    """Become the command *argv*; raises OSError.

    `os.execvp` would import a module, and this interpreter may be out of view.
    """
    failure: OSError = FileNotFoundError(2, os.strerror(2))
    for folder in [""] if "/" in argv[0] else os.environ.get("PATH", os.defpath).split(":"):
        try:
            os.execv(os.path.join(folder, argv[0]), argv)  # noqa: S606 - this script exists to start it
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            failure = error
    raise failure


def status_of(ended: int) -> int:
    """Its own status, or 128 + the signal that ended it."""
    return os.waitstatus_to_exitcode(ended) if os.WIFEXITED(ended) else 128 + os.WTERMSIG(ended)


def enter_namespaces(libc: ctypes.CDLL, task: dict[str, Any]) -> None:
    """Isolate and limit this process, which sees the files of the machine; raises OSError if it must not run."""
    network = CLONE_NEWNET if task["isolate_network"] else 0
    left = bool(task["apart"]) and leave_user(libc, network)
    if network and not left and libc.unshare(network) != 0:
        raise PermissionError(ctypes.get_errno(), "no network namespace allowed here")
    if network:
        raise_loopback(libc)
    if task["apart"] and not left:
        give_up_capabilities(libc)
    if task["limits"] is not None:
        limit(task["limits"], counted_beside(os.getuid(), left))


def enter_view(libc: ctypes.CDLL, task: dict[str, Any]) -> None:
    """Return in the process that runs the command, in a view and limits of its own; raises OSError if it has none.

    The first process of its namespace waits for it, and takes all others with it when it ends.
    """
    # `-I` leaves our folder out, and bytecode lies in another; at the end, it hides no module of the standard library
    sys.path.append(task["modules"])
    mounts = __import__("view_mounts")
    user: int = task["view"]["user"]
    group: int = task["view"]["group"]
    network = CLONE_NEWNET if task["isolate_network"] else 0
    # with a count of its own, a view's limit of processes holds whatever other views run
    counts_alone = kernel_version() >= (5, 14)
    # root mounts as itself: another user could not reach an interpreter in root's home
    as_root = os.getuid() == 0 and libc.unshare(VIEW_NAMESPACES | network) == 0
    others = 0 if as_root else 2 + counted_beside(user, left=True)
    if not as_root and not leave_user(libc, VIEW_NAMESPACES | network):
        raise PermissionError(ctypes.get_errno(), "no user namespace allowed here")
    if network:
        raise_loopback(libc)
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    first = os.fork()
    if first:
        os._exit(status_of(os.waitpid(first, 0)[1]))
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    mounts.lay_view(libc, task["view"])
    os.chdir(task["cwd"])
    command = os.fork()
    if command:
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        while (ended := os.waitpid(-1, 0))[0] != command:
            continue
        os._exit(status_of(ended[1]))
    if as_root:
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
        # its own files of /proc are root's otherwise
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        counts_alone &= leave_user(libc, 0)
    give_up_capabilities(libc)
    if task["limits"] is not None:
        limit(task["limits"], others, processes=counts_alone or not as_root)


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


def limit(bounds: dict[str, int], others: int, processes: bool = True) -> None:
    """Set priority, processors and resource limits; never above the hard limits that are there already.

    *others* are the threads that the kernel counts in addition to those of the command; without *processes*, their
    number has no limit.
    """
    os.nice(bounds["nice"])
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[: max(1, bounds["cpus"])])
    wanted = {
        resource.RLIMIT_DATA: bounds["memory_bytes"],
        resource.RLIMIT_CPU: bounds["cpu_seconds"],
        resource.RLIMIT_FSIZE: bounds["file_bytes"],
        resource.RLIMIT_CORE: 0,
    }
    if processes:
        wanted[resource.RLIMIT_NPROC] = bounds["processes"] + others
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
