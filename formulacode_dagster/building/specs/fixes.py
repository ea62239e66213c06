"""Changes of fixes to a build, except to its plan: the resolver handles requirements, constraints and interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.recipe import Fix

T = TypeVar("T")

_JOINED = {
    "CFLAGS": " ",
    "CPATH": ":",
    "CPPFLAGS": " ",
    "CXXFLAGS": " ",
    "FCFLAGS": " ",
    "FFLAGS": " ",
    "LDFLAGS": " ",
    "LIBRARY_PATH": ":",
}
"""Variables that hold lists, and their separators."""


def with_fixes(spec: BuildSpec, fixes: Sequence[Fix]) -> BuildSpec:
    """Return *spec* with the requests of *fixes*, in their order; applying the same again changes nothing.

    `requirements`, `constraints`, `step_down`, `python` and `submodules` are for `plan_environment`, of no effect here.
    """
    for fix in fixes:
        spec = _with_fix(spec, fix)
    return spec


def _with_fix(spec: BuildSpec, fix: Fix) -> BuildSpec:
    variables = dict(spec.build_environment)
    for name, value in fix.environment.items():
        variables[name] = _joined(name, variables.get(name, ""), value)
    return spec.model_copy(
        update={
            "apt_packages": _with(_without(spec.apt_packages, fix.without_apt_packages), fix.apt_packages),
            "build_environment": variables,
            "commands": _with(spec.commands, fix.commands),
            "patches": _with(spec.patches, fix.patches),
            "files": _with(spec.files, fix.files),
            "isolation": fix.isolation or spec.isolation,
            "build_arguments": _with(spec.build_arguments, fix.build_arguments),
            "install_mode": fix.install_mode or spec.install_mode,
        }
    )


def _with(old: tuple[T, ...], new: tuple[T, ...]) -> tuple[T, ...]:
    return (*old, *(item for item in new if item not in old))


def _without(old: tuple[T, ...], gone: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(item for item in old if item not in gone)


def _joined(name: str, old: str, new: str) -> str:
    separator = _JOINED.get(name)
    if separator is None or not old:
        return new
    present = f"{separator}{new}{separator}" in f"{separator}{old}{separator}"
    return old if present else f"{old}{separator}{new}"
