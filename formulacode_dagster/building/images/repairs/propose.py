"""Proposes the next fix for one failure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.requirements import InvalidRequirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from formulacode_dagster.building.declarations.providers import (
    DependencyKind,
    Provider,
    provider_of,
    requirement_for_module,
)
from formulacode_dagster.building.declarations.python_source import parse_requirement
from formulacode_dagster.building.planning.lock import read_lock
from formulacode_dagster.building.specs.fixes import with_fixes
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.recipe import Fix

from .rules import Phase, RepairRule, phase_of, rules

EVIDENCE = 300
_DOCKER_PREFIX = re.compile(r"^(#\d+ )?\d+\.\d+ +")
_STEP = "$ "


@dataclass(frozen=True)
class FailureLog:
    """How an attempt ended: the tier or the verification, and its message."""

    stage: str
    text: str = field(repr=False)


@dataclass(frozen=True)
class RepairContext:
    """Facts about the task besides the log."""

    spec: BuildSpec
    older_pythons: tuple[str, ...] = ()
    """Interpreters that are left to step down to, best first."""
    declared: Mapping[str, str] = field(default_factory=dict)
    """Requirements that the repository declares anywhere, by normalised project name."""
    has_submodules: bool = False


def propose(failure: FailureLog, context: RepairContext, *, without: Sequence[Fix] = ()) -> Fix | None:
    """Return the fix for *loss*: the first rule that matches with something new; None if none does.

    *without* are fixes that were tried and could not even be planned.
    """
    phase = phase_of(failure.stage)
    if phase is None:
        return None
    lines = list(telling_lines(failure.text))
    fired = (fix for rule in rules() for fix in _fired(rule, phase, lines, context))
    return next((fix for fix in fired if not any(fix.asks_the_same(tried) for tried in without)), None)


def telling_lines(log: str) -> Iterator[str]:
    """Return the lines of a log's last step, without BuildKit's prefixes."""
    lines = log.splitlines()
    begin = max((number for number, line in enumerate(lines) if line.startswith(_STEP)), default=-1)
    for line in lines[begin + 1 :]:
        yield _DOCKER_PREFIX.sub("", line)


def is_new(fix: Fix, context: RepairContext, phase: Phase = Phase.TASK) -> bool:
    """Return True if *fix* would change the build."""
    spec = context.spec
    if (fix.step_down and context.older_pythons) or fix.python not in ("", context.spec.python):
        return True
    versions = _locked(spec, phase)
    asked = {text for earlier in spec.fixes for text in (*earlier.requirements, *earlier.constraints)}
    for text in fix.requirements:
        if text not in asked and not _holds(text, versions, absent=False):
            return True
    if any(text not in asked and not _holds(text, versions, absent=True) for text in fix.constraints):
        return True
    if fix.submodules and _misses_submodules(context):
        return True
    of_plan = {"requirements": (), "constraints": (), "submodules": False, "step_down": False, "python": ""}
    plain = fix.model_copy(update=of_plan)
    return with_fixes(spec, (plain,)) != spec


def _fired(rule: RepairRule, phase: Phase, lines: Sequence[str], context: RepairContext) -> Iterator[Fix]:
    spec = context.spec
    spent = sum(fix.rule == rule.name for fix in spec.fixes)
    if phase not in rule.at or (rule.at_most and spent >= rule.at_most):
        return
    if rule.python and not SpecifierSet(rule.python).contains(spec.python):
        return
    if rule.locked and not _holds(rule.locked, _locked(spec, phase), absent=False):
        return
    if any(re.search(pattern, line) for pattern in rule.unless for line in lines):
        return
    if rule.needs_submodules and not _misses_submodules(context):
        return
    for fix in _proposals(rule, list(_matches(rule, lines)), context, phase):
        if _parses(fix) and is_new(fix, context, phase):
            yield fix


def _misses_submodules(context: RepairContext) -> bool:
    spec = context.spec
    return context.has_submodules and not spec.submodules and not any(fix.submodules for fix in spec.fixes)


def _matches(rule: RepairRule, lines: Sequence[str]) -> Iterator[tuple[str, re.Match[str]]]:
    patterns = [re.compile(pattern) for pattern in rule.patterns]
    for line in lines:
        for pattern in patterns:
            yield from ((line, match) for match in pattern.finditer(line))


def _proposals(
    rule: RepairRule, matches: Sequence[tuple[str, re.Match[str]]], context: RepairContext, phase: Phase
) -> Iterator[Fix]:
    if rule.lookup is not None:
        yield from _looked_up(rule, rule.lookup, matches, context)
        return
    versions = _locked(context.spec, phase)
    for fix in rule.fixes:
        for line, match in matches:
            groups = match.groupdict("")
            groups |= {"python": context.spec.python, "older": _older(groups.get("name", ""), versions)}
            values = _filled(fix.model_dump(mode="json"), groups)
            yield Fix.model_validate({**values, "evidence": line.strip()[:EVIDENCE]})


def _older(module: str, versions: Mapping[str, str]) -> str:
    """`numcodecs<0.16` for a module of numcodecs 0.16.3; `` for one of no project that is pinned."""
    names = (module.partition(".")[0], requirement_for_module(module, {}) or "")
    name = next((name for name in map(canonicalize_name, names) if name in versions), "")
    if not name:
        return ""
    release = (*Version(versions[name]).release, 0)
    return f"{name}<{release[0]}.{release[1]}"


def _looked_up(
    rule: RepairRule, kind: DependencyKind, matches: Sequence[tuple[str, re.Match[str]]], context: RepairContext
) -> Iterator[Fix]:
    """One fix with everything that the log misses and that the table knows."""
    providers: dict[str, tuple[str, Provider]] = {}
    for line, match in matches:
        name = match["name"]
        if name not in providers and (provider := _provider(kind, name, context)):
            providers[name] = line, provider
    if not providers:
        return
    groups = {"python": context.spec.python}
    brought = [provider for _, provider in providers.values()]
    yield Fix(
        rule=rule.name,
        evidence=next(iter(providers.values()))[0].strip()[:EVIDENCE],
        apt_packages=tuple(dict.fromkeys(package for provision in brought for package in provision.apt_packages)),
        requirements=tuple(dict.fromkeys(text for provision in brought for text in provision.requirements)),
        environment={
            name: value.format_map(groups) for provision in brought for name, value in provision.environment.items()
        },
    )


def _provider(kind: DependencyKind, name: str, context: RepairContext) -> Provider | None:
    if kind is not DependencyKind.MODULES:
        return provider_of(kind, name)
    own = name.partition(".")[0] == context.spec.package_name
    requirement = None if own else requirement_for_module(name, context.declared)
    return Provider(requirements=(requirement,)) if requirement else None


def _filled(value: Any, groups: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return value.format_map(groups)
    if isinstance(value, list):
        return [_filled(item, groups) for item in value]
    if isinstance(value, dict):
        return {name: _filled(item, groups) for name, item in value.items()}
    return value


def _parses(fix: Fix) -> bool:
    try:
        for text in (*fix.requirements, *fix.constraints):
            parse_requirement(text)
    except InvalidRequirement:
        return False
    return True


def _locked(spec: BuildSpec, phase: Phase) -> dict[str, str]:
    lock = spec.build_lock if phase is Phase.TASK and spec.build_lock else spec.lock
    return read_lock(lock).versions


def _holds(text: str, versions: Mapping[str, str], *, absent: bool) -> bool:
    """Return True if the pinned *versions* satisfy *text*; *absent* is the answer for a project that is not pinned."""
    requirement = parse_requirement(text)
    version = versions.get(canonicalize_name(requirement.name))
    return absent if version is None else requirement.specifier.contains(version, prereleases=True)
