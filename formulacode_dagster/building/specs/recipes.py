"""Paths of the Dockerfiles and their scripts, and their version."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.files.shipped import shipped

TIERS = ("base", "repo", "env", "task")


def recipes_folder() -> Path:
    """The folder `dockerfiles`: in the checkout, or inside the installed package."""
    return shipped("dockerfiles")


def dockerfile(name: str) -> Path:
    """The Dockerfile of a tier, or `read`; raises ConfigurationError when the checkout lacks it."""
    return _existing(recipes_folder() / f"{name}.Dockerfile")


def script(name: str) -> Path:
    """One of the scripts that both engines run; raises ConfigurationError when the checkout lacks it."""
    return _existing(recipes_folder() / "scripts" / name)


@cache
def recipe_hash() -> str:
    """SHA-256 over the Dockerfiles of the tiers, their scripts and uv: a changed recipe gives other images."""
    folder = recipes_folder()
    parts = [*map(dockerfile, TIERS), folder / "uv.txt", *sorted((folder / "scripts").glob("[!_.]*"))]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{part.name}\0{part.stat().st_size}\0".encode() + part.read_bytes())
    return digest.hexdigest()


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ConfigurationError(f"{path} is missing", remedy="Run from a complete checkout")
    return path
