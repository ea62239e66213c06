"""Running `uv pip compile` where it reads source distributions: their code runs, so an engine lends the place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

PYLOCK = "pylock.toml"


@dataclass(frozen=True)
class UvCall:
    """One call of `uv pip compile`, made in a folder that holds *files*; the lock is written to `pylock.toml` there."""

    arguments: tuple[str, ...]
    files: Mapping[str, str]
    requirements: str
    """For the standard input."""


@dataclass(frozen=True)
class UvResult:
    """How uv ended; `pylock` is what it wrote when `rc` is 0."""

    rc: int
    pylock: str
    log: str
    timed_out: bool = False


class UvRunner(Protocol):
    """Where uv runs when it is to read source distributions, whose code then runs too."""

    name: str
    """Of the kind of place: answers of one kind do not stand for those of another."""

    def compile(self, call: UvCall, *, python: str, index: Mapping[str, str], timeout: float) -> UvResult:
        """Make *call* where the interpreter is *python* (`3.12`), in at most *timeout* seconds.

        *index* are uv's variables for another index than its default.
        """
