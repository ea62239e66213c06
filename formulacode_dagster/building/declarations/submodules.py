"""Submodules of a commit that a build reads from."""

from __future__ import annotations

import configparser
import posixpath
import re
from collections.abc import Mapping

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.recipe import Submodule

from .build_files import build_text
from .tree import Tree

_GITHUB = re.compile(
    r"(?:(?:https?|git|ssh)://(?:[\w.-]+@)?|[\w.-]+@)(?:www\.)?github\.com[:/]+(?P<name>[^/\s]+/[^/\s]+?)(?:\.git)?/?"
)
_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_NOT_BUILT = re.compile(r"(^|/)(docs?|documentation|examples?|gallery)(/|$)")


class SubmoduleChoice(Frozen):
    """Submodules checked out for the build, and the reasons for leaving out the rest."""

    submodules: tuple[Submodule, ...] = ()
    notes: tuple[str, ...] = ()


def choose_submodules(
    tree: Tree, links: Mapping[str, str], folder: str, *, repository: str, wanted: bool
) -> SubmoduleChoice:
    """Return those of *links* (path → commit) at *tree* that the build files of *folder* name; all if *wanted*.

    *repository* is the `owner/name` that relative addresses start from. Submodules for documentation, without an
    address in `.gitmodules`, or on another host than GitHub are left out with a note.
    """
    addresses = _addresses(tree.text(".gitmodules") or "") if links else {}
    text = build_text(tree, folder) if links and not wanted else ""
    chosen: list[Submodule] = []
    notes: list[str] = []
    for path, sha in sorted(links.items()):
        address = addresses.get(path, "")
        name = _repository(address, repository)
        if _NOT_BUILT.search(path):
            notes.append(f"submodule {path} belongs to documents: left out")
        elif not wanted and not _is_named(path, text):
            notes.append(f"submodule {path} is named by no build file: left out")
        elif name is None:
            why = f"is at {address}, not on GitHub" if address else "has no address in .gitmodules"
            notes.append(f"submodule {path} {why}: left out")
        else:
            chosen.append(Submodule(path=path, repository=name, sha=sha))
    return SubmoduleChoice(submodules=tuple(chosen), notes=tuple(notes))


def _addresses(text: str) -> dict[str, str]:
    """Path of each submodule → its address, from `.gitmodules`; nothing from a file that cannot be parsed."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, default_section="")
    try:
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    except configparser.Error:
        return {}
    sections = (parser[name] for name in parser.sections())
    return {
        section["path"].strip('"'): (section.get("url") or "").strip('"') for section in sections if section.get("path")
    }


def _repository(address: str, own: str) -> str | None:
    """`owner/name` behind an address, relative ones seen from the repository *own*; None for any other host."""
    if address.startswith(("./", "../")):
        name = posixpath.normpath(posixpath.join(own, address)).removesuffix(".git")
        return name if _NAME.fullmatch(name) and not name.startswith(".") else None
    match = _GITHUB.fullmatch(address)
    return match["name"] if match is not None and _NAME.fullmatch(match["name"]) else None


def _is_named(path: str, text: str) -> bool:
    """True if every part of *path* occurs in *text* by itself: `os.path.join("git-submodules", "tskit")` counts."""
    return all(re.search(rf"(?<![\w-]){re.escape(part)}(?![\w-])", text) for part in path.split("/"))
