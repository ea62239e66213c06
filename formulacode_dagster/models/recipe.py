"""Parts of a build besides its lock, changes that repair rules make to them, and stored recipes."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Self

from pydantic import Field, field_validator

from .base import Frozen

_SHELLS = frozenset({"bash", "dash", "sh", "zsh"})


class OnFailure(StrEnum):
    """Consequence of a command's failure. There is no third way: no failure is ignored."""

    STOP = "stop"
    """The build fails."""
    RECORD = "record"
    """The build continues; command and exit code are in the build's log and in the attempt."""


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
    """A text file added to the copy that is built."""

    path: str = Field(description="below the repository")
    content: str
    reason: str


class Submodule(Frozen):
    """A submodule of the base commit, added to the copy that is built."""

    path: str
    repository: str = Field(description="`owner/name` on the same GitHub")
    sha: str


class Isolation(StrEnum):
    """Where the build requirements are installed."""

    SHARED = "shared"
    """In the environment in which the package runs, as asv does."""
    APART = "apart"
    """In a separate environment (PEP 517's isolation, but locked), if they conflict with the runtime requirements."""


class InstallMode(StrEnum):
    """How the package is installed from its sources."""

    WHEEL = "wheel"
    """PEP 517: build a wheel, install it."""
    SETUP_PY = "setup_py"
    """`setup.py install`, for packages older than wheels."""


class Fix(Frozen):
    """Changes requested by one repair rule, with the log line as evidence. They are stored with the build."""

    rule: str = Field(description="name of the rule in the table")
    evidence: str = Field(description="line of the log that made the rule fire")
    apt_packages: tuple[str, ...] = ()
    without_apt_packages: tuple[str, ...] = Field(default=(), description="Debian packages that are left out")
    requirements: tuple[str, ...] = Field(default=(), description="added to the lock, run time and build alike")
    constraints: tuple[str, ...] = Field(default=(), description="constraints on the lock: `cython<3`")
    environment: dict[str, str] = Field(default_factory=dict, description="variables set while building")
    commands: tuple[Command, ...] = ()
    patches: tuple[FilePatch, ...] = ()
    files: tuple[ExtraFile, ...] = ()
    submodules: bool = Field(default=False, description="lay the base commit's submodules into the build")
    isolation: Isolation | None = None
    install_mode: InstallMode | None = None
    build_arguments: tuple[str, ...] = Field(
        default=(), description="PEP 517's settings of the build backend: `setup-args=-Dblas=openblas`"
    )
    step_down: bool = Field(default=False, description="take the next interpreter of the ladder")
    python: str = Field(default="", description="take this one of the declared interpreters: `3.9`")

    @property
    def bears_on_lock(self) -> bool:
        """True if a different lock, or none, may result from it."""
        return bool(self.requirements or self.constraints or self.python or self.step_down)

    def asks_the_same(self, other: Fix) -> bool:
        """Return True if *other* comes from the same rule and requests the same changes, on any evidence."""
        return self.model_copy(update={"evidence": ""}) == other.model_copy(update={"evidence": ""})


class ContextOrigin(StrEnum):
    """Origin of a context."""

    DECLARED = "declared"
    """The declarations were enough."""
    RULES = "rules"
    AGENT = "agent"
    IMPORTED = "imported"
    """A person's folder, imported as a recipe."""


class StoredContext(Frozen):
    """The recipe of one commit: stored when an image made by it passes, or when a person imports one."""

    context_id: str = Field(description="16 hexadecimal digits over commit, recipe and files")
    repository_id: int
    repository: str = Field(description="`owner/repo`")
    number: int = Field(description="pull request whose base the commit is")
    base_sha: str
    merged_at: datetime
    provenance: ContextOrigin
    made_by: str = Field(default="", description="rules, agent or folder that it comes from")
    created_at: datetime
    held_at: datetime | None = Field(default=None, description="when an image made by it last held; None: not yet")
    digest: str = Field(default="", description="of that image")
    fixes: tuple[Fix, ...] = ()
    requirements: tuple[str, ...] = Field(
        default=(), description="declared requirements of the commit, at run time and build time"
    )
    build_files: dict[str, str] = Field(default_factory=dict, description="its build files, by path, as short hashes")
    files: dict[str, str] = Field(default_factory=dict, description="the folder it was imported from, by name")

    @classmethod
    def of(cls, *, repository_id: int, base_sha: str, fixes: tuple[Fix, ...], **more: object) -> Self:
        """Return a context whose id follows from its content; the log lines that rules matched are not part of it."""
        recipe = [fix.model_dump(mode="json", exclude={"evidence"}) for fix in fixes]
        content = json.dumps([repository_id, base_sha, recipe, more.get("files", {})], sort_keys=True)
        context_id = hashlib.sha256(content.encode()).hexdigest()[:16]
        given = {"repository_id": repository_id, "base_sha": base_sha, "fixes": fixes, **more}
        return cls.model_validate({"context_id": context_id, **given})

    @property
    def newest(self) -> datetime:
        """When it last held, or was made."""
        return max(filter(None, (self.held_at, self.created_at)))
