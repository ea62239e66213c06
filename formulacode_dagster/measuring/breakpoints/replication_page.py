"""Replication of two sets of breakpoints as one self-contained HTML file."""

from __future__ import annotations

import base64
from pathlib import Path

from formulacode_dagster.operating.files.atomic import disk_errors, replacing

from .replication import Replication


def write_replication(path: Path, replication: Replication, png: bytes, method: str = "") -> None:
    """Write the page of *replication* with its picture *png* to *path*, whole or not at all.

    Raises OutsideSystemError when the disk does not take it.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("formulacode_dagster.measuring.breakpoints"), autoescape=True, undefined=StrictUndefined
    )
    page = environment.get_template("replication.html.j2")
    text = page.render(r=replication, method=method, png=base64.b64encode(png).decode())
    with disk_errors(str(path)), replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
