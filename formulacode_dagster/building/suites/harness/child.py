"""Runs something in a forked process, so that a hang or crash affects nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from typing import Callable, Dict  # noqa: UP035 - CPython 3.7 evaluates the alias below

from .suite import failure_message

Answer = Dict[str, object]  # noqa: UP006 - evaluated on CPython 3.7


def in_child(work: Callable[[], Answer], seconds: float) -> Answer:
    """Answer of *work*, or how it ended: outcome `error`, `timeout`, `crash`, or `killed`, most often for memory.

    Nothing it started survives.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(reader)
        _answer_and_exit(work, writer)
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    os.close(writer)
    try:
        received = _line(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if received is None:
        return {"outcome": "timeout", "message": f"still running after {seconds:.0f} s"}
    if not received.endswith(b"\n"):
        outcome = "killed" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else "crash"
        return {"outcome": outcome, "message": f"the process ended without a result, wait status {status}"}
    return dict(json.loads(received))


def _answer_and_exit(work: Callable[[], Answer], writer: int) -> None:
    try:
        answer = work()
    except BaseException:  # noqa: BLE001 - whatever a benchmark raises is its result
        answer = {"outcome": "error", "message": failure_message()}
    data = json.dumps(answer).encode() + b"\n"
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(writer, data) :]
    os._exit(0)


def _line(reader: int, deadline: float) -> bytes | None:
    """Return the output up to the end of a line; None if it does not arrive in time."""
    received = b""
    while not received.endswith(b"\n"):
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(reader, 65536)
        if not chunk:
            break
        received += chunk
    return received
