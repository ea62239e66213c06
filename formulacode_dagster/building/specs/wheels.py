"""Checks if a lock can be installed without building anything."""

from __future__ import annotations

import tomllib
from functools import cache
from urllib.parse import unquote, urlsplit

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

GLIBC_MINOR = 28
"""Platform that locks are resolved for: uv's `linux` is manylinux_2_28 on x86_64."""


def has_wheels(pylock: str, python: str) -> bool:
    """Return True if every package of *pylock* (PEP 751) has a wheel for CPython *python* on Linux; False without a
    lock.

    Raises ValueError for invalid TOML.
    """
    packages = tomllib.loads(pylock).get("packages", [])
    fitting = _tags(python)
    return bool(packages) and all(
        any(not fitting.isdisjoint(_tags_of(file_name(wheel))) for wheel in package.get("wheels", ()))
        for package in packages
    )


def file_name(wheel: dict[str, str]) -> str:
    """Return the name of the file *wheel* of a lock."""
    place = wheel.get("name") or wheel.get("path") or urlsplit(wheel.get("url", "")).path
    return unquote(place.rpartition("/")[2])


def _tags_of(name: str) -> frozenset[Tag]:
    try:
        return parse_wheel_filename(name)[3]
    except InvalidWheelFilename:
        return frozenset()


@cache
def _tags(python: str) -> frozenset[Tag]:
    major, minor = map(int, python.split("."))
    platforms = [f"manylinux_2_{number}_x86_64" for number in range(GLIBC_MINOR, 4, -1)]
    platforms += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    own = cpython_tags((major, minor), platforms=platforms)
    return frozenset(own) | frozenset(compatible_tags((major, minor), f"cp{major}{minor}", platforms))
