"""Valgrind's callgrind, which counts the instructions of a process: one static program, which runs in any image.

Source: https://valgrind.org/docs/manual/cl-manual.html.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .protocol import Session

FOLDERS = (Path("/usr/libexec/valgrind"), Path("/usr/local/libexec/valgrind"), Path("/usr/lib/valgrind"))
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Callgrind:
    """The tool as it is installed on this machine."""

    program: Path
    preloaded: Path

    @classmethod
    def find(cls) -> Callgrind | None:
        """Return the tool; None if valgrind is not installed."""
        name = f"{ARCHITECTURES.get(platform.machine(), '')}-linux"
        for folder in FOLDERS:
            tool = cls(folder / f"callgrind-{name}", folder / f"vgpreload_core-{name}.so")
            if tool.program.is_file() and tool.preloaded.is_file():
                return tool
        return None

    def install(self, session: Session) -> CallgrindCommand:
        """Place the tool in *session*."""
        session.put(self.preloaded.name, self.preloaded.read_bytes())
        return CallgrindCommand(
            session.put(self.program.name, self.program.read_bytes(), executable=True), session.harness
        )


@dataclass(frozen=True)
class CallgrindCommand:
    """The tool within a session."""

    program: str
    folder: str
    counts: str = "callgrind.counts"
    """Beginning of the names of its files, in the working directory; the process's number follows, and a count."""

    @property
    def argv(self) -> tuple[str, ...]:
        """Arguments that precede a command which asks for its instructions to be counted."""
        # until then it is several times as fast
        options = ("--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={self.counts}.%p", "--quiet")
        # the files that these name are not there
        return (self.program, *options, "--default-suppressions=no", "--vgdb=no", "--trace-children=no")

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that the tool needs if its launcher did not start it."""
        return {"VALGRIND_LIB": self.folder, "VALGRIND_LAUNCHER": self.program}
