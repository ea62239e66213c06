"""The meaning of a conda name: a system library, a project of the package index, or nothing."""

from __future__ import annotations

from functools import cache

from formulacode_dagster.models.base import Frozen

from .shipped_tables import shipped_table


class CondaName(Frozen):
    """The meaning of one name. `project` is empty if the package index does not carry it."""

    project: str = ""
    system_packages: tuple[str, ...] = ()
    reason: str = ""


@cache
def _table() -> dict[str, CondaName]:
    data = shipped_table("conda_names")
    meanings = {name: CondaName(project=project) for name, project in data["renamed"].items()}
    meanings |= {name: CondaName(reason=reason) for name, reason in data["ignored"].items()}
    for name, packages in data["system"].items():
        carried = f"Debian: {', '.join(packages)}" if packages else "the wheels that need it bring it"
        meanings[name] = CondaName(
            system_packages=tuple(packages), reason=f"a system library, not a project of the index ({carried})"
        )
    return meanings


def meaning_of(name: str) -> CondaName:
    """Return the meaning of *name*; a name that is not in the table is taken for the project of that name."""
    bare = name.rpartition("::")[2].strip()
    return _table().get(bare.lower(), CondaName(project=bare))


def known_system_packages() -> frozenset[str]:
    """Every Debian package that the table names."""
    return frozenset(package for meaning in _table().values() for package in meaning.system_packages)
