"""Poetry's own dependency tables, in the terms of PEP 508."""

from __future__ import annotations

import re
from collections.abc import Mapping

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement

_VERSION = re.compile(r"^\d+(\.\d+)*")


def specifier(constraint: str) -> str | None:
    """Return Poetry's *constraint* as a PEP 440 specifier set; None for constraints PEP 440 cannot express (`||`)."""
    if "|" in constraint:
        return None
    parts = [part.strip() for part in re.split(r",|(?<=[\w*])\s+(?=[<>=!~^])", constraint) if part.strip()]
    return ",".join(filter(None, map(_one, parts)))


def _one(part: str) -> str:
    if part in ("*", "x"):
        return ""
    if part.startswith(("^", "~")) and not part.startswith("~="):
        version = part[1:].strip()
        match = _VERSION.match(version)
        if match is None:
            return part
        numbers = [int(number) for number in match[0].split(".")]
        return f">={version},<{_ceiling(numbers, caret=part[0] == '^')}"
    if part[0].isdigit():
        return f"=={part}"
    return part.replace(" ", "").replace("===", "==") if not part.startswith("=") else f"=={part.lstrip('= ')}"


def _ceiling(numbers: list[int], *, caret: bool) -> str:
    if caret:
        keep = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
    else:
        keep = min(1, len(numbers) - 1)
    bumped = [*numbers[:keep], numbers[keep] + 1]
    return ".".join(map(str, bumped))


def requirements(name: str, value: object, *, source: str) -> tuple[DeclaredRequirement, ...]:
    """Return the requirements of one entry of a dependency table; several if it lists several constraints."""
    if isinstance(value, list):
        return tuple(item for entry in value for item in requirements(name, entry, source=source))
    table: Mapping[str, object] = value if isinstance(value, Mapping) else {"version": str(value)}
    for place in ("git", "path", "url", "file"):
        if place in table:
            return (DeclaredRequirement(text=f"{name} @ {table[place]}", source=source),)
    written = str(table.get("version", "*"))
    spec = specifier(written)
    if spec is None:
        return (DeclaredRequirement(text=f"{name} {written}", source=source),)
    extras = table.get("extras")
    bracket = f"[{','.join(map(str, extras))}]" if isinstance(extras, list) and extras else ""
    markers = [marker for marker in (_python_marker(table.get("python")), table.get("markers")) if marker]
    joined = " and ".join(f"({marker})" for marker in markers) if len(markers) > 1 else "".join(map(str, markers))
    return (DeclaredRequirement(text=f"{name}{bracket}{spec}" + (f"; {joined}" if joined else ""), source=source),)


def _python_marker(constraint: object) -> str:
    spec = specifier(str(constraint)) if constraint else ""
    if not spec:
        return ""
    clauses = []
    for clause in spec.split(","):
        match = re.match(r"(===|==|~=|!=|<=|>=|<|>)\s*(.+)", clause)
        if match is not None:
            clauses.append(f"python_version {match[1]} '{match[2]}'")
    return " and ".join(clauses)
