"""Files that are no Python and come with the platform: migrations, Dockerfiles, Dagster's configuration."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[2]


def shipped(name: str) -> Path:
    """The file or folder *name*, as in `sql/migrations`: of the checkout, or inside the installed package."""
    checkout = _PACKAGE.parent / name
    # next to an installed package are other packages
    is_checkout = (_PACKAGE.parent / "pyproject.toml").is_file()
    return checkout if is_checkout else _PACKAGE / name
