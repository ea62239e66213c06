"""setup.cfg as setuptools reads it."""

from __future__ import annotations

import configparser
import re

from packaging.requirements import InvalidRequirement

from formulacode_dagster.building.declarations.declared_requirement import (
    DeclaredRequirement,
    parse_requirement_lines,
    read_requirements_files,
)
from formulacode_dagster.building.declarations.python_source import parse_requirement
from formulacode_dagster.building.declarations.tree import Tree, join
from formulacode_dagster.models.environment import DroppedRequirement

from .project import ProjectMetadata, Sourced, python_classifiers, sourced

_REFERENCE = re.compile(r"%\(([\w.-]+)\)s")
_DEEPEST = 4
_LONGEST = 10_000
"""Limit in characters for a value with references, expanded."""


def read_setup_cfg(tree: Tree, folder: str) -> ProjectMetadata:
    """Return the metadata in `setup.cfg` in *folder*; an invalid file yields only a note."""
    path = join(folder, "setup.cfg") or ""
    text = tree.text(path)
    if text is None:
        return ProjectMetadata()
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        reason = f"cannot be parsed: {str(error).splitlines()[0]}"
        return ProjectMetadata(unread=(DroppedRequirement(requirement=path, source=path, reason=reason),))

    def get(section: str, *keys: str) -> str | None:
        for key in keys:
            if parser.has_option(section, key):
                return _filled(parser, section, key)
        return None

    def requirements(value: str | None, source: str) -> tuple[DeclaredRequirement, ...] | None:
        if value is None:
            return None
        if value.startswith("file:"):
            return read_requirements_files(tree, folder, value.removeprefix("file:").split(","))
        return parse_requirement_lines(value if "\n" in value else _one_line(value), source=source)

    def said(section: str, key: str) -> Sourced[str] | None:
        return sourced(get(section, key, key.replace("_", "-")), f"{path}:{section}.{key}")

    section = "options.extras_require"
    extras = {
        name: requirements(_filled(parser, section, name), f"{path}:{section}.{name}") or ()
        for name in (parser.options(section) if parser.has_section(section) else ())
    }
    raw_classifiers = get("metadata", "classifiers", "classifier") or ""
    if raw_classifiers.startswith("file:"):
        raw_classifiers = tree.text(join(folder, raw_classifiers.removeprefix("file:").strip()) or "") or ""
    packages = get("options", "packages") or ""
    names = [] if packages.startswith("find") else re.split(r"[\s,]+", packages)
    names += re.split(r"[\s,]+", get("options", "py_modules") or "")
    name = said("metadata", "name")
    return ProjectMetadata(
        name=None if name is None or name.value.startswith(("attr:", "file:")) else name,
        requires_python=said("options", "python_requires"),
        classifiers=python_classifiers(raw_classifiers, f"{path}:metadata.classifiers"),
        dependencies=requirements(
            get("options", "install_requires", "install-requires"), f"{path}:options.install_requires"
        ),
        extras=extras,
        setup_requires=requirements(
            get("options", "setup_requires", "setup-requires"), f"{path}:options.setup_requires"
        )
        or (),
        import_names=tuple(dict.fromkeys(item.split(".")[0] for item in names if item)),
        source_folders=tuple(_folders(get("options", "package_dir") or "", get("options.packages.find", "where"))),
    )


def _filled(parser: configparser.RawConfigParser, section: str, key: str) -> str:
    """The value of *key*, with `%(other)s` replaced by the value of *other* in the same section."""

    def other(match: re.Match[str]) -> str:
        known = parser.has_option(section, match[1])
        return parser.get(section, match[1]).strip()[:_LONGEST] if known else match[0]

    value = parser.get(section, key).strip()
    for _ in range(_DEEPEST):
        if _REFERENCE.search(value) is None:
            break
        value = _REFERENCE.sub(other, value[:_LONGEST])
    return value


def _folders(package_dir: str, where: str | None) -> list[str]:
    folders = [
        value.strip() for key, _, value in (line.partition("=") for line in package_dir.splitlines()) if not key.strip()
    ]
    return [*folders, *([where] if where else [])]


def _one_line(value: str) -> str:
    """On one line setuptools separates requirements by semicolons; a marker after one is still a marker."""
    try:
        parse_requirement(value)
    except InvalidRequirement:
        return value.replace(";", "\n")
    return value
