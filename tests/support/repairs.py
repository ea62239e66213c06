from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.image import BuildSpec
from tests import records


def make_spec(*, python: str = "3.11", locked: Sequence[str] = (), **more: object) -> BuildSpec:
    """A spec whose lock holds *locked*, pins as `name==version`."""
    lock = "".join(f"{pin} --hash=sha256:{'0' * 64}\n" for pin in locked)
    return records.make_spec(lock, python=python, package_name="tool", **more)
