"""Hashes of the code that decides how tests end: a package may replace it in its own process."""

from __future__ import annotations

import hashlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def hashes(packages: Iterable[str]) -> dict[str, str]:
    """Return a hash by name for each function of the loaded modules of *packages*, methods of their classes included.

    A module has only the functions whose code is its own, or is built in: what it imports is not counted twice.
    """
    roots = tuple(packages)
    found = {}
    for name, module in sorted(sys.modules.items()):
        if isinstance(module, types.ModuleType) and any(name == root or name.startswith(f"{root}.") for root in roots):
            for attribute, function in _functions(vars(module)):
                found[f"{name}.{attribute}"] = _hash(function)
    return found


def _functions(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for attribute, value in list(names.items()):
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            yield attribute, value
        elif isinstance(value, type):
            for method, function in list(vars(value).items()):
                function = getattr(function, "__func__", function)
                if isinstance(function, types.FunctionType):
                    yield f"{attribute}.{method}", function


def _hash(function: Any) -> str:
    code = getattr(function, "__code__", None)
    if code is None:
        return f"{function.__module__}.{function.__qualname__}"
    told = repr((code.co_name, code.co_names, code.co_filename.rpartition("/")[2]))
    return hashlib.sha256(code.co_code + told.encode()).hexdigest()[:16]
