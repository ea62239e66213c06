"""Checks of a month's environments before images are built from them. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from formulacode_dagster.building.planning.lock import digest, read_lock
from formulacode_dagster.building.planning.pylock import requirements_of
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure


def every_lock_is_hashed(environments: Sequence[Environment]) -> CheckFinding:
    """Every line of every lock pins one version of one project and carries a sha256; the checksum is the lock's own."""
    pins = sum(len(read_lock(item.lock).pins) for item in environments)
    return _judgement(environments, _lock_fault, {"pins": float(pins)})


def interpreter_is_declared(environments: Sequence[Environment]) -> CheckFinding:
    """Every interpreter is one the declarations allow, with the reason for choosing it."""
    pythons = Counter(f"python_{item.python}" for item in environments)
    return _judgement(environments, _python_fault, {name: float(number) for name, number in pythons.items()})


def _lock_fault(environment: Environment) -> str:
    reading, building = read_lock(environment.lock), read_lock(environment.build_lock)
    strange = (*reading.strange, *building.strange)
    if strange:
        return f"line without a hashed pin: {strange[0]}"
    unhashed = [pin.name for pin in (*reading.pins, *building.pins) if not pin.hashes]
    if unhashed:
        return f"no hash for {', '.join(unhashed)}"
    if not reading.pins and (environment.requirements or environment.build_requirements):
        return "requirements are declared, but none is pinned"
    if digest(environment.lock) != environment.lock_sha256:
        return "lock_sha256 is not the checksum of the lock"
    if environment.pylock and not _same_pins(environment):
        return "pylock.toml lacks pins of the lock"
    return ""


def _same_pins(environment: Environment) -> bool:
    try:
        return requirements_of(environment.pylock) == environment.lock
    except (ItemFailure, ValueError):
        return False


def _python_fault(environment: Environment) -> str:
    if environment.python not in environment.python_candidates:
        candidates = ", ".join(environment.python_candidates) or "none"
        return f"{environment.python} is not among the declared candidates ({candidates})"
    return "" if environment.python_reason.strip() else "no reason is given for the interpreter"


def _judgement(
    environments: Sequence[Environment], fault_of: Callable[[Environment], str], figures: dict[str, float]
) -> CheckFinding:
    faults = ((item, fault_of(item)) for item in environments)
    lines = [f"repository {item.repository_id} #{item.number}: {fault}" for item, fault in faults if fault]
    good = len(environments) - len(lines)
    summary = f"{good} of {len(environments)} environments pass" if environments else "no environment this month"
    if lines:
        summary = f"{summary}; first: {lines[0]}"
    return CheckFinding.by_offenders(summary, lines, {"environments": float(len(environments)), **figures})
