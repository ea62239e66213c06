"""The parts a build is made of beside its lock, and what a repair rule changes about it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath

from pydantic import Field, field_validator

from .base import Frozen

_SHELLS = frozenset({"bash", "dash", "sh", "zsh"})


class OnFailure(StrEnum):
    """What a command's failure means. There is no third way: nothing is swallowed."""

    STOP = "stop"
    """The build fails."""
    RECORD = "record"
    """The build goes on; command and exit code are in the build's log and in the attempt."""


class Command(Frozen):
    """A program and its arguments, run without a shell."""

    argv: tuple[str, ...] = Field(min_length=1)
    folder: str = Field(default=".", description="folder below the repository it runs in")
    on_failure: OnFailure
    source: str = Field(description="who asks for it: `asv.conf.json:build_command`, a repair rule …")

    @field_validator("argv")
    @classmethod
    def _swallows_nothing(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        if PurePosixPath(argv[0]).name in _SHELLS and any("||" in word for word in argv[1:]):
            raise ValueError(f"{argv[0]} with `||` hides failures: say so in `on_failure`")
        return argv


class FilePatch(Frozen):
    """A unified diff for the copy that is built; the checkout stays as the commit has it."""

    diff: str
    reason: str


class ExtraFile(Frozen):
    """A text file laid into the copy that is built."""

    path: str = Field(description="below the repository")
    content: str
    reason: str


class Submodule(Frozen):
    """A submodule of the base commit, laid into the copy that is built."""

    path: str
    repository: str = Field(description="`owner/name` on the same GitHub")
    sha: str


class Isolation(StrEnum):
    """Where the build requirements are installed."""

    SHARED = "shared"
    """In the environment the package then runs in, as asv does."""
    APART = "apart"
    """In an environment of their own (PEP 517's isolation, but locked), where they contradict what runs."""


class InstallMode(StrEnum):
    """How the package is installed from its sources."""

    WHEEL = "wheel"
    """PEP 517: build a wheel, install it."""
    SETUP_PY = "setup_py"
    """`setup.py install`, for what predates wheels."""


class Fix(Frozen):
    """What one repair rule asks for, on the evidence of one log. All of it is kept with the build."""

    rule: str = Field(description="name of the rule in the table")
    evidence: str = Field(description="line of the log that made the rule fire")
    apt_packages: tuple[str, ...] = ()
    without_apt_packages: tuple[str, ...] = Field(default=(), description="Debian packages that are left out")
    requirements: tuple[str, ...] = Field(default=(), description="added to the lock, run time and build alike")
    constraints: tuple[str, ...] = Field(default=(), description="bounds on what the lock may hold: `cython<3`")
    environment: dict[str, str] = Field(default_factory=dict, description="variables set while building")
    commands: tuple[Command, ...] = ()
    patches: tuple[FilePatch, ...] = ()
    files: tuple[ExtraFile, ...] = ()
    submodules: bool = Field(default=False, description="lay the base commit's submodules into the build")
    isolation: Isolation | None = None
    install_mode: InstallMode | None = None
    step_down: bool = Field(default=False, description="take the next interpreter of the ladder")

    def asks_the_same(self, other: Fix) -> bool:
        """Whether *other* is of the same rule and asks for the same, on whatever evidence."""
        return self.model_copy(update={"evidence": ""}) == other.model_copy(update={"evidence": ""})
