"""Checks that clocks, and what the harness calls besides, are the same as before it imported the timed code."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType
from typing import Dict, List, Tuple  # noqa: UP035 - CPython 3.7 evaluates the alias below

CLOCKS = (
    "time",
    "timeit",
    "resource",
    "json",
    "json.encoder",
    "os",
    "signal",
)
"""Modules of which each function, class, method and imported module is watched, besides those of asv_runner and
the harness."""
REPLACED_BY_MANY = frozenset({"__import__", "_", "print", "open", "input", "help", "exit", "quit", "copyright"})
"""Built-in functions that libraries replace, and no clock depends on."""
HOOKS = ("gettrace", "getprofile")

Watched = Dict[Tuple[str, str], Tuple[object, object]]  # noqa: UP006 - evaluated on CPython 3.7


def watched() -> Watched:
    """Functions of the modules that time, by module and name, with their code."""
    found: Watched = {}
    for name in (*CLOCKS, *_own()):
        module = sys.modules.get(name)
        for attribute, value in list(vars(module).items()) if module is not None else ():
            if callable(value) or isinstance(value, ModuleType):
                found[name, attribute] = value, getattr(value, "__code__", None)
            if isinstance(value, type) and value.__module__ == name:
                for method, function in list(vars(value).items()):
                    found[name, f"{attribute}.{method}"] = function, getattr(function, "__code__", None)
    for attribute, value in list(vars(builtins).items()):
        if callable(value) and attribute not in REPLACED_BY_MANY:
            found["builtins", attribute] = value, None
    for hook in HOOKS:
        found["sys", hook] = getattr(sys, hook)(), None
    return found


def changed(before: Watched) -> List[str]:  # noqa: UP006 - evaluated on CPython 3.7
    """Return the names of replaced clocks, and of names that hide a built-in function from the code that times."""
    now = watched()
    replaced = {
        key
        for key, (value, code) in before.items()
        if now.get(key, (None, None))[0] is not value or now[key][1] is not code
    }
    hiding = {key for key in now if key not in before and key[0] != "builtins" and hasattr(builtins, key[1])}
    return sorted(".".join(key) for key in replaced | hiding)


def _own() -> Tuple[str, ...]:  # noqa: UP006 - evaluated on CPython 3.7
    return tuple(name for name in sys.modules if name.startswith((f"{__package__}.", "asv_runner.")))
