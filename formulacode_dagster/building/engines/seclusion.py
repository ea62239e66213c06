"""Protects this process's memory from untrusted code of the same user, if that code cannot be isolated."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from functools import cache

from . import confine

_LEAVE = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare({confine.CLONE_NEWUSER}) != 0)"


@cache
def is_set_apart() -> bool:
    """Whether the kernel isolates untrusted code: in a user namespace, or, for root, without its capabilities."""
    if os.getuid() == 0:
        return True
    command = [sys.executable, "-I", "-S", "-c", _LEAVE]
    return subprocess.run(command, capture_output=True, check=False, env={}).returncode == 0


def seclude() -> None:
    """Restrict environment and memory of this process to root, if untrusted code runs as the same user.

    No debugger of this user's can be attached to it then, and it leaves no core.
    """
    if not is_set_apart():
        ctypes.CDLL(None).prctl(confine.PR_SET_DUMPABLE, 0, 0, 0, 0)
