"""Importing modules one after the other, the way a user of the installed package does."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import suite

if TYPE_CHECKING:
    from .answers import Emit


def import_all(request: dict[str, Any], emit: Emit) -> None:
    """Import every one of `modules`; each is named first, so that one that ends the process is known."""
    for name in request["modules"]:
        emit(event="importing", name=name)
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: BLE001 - an import may raise anything, SystemExit included
            emit(event="failed", name=name, message=suite.failure_message())
