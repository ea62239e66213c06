"""Requirements of a built package that its declarations did not reveal without running them.

Core metadata: https://packaging.python.org/en/latest/specifications/core-metadata/
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.parser import HeaderParser

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from formulacode_dagster.building.declarations.python_source import parse_requirement
from formulacode_dagster.building.engines.files import Area
from formulacode_dagster.building.planning.interpreter import allows
from formulacode_dagster.building.planning.lock import read_lock
from formulacode_dagster.building.verification.facts import ImageFacts
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.recipe import Fix

RULE = "metadata_of_the_build"
_INSTALLED = re.compile(r"lib/python[\d.]+/site-packages/[^/]+\.dist-info/METADATA")


def is_unread(environment: Environment) -> bool:
    """Return True if part of the declarations is only known by running them: an argument, or a file as a whole."""
    return any(
        drop.source == drop.requirement or drop.source.endswith(f":{drop.requirement}") for drop in environment.dropped
    )


def fix_of_metadata(facts: ImageFacts, spec: BuildSpec, environment: Environment) -> Fix | None:
    """Return the requirements in the metadata of the package built by *spec* beyond the lock; None if there are none.

    Extras are left out, and requirements dropped from the lock for a reason stay dropped.
    """
    pinned = set(read_lock(spec.lock).versions)
    dropped = {drop.requirement for drop in environment.dropped}
    missing: dict[str, str] = {}
    for header, value in _headers(facts, pinned):
        if header == "Requires-Python" and not allows(value, spec.python):
            return Fix(rule=RULE, evidence=f"{header}: {value}", step_down=True)
        if header == "Requires-Dist" and value not in dropped:
            requirement = _needed(value, spec.python)
            if requirement is not None and canonicalize_name(requirement.name) not in pinned:
                missing.setdefault(str(requirement), f"{header}: {value}")
    if not missing:
        return None
    return Fix(rule=RULE, evidence="; ".join(missing.values()), requirements=tuple(missing))


def _headers(facts: ImageFacts, pinned: set[str]) -> Iterator[tuple[str, str]]:
    """Return the headers of the distributions that no lock installed; vendored ones do not count."""
    for (area, path), text in facts.texts.items():
        if area is Area.ENVIRONMENT and _INSTALLED.fullmatch(path):
            headers = HeaderParser().parsestr(text)
            if canonicalize_name(str(headers.get("Name", ""))) not in pinned:
                yield from ((name, str(value)) for name, value in headers.items())


def _needed(text: str, python: str) -> Requirement | None:
    try:
        requirement = parse_requirement(text)
    except InvalidRequirement:
        return None
    version = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    if requirement.url is not None or (requirement.marker is not None and not requirement.marker.evaluate(version)):
        return None
    requirement.marker = None
    return requirement
