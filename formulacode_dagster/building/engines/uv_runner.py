"""Runs `uv pip compile` for source distributions: their code runs, so an engine isolates it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

PYLOCK = "pylock.toml"


@dataclass(frozen=True)
class UvCall:
    """One call of `uv pip compile` in a folder that holds *files*; it writes the lock to `pylock.toml` there."""

    arguments: tuple[str, ...]
    files: Mapping[str, str]
    requirements: str
    """Standard input."""


@dataclass(frozen=True)
class UvResult:
    """Exit status of uv; `pylock` is its output if `rc` is 0."""

    rc: int
    pylock: str
    log: str
    timed_out: bool = False


class UvRunner(Protocol):
    """Runs uv where it may read source distributions, whose code then runs too."""

    name: str
    """Kind of isolation: results of one kind are not valid for another."""

    def compile(self, call: UvCall, *, python: str, index: Mapping[str, str], timeout: float) -> UvResult:
        """Make *call* with the interpreter *python* (`3.12`), in at most *timeout* seconds.

        *index* are uv's variables for another index than its default.
        """
