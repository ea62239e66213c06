"""The changes an agent may make to a build: `edit.toml` of its workspace, and the fix it becomes.

Anything that is not a field here cannot be changed: no file of the repository, no patch, nothing that verifies or
measures.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.recipe import Command, Fix, InstallMode, Isolation, OnFailure

RULE = "agent"
"""Start of the rule of a fix that an agent made: `agent:claude`."""
LONGEST = 200
"""Characters of one name, bound, value or argument."""
MOST = 40
"""Entries of one kind."""

_Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST, pattern=r"^[^\x00-\x1f\x7f]+$")]
_Texts = Annotated[tuple[_Text, ...], Field(max_length=MOST)]

_SOURCES = "git ls-files -z | tar --create --no-recursion --ignore-failed-read --mtime=@0 --mode=0 --null -T -"
_SEALED = "$FC_SCRATCH/wheels/sources.sha256"
_SEAL = f'{_SOURCES} | sha256sum >"{_SEALED}"'
_CHECK = f"""if ! {_SOURCES} | sha256sum --check --status "{_SEALED}"; then
    echo "the pre-build commands changed files of the repository" >&2
    exit 1
fi"""


class PreBuildCommand(Frozen):
    """A program of the image or of the repository, run in the copy that is built, without shell and network."""

    argv: _Texts = Field(min_length=1)
    folder: _Text = Field(default=".", description="folder below the repository it runs in")


class SpecEdit(Frozen):
    """Changes an agent requests in addition to the plan."""

    reason: str = Field(default="", max_length=2000, description="what of the log it answers")
    system_packages: _Texts = Field(default=(), description="Debian packages that are added")
    without_system_packages: _Texts = Field(default=(), description="Debian packages that are left out")
    requirements: _Texts = Field(default=(), description="added to the lock, run time and build alike")
    constraints: _Texts = Field(default=(), description="constraints on the lock: `cython<3`")
    environment: Annotated[dict[_Text, _Text], Field(max_length=MOST)] = Field(
        default_factory=dict, description="variables set while building"
    )
    build_arguments: _Texts = Field(
        default=(), description="settings of the build backend, where a wheel is built: `setup-args=-Dblas=openblas`"
    )
    pre_build: Annotated[tuple[PreBuildCommand, ...], Field(max_length=MOST)] = Field(
        default=(), description="run in this order before the package is built; no tracked file may change"
    )
    submodules: bool = Field(default=False, description="lay the base commit's submodules into the build")
    python: Annotated[str, StringConstraints(pattern=r"^(3\.\d{1,2})?$")] = Field(
        default="", description="the interpreter to take, one of those in pythons.json; empty: the one that was planned"
    )
    isolation: Isolation | None = None
    install_mode: InstallMode | None = None

    @property
    def is_empty(self) -> bool:
        """Return True if it requests nothing; a reason without a change is nothing."""
        return self.asks_the_same(SpecEdit())

    def asks_the_same(self, other: SpecEdit) -> bool:
        """Return True if *other* requests the same, for any reason."""
        return self.model_copy(update={"reason": ""}) == other.model_copy(update={"reason": ""})

    def as_fix(self, agent: str) -> Fix:
        """The fix that *agent* made, for `plan_environment` and `with_fixes`, as any rule's is."""
        return Fix(
            rule=f"{RULE}:{agent}",
            evidence=self.reason,
            apt_packages=self.system_packages,
            without_apt_packages=self.without_system_packages,
            requirements=self.requirements,
            constraints=self.constraints,
            environment=self.environment,
            build_arguments=self.build_arguments,
            commands=self._commands(agent),
            submodules=self.submodules,
            isolation=self.isolation,
            install_mode=self.install_mode,
            python=self.python,
        )

    def _commands(self, agent: str) -> tuple[Command, ...]:
        """The commands, between two that restore the repository's files."""
        if not self.pre_build:
            return ()
        # unique to this edit: equal commands of two fixes run once
        source = f"{RULE}:{agent}: {' && '.join(' '.join(command.argv) for command in self.pre_build)}"
        return (
            _shell(_SEAL, f"sources as before {source}"),
            *(
                Command(argv=command.argv, folder=command.folder, on_failure=OnFailure.STOP, source=source)
                for command in self.pre_build
            ),
            _shell(_CHECK, f"sources as after {source}"),
        )


def _shell(script: str, source: str) -> Command:
    return Command(argv=("bash", "-euo", "pipefail", "-c", script), on_failure=OnFailure.STOP, source=source)
