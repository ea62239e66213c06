"""Loading asv_runner, which asks for a part of the standard library that CPython 3.7 does not have."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

NAME = "importlib.metadata"


def load() -> None:
    """Import asv_runner's discovery.

    On CPython 3.7 it gets an `importlib.metadata` that knows of no distribution, so that it finds no plug-ins. That
    module is gone afterwards: a package which asks whether there is one has to get the interpreter's own answer.
    """
    absent = importlib.util.find_spec(NAME) is None
    if absent:
        stand_in: Any = ModuleType(NAME)
        stand_in.distributions = tuple
        sys.modules[NAME] = stand_in
    try:
        importlib.import_module("asv_runner.discovery")
    finally:
        if absent:
            del sys.modules[NAME]
