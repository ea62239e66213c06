"""Compares the distributions that two builds of one spec have installed. Builds nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formulacode_dagster.building.verification.contents import Listing
from formulacode_dagster.models.base import listed
from formulacode_dagster.models.image import InstalledDistribution, Toolchain
from formulacode_dagster.models.reproduction import Difference, DifferenceKind

NAMED = 8
"""Files, or packages, that a difference names; it counts the others."""


def compare(first: Sequence[Listing | InstalledDistribution], second: Sequence[Listing]) -> tuple[Difference, ...]:
    """Differences of *second* from *first*, by distribution.

    Of a distribution of *first* whose listing is not to be had any more, only whether its files are the same is known.
    """
    before = {(listing.name, listing.version): listing for listing in first}
    after = {(listing.name, listing.version): listing for listing in second}
    return tuple(_differences(before, after))


def compare_toolchains(first: Toolchain, second: Toolchain) -> tuple[Difference, ...]:
    """Differences of the second build; parts that the first did not record are unknown."""
    kind = DifferenceKind.TOOLCHAIN
    differences = [
        Difference(kind=kind, name=name, detail=f"{before} → {after}")
        for name, before, after in _parts(first, second)
        if before and before != after
    ]
    if first.apt and (changed := sorted(set(first.apt) ^ set(second.apt))):
        gone = [f"-{package}" for package in changed if package in first.apt]
        come = [f"+{package}" for package in changed if package in second.apt]
        differences.append(Difference(kind=kind, name="apt", detail=listed([*gone, *come], shown=NAMED)))
    return tuple(differences)


def _differences(
    before: dict[tuple[str, str], Listing | InstalledDistribution], after: dict[tuple[str, str], Listing]
) -> Iterator[Difference]:
    lost, new = _by_name(before.keys() - after.keys()), _by_name(after.keys() - before.keys())
    for name in sorted(lost.keys() | new.keys()):
        if name in lost and name in new:
            yield Difference(kind=DifferenceKind.VERSION, name=name, detail=f"{lost[name]} → {new[name]}")
        elif name in lost:
            yield Difference(kind=DifferenceKind.REMOVED, name=name, detail=lost[name])
        else:
            yield Difference(kind=DifferenceKind.ADDED, name=name, detail=new[name])
    for key in sorted(before.keys() & after.keys()):
        if detail := _changed_files(before[key], after[key]):
            yield Difference(kind=DifferenceKind.FILES, name=key[0], detail=detail)


def _changed_files(first: Listing | InstalledDistribution, second: Listing) -> str:
    if isinstance(first, InstalledDistribution):
        return "" if first.sha256 == second.summary.sha256 else "which files differ is not known any more"
    paths = sorted(first.files.keys() | second.files.keys())
    changed = [
        path if path in first.files and path in second.files else f"{'-' if path in first.files else '+'}{path}"
        for path in paths
        if first.files.get(path) != second.files.get(path)
    ]
    return listed(changed, shown=NAMED)


def _by_name(keys: set[tuple[str, str]]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for name, version in sorted(keys):
        versions[name] = f"{versions[name]}, {version}" if name in versions else version
    return versions


def _parts(first: Toolchain, second: Toolchain) -> Iterator[tuple[str, str, str]]:
    yield "OS image", first.os_digest, second.os_digest
    yield "python", first.python, second.python
    yield "compiler", first.compiler, second.compiler
    for kind, before, after in (("flags", first.flags, second.flags), ("tools", first.tools, second.tools)):
        for name in sorted(before):
            yield f"{kind} {name}", before[name], after.get(name, "none")
