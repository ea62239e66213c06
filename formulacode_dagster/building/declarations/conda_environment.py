"""A conda environment file, such as `environment.yml`."""

from __future__ import annotations

import re

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .asv_config import AsvConfig
from .declared_requirement import DeclaredRequirement, parse_requirement_lines
from .matrix import read_conda_name
from .tree import Tree, join
from .yaml_depth import require_shallow

_LARGEST = 200_000
_SPECIFICATION = re.compile(r"^(?P<name>(?:[\w./-]+::)?[A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?P<version>[^\[]*)")


class CondaEnvironment(Frozen):
    """Requirements of the file, in the terms of the package index and Debian."""

    requirements: tuple[DeclaredRequirement, ...] = ()
    dropped: tuple[DroppedRequirement, ...] = ()
    system_packages: tuple[str, ...] = ()
    python: str = Field(default="", description="`3.9`, when it names one interpreter")


def read_conda_environment(tree: Tree, path: str) -> CondaEnvironment | None:
    """Return the requirements of the environment file *path*; None if there is no such file or it is no environment."""
    import yaml

    text = tree.text(path)
    if text is None or len(text) > _LARGEST:
        return None
    try:
        require_shallow(text)
        data = yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    items = data.get("dependencies") if isinstance(data, dict) else None
    if not isinstance(items, list):
        return None
    requirements: list[DeclaredRequirement] = []
    dropped: list[DroppedRequirement] = []
    system_packages: dict[str, None] = {}
    python = ""
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("pip"), list):
            lines = "\n".join(line for line in item["pip"] if isinstance(line, str))
            requirements += parse_requirement_lines(lines, source=path)
        match = _SPECIFICATION.match(item.strip()) if isinstance(item, str) else None
        if match is None:
            continue
        name, version = match["name"], _version(match["version"])
        if name.rpartition("::")[2] == "python":
            version_match = re.fullmatch(r"=*\s*(3\.\d+)[\d.*]*", version)
            python = version_match[1] if version_match is not None else python
        read = read_conda_name(name, version, path, conda=True)
        requirements += read.requirements
        dropped += read.dropped
        system_packages.update(dict.fromkeys(read.system_packages))
    return CondaEnvironment(
        requirements=tuple(requirements),
        dropped=tuple(dropped),
        system_packages=tuple(system_packages),
        python=python,
    )


def _version(written: str) -> str:
    """The version of `=1.21=py39_0`, without the build that only conda knows."""
    written = written.split("#")[0].strip()
    match = re.fullmatch(r"(?P<version>={1,2}\s*[^=<>!~]+)=[^=]+", written)
    return (match["version"] if match is not None else written).replace(" ", "")


def named_environment(tree: Tree, config: AsvConfig) -> tuple[str, CondaEnvironment] | None:
    """The environment file that asv's configuration names, with its path; None when it names none that is here."""
    name = config.conda_environment_file
    path = join(config.folder, name) if name and name != "IGNORE" else None
    read = read_conda_environment(tree, path) if path is not None else None
    return (path, read) if path is not None and read is not None else None
