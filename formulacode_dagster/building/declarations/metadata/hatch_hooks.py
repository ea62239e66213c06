"""Build hooks of hatchling: their requirements during the wheel build, and whether they are enabled."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.models.base import Frozen

from .tables import Table, declared, strings, tables_below

_YES = frozenset({"1", "true"})


class BuildHook(Frozen):
    """One hook of the wheel. hatchling installs its requirements only if it builds in isolation."""

    name: str
    needs: tuple[DeclaredRequirement, ...] = ()
    features: tuple[str, ...] = Field(default=(), description="extras of the project that it needs to build")
    enabled: bool = Field(default=True, description="what the project says; variables of the build may say otherwise")

    def is_on(self, variables: Mapping[str, str]) -> bool:
        """Return True if a build with these environment variables runs it (hatchling's `HATCH_BUILD_…`)."""

        def yes(name: str) -> bool:
            return variables.get(name, "").lower() in _YES

        own = self.name.upper()
        if yes("HATCH_BUILD_NO_HOOKS"):
            return False
        named = (f"HATCH_BUILD_HOOK_ENABLE_{own}", f"HATCH_BUILD_HOOK_ENABLE_{own.replace('-', '_')}")
        return self.enabled or yes("HATCH_BUILD_HOOKS_ENABLE") or any(map(yes, named))


def build_hooks(tool: Table, path: str) -> tuple[BuildHook, ...]:
    """The hooks that `tool.hatch.build` of the pyproject.toml at *path* names for wheels."""
    hooks: dict[str, BuildHook] = {}
    for place in (("build", "hooks"), ("build", "targets", "wheel", "hooks")):
        for name, table in tables_below(tool, "hatch", *place):
            source = ".".join((f"{path}:tool.hatch", *place, name))
            hooks[name] = BuildHook(
                name=name,
                needs=declared(table.get("dependencies"), source),
                features=tuple(strings(table.get("require-runtime-features"))),
                enabled=table.get("enable-by-default") is not False,
            )
    return tuple(hooks.values())
