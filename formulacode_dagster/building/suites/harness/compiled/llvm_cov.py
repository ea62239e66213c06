"""Execution counts of lines of Rust from LLVM's source-based coverage (rustc's `-C instrument-coverage`)."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import mmap
import os
import re
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

from ..lines import which_file
from .gcov import add_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

TOOL_SECONDS = 60
WRITING_SECONDS = 30
COUNTED = b"__llvm_covmap"
"""Section of an object whose lines are counted."""


class LlvmCounts:
    """Counts lines of *paths*, in objects compiled to write their counts; *data* is a folder for them.

    It is made before those are loaded. Their counts are written when a process ends, by internal functions only: so a
    copy of this process is ended whenever they are requested.
    """

    def __init__(self, data: str, paths: Sequence[str]) -> None:
        self._paths = paths
        self._folder = os.path.join(data, "llvm")
        self._objects: list[str] = []
        self._tools: dict[str, str] = {}
        self._before: dict[str, dict[int, int]] = {}
        os.makedirs(self._folder, exist_ok=True)
        # a file for each object
        os.environ["LLVM_PROFILE_FILE"] = os.path.join(self._folder, "%m.profraw")

    def countable(self) -> dict[str, dict[int, int]]:
        """The lines that are counted at all; none without LLVM's tools of the compiler's version."""
        self._objects = _counted_objects()
        self._tools = _tools() if self._objects else {}
        return {path: dict.fromkeys(lines, 0) for path, lines in self._counts().items()}

    def start(self) -> None:
        """Count from now on."""
        self._before = self._counts()

    def counts(self) -> dict[str, dict[int, int]]:
        """Return how often each line ran since `start`."""
        now = self._counts()
        for path, lines in self._before.items():
            add_counts(now, {path: {line: -count for line, count in lines.items()}})
        return now

    def _counts(self) -> dict[str, dict[int, int]]:
        """Return how often each line of the wanted files ran up to now."""
        counts: dict[str, dict[int, int]] = {}
        if not self._tools:
            return counts
        for old in self._written():
            os.unlink(old)
        _end_a_copy()
        merged = os.path.join(self._folder, "merged")
        first, *others = self._objects
        more = [part for path in others for part in ("-object", path)]
        try:
            _told([self._tools["llvm-profdata"], "merge", "-sparse", "-o", merged, *self._written()])
            export = [self._tools["llvm-cov"], "export", "-format=lcov", f"-instr-profile={merged}", first, *more]
            told = _told(export)
        except (OSError, subprocess.SubprocessError):
            # tools of another version: nothing is counted, which `countable` reports
            return counts
        path: str | None = None
        for line in told.split("\n"):
            if line.startswith("SF:"):
                path = which_file(line[3:], self._paths)
            elif line.startswith("DA:") and path is not None:
                number, count = line[3:].split(",")[:2]
                add_counts(counts, {path: {int(number): int(count)}})
        return counts

    def _written(self) -> list[str]:
        return glob.glob(os.path.join(glob.escape(self._folder), "*.profraw"))


def _end_a_copy() -> None:
    """End a copy of this process as C programs end, silently, and within a limit."""
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(WRITING_SECONDS)
        ctypes.CDLL(None).exit(0)
    os.waitpid(child, 0)


def _counted_objects() -> list[str]:
    """The shared objects of this process whose lines are counted."""
    with open("/proc/self/maps") as file:
        mapped = {line.split(None, 5)[-1].rstrip("\n") for line in file if ".so" in line}
    found = []
    for path in sorted(mapped):
        with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if content.find(COUNTED) >= 0:
                found.append(path)
            content.close()
    return found


def _tools() -> dict[str, str]:
    """Return LLVM's programs of rustc's version; empty if one is missing."""
    folders, version = "", ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        folders = os.path.join(os.path.dirname(_told(["rustc", "--print", "target-libdir"]).strip()), "bin")
        match = re.search(r"^LLVM version: (\d+)", _told(["rustc", "-vV"]), re.MULTILINE)
        version = match[1] if match else ""
    tools = {}
    for name in ("llvm-profdata", "llvm-cov"):
        tool = shutil.which(name, path=folders) or shutil.which(f"{name}-{version}") or shutil.which(name)
        if tool is None:
            return {}
        tools[name] = tool
    return tools


def _told(command: Sequence[str]) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=TOOL_SECONDS, check=True)
    return done.stdout.decode(errors="replace")
