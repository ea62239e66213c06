"""The first process of a session's container: it runs commands, one after the other, as they are asked for.

It runs in the image's own interpreter, Python 3.7 or later. What it starts runs as the same user and is not trusted:
the kernel delivers no signal to the first process that it has no handler for, and what is not dumpable has no files
below `/proc` that this user may open. See prctl(2), signal(7), pid_namespaces(7).

A request is the length of a header (four bytes, network order), the header (JSON: `argv`, `cwd`, `environment`,
`stdin`, its length or null, and `most`, the bytes that are kept of each stream), and the standard input. The answer is
frames of a kind (a byte), a length (four bytes) and a content: `o` and `e`, output and errors, then `x`, JSON with `rc`
and `survivors`, whether processes of the command are left. It ends with its own standard input.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from typing import IO, Any

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
CHUNK = 65536
PAGES = 16
"""Of a pipe: each holds at least one write."""
LOOKS, LOOK_SECONDS = 6, 0.01
"""How often, and how far apart, it is seen whether processes are left: those of a command that ends are just ending."""
NOT_STARTED, NOT_FOUND = 126, 127
"""Status of a command that could not be started, as of a shell."""


class Stream:
    """An output of a command: the kind of its frames, and how many bytes of it are still sent."""

    def __init__(self, kind: bytes, most: int) -> None:
        self.kind, self.most = kind, most


def main() -> None:
    """Serve until standard input ends, or for the seconds of the first argument."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) or library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("prctl failed: " + os.strerror(ctypes.get_errno()))
    # Python's own handler would let anybody end it
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    ends_at = time.monotonic() + float(sys.argv[1])
    while True:
        (length,) = struct.unpack("!I", read_exactly(4, ends_at))
        header = json.loads(read_exactly(length, ends_at).decode())
        stdin = None if header["stdin"] is None else read_exactly(header["stdin"], ends_at)
        run(header, stdin, reading, ends_at)


def read_exactly(size: int, ends_at: float) -> bytes:
    """Read *size* bytes of standard input; end with it, or when the time is over."""
    parts = []
    while size:
        part = os.read(0, size) if select.select([0], [], [], max(0.0, ends_at - time.monotonic()))[0] else b""
        if not part:
            sys.exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(kind: bytes, content: bytes) -> None:
    """Write a frame."""
    frame = memoryview(struct.pack("!cI", kind, len(content)) + content)
    while frame:
        frame = frame[os.write(1, frame) :]


def run(header: dict[str, Any], stdin: bytes | None, child_ended: int, ends_at: float) -> None:
    """Run a command and send what it writes, its status, and whether processes of it are left."""
    try:
        process = subprocess.Popen(
            header["argv"],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=header["cwd"],
            env=dict(os.environ, **header["environment"]),
            start_new_session=True,
        )
    except OSError as error:
        send(b"e", str(error).encode())
        rc = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
        send(b"x", json.dumps({"rc": rc, "survivors": False}).encode())
        return
    streams = {
        number_of(process.stdout): Stream(b"o", header["most"]),
        number_of(process.stderr): Stream(b"e", header["most"]),
    }
    status = forward(process, streams, memoryview(stdin or b""), child_ended, ends_at)
    for pipe in (process.stdin, process.stdout, process.stderr):
        close(pipe)
    # it is reaped already
    process.returncode = 0
    rc = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    send(b"x", json.dumps({"rc": rc, "survivors": are_left()}).encode())


def forward(
    process: subprocess.Popen[bytes], streams: dict[int, Stream], stdin: memoryview, child_ended: int, ends_at: float
) -> int:
    """Pass on what *process* reads and writes until it ends; return its status."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(child_ended, select.POLLIN)
    for number in streams:
        os.set_blocking(number, False)
        poll.register(number, select.POLLIN)
    feeding = number_of(process.stdin)
    if feeding >= 0:
        os.set_blocking(feeding, False)
        poll.register(feeding, select.POLLOUT)
    while True:
        left = ends_at - time.monotonic()
        ready = dict(poll.poll(1000 * left)) if left > 0 else {0: select.POLLHUP}
        if 0 in ready:
            # whoever asked is gone: nobody sends a request before the answer
            sys.exit(0)
        if feeding in ready:
            try:
                stdin = stdin[os.write(feeding, stdin[:CHUNK]) :]
            except OSError:
                stdin = stdin[:0]
            if not stdin:
                poll.unregister(feeding)
                close(process.stdin)
                feeding = -1
        for number in [number for number in ready if number in streams]:
            if pass_on(number, streams[number]) == 0:
                poll.unregister(number)
                del streams[number]
        if child_ended in ready:
            os.read(child_ended, CHUNK)
            status = reaped(process.pid)
            if status is not None:
                for number, stream in streams.items():
                    # a pipe holds 64 KiB; what others go on writing is not the command's
                    for _ in range(PAGES):
                        if not pass_on(number, stream):
                            break
                return status


def pass_on(number: int, stream: Stream) -> int | None:
    """Send what *stream* has, up to its most; return how many bytes were read, 0 at its end, None for nothing yet."""
    try:
        content = os.read(number, CHUNK)
    except BlockingIOError:
        return None
    kept = content[: stream.most]
    if kept:
        send(stream.kind, kept)
        stream.most -= len(kept)
    return len(content)


def number_of(pipe: IO[bytes] | None) -> int:
    """Return the file descriptor of *pipe*, -1 if there is none."""
    return -1 if pipe is None else pipe.fileno()


def close(pipe: IO[bytes] | None) -> None:
    """Close *pipe*, whose other end may be gone."""
    if pipe is not None:
        with suppress(OSError):
            pipe.close()


def reaped(pid: int) -> int | None:
    """Collect all that have ended; return the status of *pid* if it is among them."""
    status = None
    while True:
        try:
            ended, its_status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if ended == 0:
            return status
        if ended == pid:
            status = its_status


def are_left() -> bool:
    """Return True if there are processes: all of a command become children of this one."""
    for _ in range(LOOKS):
        reaped(0)
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        time.sleep(LOOK_SECONDS)
    return True


if __name__ == "__main__":
    main()
