"""What must hold of a month's environments before images are built from them. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.check import Judgement
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure

from .lock import digest, read_lock
from .pylock import requirements_of


def every_lock_is_hashed(environments: Sequence[Environment]) -> Judgement:
    """Every line of every lock pins one version of one project and carries a sha256; the checksum is the lock's own."""
    offenders = {name: fault for name, fault in ((_name(item), _lock_fault(item)) for item in environments) if fault}
    pins = sum(len(read_lock(item.lock).pins) for item in environments)
    return _judgement(environments, offenders, {"pins": float(pins)})


def interpreter_is_declared(environments: Sequence[Environment]) -> Judgement:
    """Every interpreter is one the declarations allow, with the reason for choosing it."""
    offenders = {name: fault for name, fault in ((_name(item), _python_fault(item)) for item in environments) if fault}
    figures = {f"python_{item.python}": 0.0 for item in environments}
    for item in environments:
        figures[f"python_{item.python}"] += 1
    return _judgement(environments, offenders, figures)


def _name(environment: Environment) -> str:
    return f"repository {environment.repository_id} #{environment.number}"


def _lock_fault(environment: Environment) -> str:
    reading, building = read_lock(environment.lock), read_lock(environment.build_lock)
    strange = (*reading.strange, *building.strange)
    if strange:
        return f"line that is no hashed pin: {strange[0]}"
    unhashed = [pin.name for pin in (*reading.pins, *building.pins) if not pin.hashes]
    if unhashed:
        return f"no hash for {', '.join(unhashed)}"
    if not reading.pins and (environment.requirements or environment.build_requirements):
        return "nothing is pinned although requirements are declared"
    if digest(environment.lock) != environment.lock_sha256:
        return "lock_sha256 is not the checksum of the lock"
    if environment.pylock and not _same_pins(environment):
        return "pylock.toml does not hold the pins of the lock"
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


def _judgement(environments: Sequence[Environment], offenders: dict[str, str], figures: dict[str, float]) -> Judgement:
    lines = [f"{name}: {fault}" for name, fault in offenders.items()]
    good = len(environments) - len(lines)
    summary = f"{good} of {len(environments)} environments hold" if environments else "no environment this month"
    if lines:
        summary = f"{summary}; first: {lines[0]}"
    return Judgement.by_offenders(summary, lines, {"environments": float(len(environments)), **figures})
