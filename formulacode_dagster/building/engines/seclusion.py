"""Keeps what this process holds from code of others that runs as the same user, where that cannot be set apart."""

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
    """Whether code of others is kept out by the kernel: in a user namespace, or, for root, without its capabilities."""
    if os.getuid() == 0:
        return True
    command = [sys.executable, "-I", "-S", "-c", _LEAVE]
    return subprocess.run(command, capture_output=True, check=False, env={}).returncode == 0


def seclude() -> None:
    """Make environment and memory of this process root's to read, where code of others would run as we do.

    No debugger of this user's can be attached to it then, and it leaves no core.
    """
    if not is_set_apart():
        ctypes.CDLL(None).prctl(confine.PR_SET_DUMPABLE, 0, 0, 0, 0)
