"""Checks that the clocks of a process are the same as before it imported the timed code."""

from __future__ import annotations

import sys
from typing import Dict, Tuple  # noqa: UP035 - CPython 3.7 evaluates the alias below

CLOCKS = ("time", "timeit", "resource", "asv_runner.benchmarks.time", "asv_runner.timing")
"""Modules of which each function, class and method is watched, in addition to those of the harness."""

Watched = Dict[Tuple[str, str], Tuple[object, object]]  # noqa: UP006 - evaluated on CPython 3.7


def watched() -> Watched:
    """Functions of the modules that time, by module and name, with their code."""
    found: Watched = {}
    own = tuple(name for name in sys.modules if name.startswith(f"{__package__}."))
    for name in (*CLOCKS, *own):
        module = sys.modules.get(name)
        for attribute, value in list(vars(module).items()) if module is not None else ():
            if callable(value):
                found[name, attribute] = value, getattr(value, "__code__", None)
            if isinstance(value, type) and value.__module__ == name:
                for method, function in list(vars(value).items()):
                    found[name, f"{attribute}.{method}"] = function, getattr(function, "__code__", None)
    return found


def changed(before: Watched) -> list[str]:
    """Return the names of replaced clocks."""
    now = watched()
    return sorted(
        ".".join(key)
        for key, (value, code) in before.items()
        if now.get(key, (None, None))[0] is not value or now[key][1] is not code
    )
