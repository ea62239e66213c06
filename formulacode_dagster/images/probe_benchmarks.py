"""Runs inside a session: discovers benchmarks as asv_runner does, but a module that is lost does not cost the rest.

A script for Python 3.7 and later: `python probe_benchmarks.py NONCE BENCHMARK_DIR`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import sys
import traceback
from types import ModuleType


class _Once:
    """A class that is instantiated at most once: asv_runner does it for every method, which can take minutes."""

    def __init__(self, wrapped: type) -> None:
        self._wrapped = wrapped
        self._instance: object = None
        self.__name__ = wrapped.__name__

    def __call__(self) -> object:
        if self._instance is None:
            self._instance = self._wrapped()
        return self._instance


def load_asv_runner() -> None:
    """Import asv_runner's discovery, as `measurement.harness.runner` does and explains."""
    name = "importlib.metadata"
    absent = importlib.util.find_spec(name) is None
    if absent:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].distributions = tuple  # type: ignore[attr-defined]
    importlib.import_module("asv_runner.discovery")
    if absent:
        del sys.modules[name]


def modules_below(name: str, lost: dict[str, str]) -> list[ModuleType]:
    """Import module *name* and all below it, and return them; what cannot be imported goes to *lost*."""
    try:
        module = importlib.import_module(name)
    except BaseException:  # noqa: BLE001 - code under test may raise anything, SystemExit included
        lost[name] = traceback.format_exc().strip().splitlines()[-1][:500]
        return []
    found = [module]
    for _, below, _ in pkgutil.iter_modules(getattr(module, "__path__", []), name + "."):
        found.extend(modules_below(below, lost))
    return found


def benchmarks_of(module: ModuleType) -> list[str]:
    """Return the names of the benchmarks that *module* defines or imports."""
    get_benchmark = importlib.import_module("asv_runner.discovery")._get_benchmark
    names = []
    for attribute, value in list(vars(module).items()):
        if attribute.startswith("_"):
            continue
        if inspect.isclass(value) and not inspect.isabstract(value):
            once = _Once(value)
            for name, member in inspect.getmembers(value):
                if inspect.isfunction(member) or inspect.ismethod(member):
                    names.append(get_benchmark(name, module, once, member))
        elif inspect.isfunction(value):
            names.append(get_benchmark(attribute, module, None, value))
    return [benchmark.name for benchmark in names if benchmark is not None]


def main() -> None:
    """Print names and lost modules."""
    nonce, root = sys.argv[1], os.path.abspath(sys.argv[2])  # noqa: PTH100 - as asv_runner takes it
    load_asv_runner()
    importlib.import_module("asv_runner._aux").update_sys_path(root)
    lost: dict[str, str] = {}
    names: list[str] = []
    for module in modules_below(os.path.basename(root), lost):  # noqa: PTH119
        try:
            names.extend(benchmarks_of(module))
        except BaseException:  # noqa: BLE001 - a class that cannot be made costs its module, not the suite
            lost[module.__name__] = traceback.format_exc().strip().splitlines()[-1][:500]
    sys.stdout.flush()
    sys.__stdout__.write("\n" + nonce + json.dumps({"names": sorted(set(names)), "lost": lost}) + "\n")  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
