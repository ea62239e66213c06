"""The tables of names that ship with this package, as TOML next to its modules."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def shipped_table(name: str) -> dict[str, Any]:
    """The contents of `<name>.toml`."""
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
