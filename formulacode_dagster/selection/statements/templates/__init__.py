"""The templates of texts, and how one is filled in."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, values: Mapping[str, Any]) -> str:
    """Render the template *name* with *values*; raises jinja2's UndefinedError if one is missing."""
    return _environment().get_template(name).render(values).strip() + "\n"


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(  # noqa: S701 - markdown for a solver, not HTML for a browser: escaping would alter code
        loader=PackageLoader("formulacode_dagster.selection.statements"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
