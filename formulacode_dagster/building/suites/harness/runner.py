"""Loading asv_runner, and as little as possible of the part of the standard library that it finds its plug-ins with."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

NAME = "importlib.metadata"


def load(plugins: bool) -> None:
    """Import asv_runner's discovery, with the kinds of benchmark that its *plugins* add or without them.

    Without them asv_runner gets an `importlib.metadata` without any distribution: reading those of the environment is a
    third of its loading time. The same on CPython 3.7, which has no such module. The stand-in is removed afterwards: a
    package that imports the module must get the interpreter's own, or an ImportError.
    """
    if plugins and importlib.util.find_spec(NAME) is not None:
        importlib.import_module("asv_runner.discovery")
        return
    stand_in: Any = ModuleType(NAME)
    stand_in.distributions = tuple
    before, sys.modules[NAME] = sys.modules.get(NAME), stand_in
    try:
        importlib.import_module("asv_runner.discovery")
    finally:
        del sys.modules[NAME]
        if before is not None:
            sys.modules[NAME] = before
        else:
            _load_when_asked()


def _load_when_asked() -> None:
    """Leave the module in its usual place, to be run on first use."""
    spec = importlib.util.find_spec(NAME)
    if spec is None or spec.loader is None:
        return
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    importlib.metadata = module
