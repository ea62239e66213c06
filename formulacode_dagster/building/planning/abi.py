"""The NumPy versions an extension may be compiled against, given the one it then runs with.

https://numpy.org/doc/stable/dev/depending_on_numpy.html: an extension runs with the NumPy it was compiled against and
with later ones of the same major version; compiled against 1.25 or later, also with older ones back to 1.19 or so.
"""

from __future__ import annotations

from packaging.version import Version

_FIRST_TO_LOOK_BACK = Version("1.25")
_OLDEST_LOOKED_BACK_TO = Version("1.21")


def bounds(running: str) -> tuple[str, ...]:
    """Constraints under which a compiled extension certainly runs with NumPy *running*."""
    return (f"numpy<={running}", *(("numpy>=2",) if Version(running).major >= 2 else ()))


def runs_with(compiled: str, running: str) -> bool:
    """Return True if an extension compiled against NumPy *compiled* runs with *running*."""
    new, old = Version(compiled), Version(running)
    if new.major < old.major:
        return False
    return new <= old or (new >= _FIRST_TO_LOOK_BACK and old >= _OLDEST_LOOKED_BACK_TO)
