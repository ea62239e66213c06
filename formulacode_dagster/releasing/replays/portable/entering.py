"""Ways to run a command in an unpacked root file system, without a network and without this machine's files."""

from __future__ import annotations

import marshal
import os
import resource
import shutil
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE_USER = 1000
SHARED_MEMORY = 2 * 1024**3
FILE_BYTES = 8 * 1024**3


class Bind(NamedTuple):
    """A file or folder of this machine, laid over one of the image."""

    source: str
    inside: str
    writable: bool


class PlacedCommand(NamedTuple):
    """A command in a place: *root* with *binds*."""

    argv: list[str]
    cwd: str
    environment: dict[str, str]
    timeout: float
    root: str
    binds: list[Bind]
    limits: dict[str, int]
    """`memory_mb` and `processes`."""


class Way(NamedTuple):
    """A way into a root file system."""

    name: str
    program: str
    """That has to be on PATH; empty: none."""
    start: Callable[[PlacedCommand, str, int], list[str]]
    """The command line, from the folder of our tools and a pipe that is closed to end the command."""
    hands_on: bool = True
    """Whether the command has the variables of the process that starts it."""
    is_by_user: bool = False
    """Whether root starts it as the image's user, who has to own what it writes to."""


def _by_namespaces(command: PlacedCommand, tools: str, lifeline: int) -> list[str]:
    user, group = session_user()
    task = {
        "argv": command.argv,
        "lifeline": lifeline,
        "cwd": command.cwd,
        "modules": tools,
        "isolate_network": True,
        "apart": True,
        "view": {
            "user": user,
            "group": group,
            "root": command.root,
            "binds": [tuple(bind) for bind in command.binds],
            "memory_bytes": SHARED_MEMORY,
        },
        "limits": {
            "nice": 0,
            "cpus": os.cpu_count() or 1,
            "memory_bytes": command.limits["memory_mb"] * 1024**2,
            "processes": command.limits["processes"],
            "cpu_seconds": int(command.timeout * (os.cpu_count() or 1)) + 5,
            "file_bytes": FILE_BYTES,
        },
    }
    return [sys.executable, "-I", "-S", f"{tools}/confine.py", marshal.dumps(task).hex()]


def _by_bubblewrap(command: PlacedCommand, tools: str, lifeline: int) -> list[str]:  # noqa: ARG001 - one shape for all
    options = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--uid", str(IMAGE_USER), "--gid", str(IMAGE_USER), "--ro-bind", command.root, "/"]
    options += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys/devices/system", "/sys/devices/system"]
    for bind in command.binds:
        options += ["--bind" if bind.writable else "--ro-bind", bind.source, bind.inside]
    return [*options, "--chdir", command.cwd, "--", *command.argv]


def _by_podman(command: PlacedCommand, tools: str, lifeline: int) -> list[str]:  # noqa: ARG001
    options = ["podman", "run", "--rm", "--interactive", "--network=none", "--cap-drop=ALL", "--read-only"]
    options += ["--security-opt=no-new-privileges", f"--pids-limit={command.limits['processes']}"]
    if os.getuid():
        options += [f"--userns=keep-id:uid={IMAGE_USER},gid={IMAGE_USER}"]
    # its own defaults may be above what this process may set
    files, processes = resource.getrlimit(resource.RLIMIT_NOFILE)[1], command.limits["processes"]
    options += [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={processes}:{processes}"]
    options += [f"--user={IMAGE_USER}:{IMAGE_USER}", f"--workdir={command.cwd}"]
    options += [f"--volume={bind.source}:{bind.inside}:{'rw' if bind.writable else 'ro'}" for bind in command.binds]
    options += [f"--env={name}={value}" for name, value in command.environment.items()]
    return [*options, "--rootfs", command.root, *command.argv]


def _by_apptainer(command: PlacedCommand, tools: str, lifeline: int) -> list[str]:  # noqa: ARG001
    options = ["apptainer", "--silent", "exec", "--userns", "--containall", "--no-home", "--cleanenv"]
    options += ["--net", "--network=none", f"--pwd={command.cwd}"]
    for bind in command.binds:
        options += ["--bind", f"{bind.source}:{bind.inside}:{'rw' if bind.writable else 'ro'}"]
    for name, value in command.environment.items():
        options += ["--env", f"{name}={value}"]
    return [*options, command.root, *command.argv]


NAMESPACES = "namespaces"
WAYS = (
    Way(NAMESPACES, "", _by_namespaces, is_by_user=True),
    Way("bubblewrap", "bwrap", _by_bubblewrap),
    Way("podman", "podman", _by_podman, hands_on=False, is_by_user=True),
    Way("apptainer", "apptainer", _by_apptainer, hands_on=False),
)
"""In the order in which they are tried: the first starts in the shortest time, and its limits are the platform's."""


def installed(way: Way) -> bool:
    """Return True if the program of *way* is on this machine."""
    return not way.program or shutil.which(way.program) is not None


def session_user() -> tuple[int, int]:
    """User and group of a session in namespaces: ours, or the image's if we are root."""
    return (os.getuid(), os.getgid()) if os.getuid() else (IMAGE_USER, IMAGE_USER)
