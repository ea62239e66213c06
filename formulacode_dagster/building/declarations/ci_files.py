"""Debian packages that a repository's CI installs before it builds or tests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from formulacode_dagster.models.base import Frozen

from .tree import Tree
from .yaml_depth import require_shallow

if TYPE_CHECKING:
    from yaml import Node, ScalarNode

_FILES = re.compile(
    r"\.github/workflows/[^/]+\.ya?ml|\.travis\.ya?ml|\.circleci/config\.ya?ml|\.?azure-pipelines\.ya?ml|\.azure[\w-]*/[^/]+\.ya?ml"
)
_NEITHER_BUILT_NOR_TESTED = re.compile(
    r"(^|[^a-z])(binder|changelog|codeql|comment|deploy|docker|docs?|docbuild|emscripten|format|gallery|labels?|lint|linters?|matlab"
    r"|notebooks?|pages|publish|pyodide|release|rtd|ruby|shellcheck|sphinx|stale|style|website)([^a-z]|$)"
)
_LARGEST = 300_000
_MOST_NODES = 20_000
_BREAK = re.compile(r"&&|\|\||[;|]|\b(?:then|do|else)\b")
_EXPRESSION = re.compile(r"\$\{\{(?:[^{}'\n]|'[^'\n]*')*\}\}")
"""GitHub's expressions hold braces in texts only."""
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")


class AptPackage(Frozen):
    """One package as CI names it (Ubuntu's name), and its place."""

    name: str
    source: str


def read_ci_files(tree: Tree) -> tuple[AptPackage, ...]:
    """Every package that a job installs with apt, unless it only writes documents, looks at style, or publishes.

    Each is named once, at its first place. Anything not spelled out (variables, files) is left out.
    """
    packages: dict[str, AptPackage] = {}
    for path in _ci_files(tree):
        for name, line in _packages(tree.text(path) or ""):
            packages.setdefault(name, AptPackage(name=name, source=f"{path}:{line}"))
    return tuple(packages.values())


def scripts_of_ci(tree: Tree) -> Iterator[tuple[str, str]]:
    """Return every text that may be a script that installs with pip, and its place; the same jobs count."""
    for path in _ci_files(tree):
        for _, node in _read(tree.text(path) or "", about="pip"):
            if "install" in node.value:
                yield _EXPRESSION.sub("$", node.value), f"{path}:{node.start_mark.line + 1}"


def _ci_files(tree: Tree) -> Iterator[str]:
    for path in tree.files:
        if _FILES.fullmatch(path) and not _NEITHER_BUILT_NOR_TESTED.search(path.rpartition("/")[2].lower()):
            yield path


def _read(text: str, *, about: str) -> Iterator[tuple[tuple[str, ...], ScalarNode]]:
    """The scalars of a file that speaks *about* something, with the keys that lead to each."""
    import yaml

    if len(text) > _LARGEST or about not in text:
        return
    try:
        require_shallow(text)
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    yield from _scalars(root)


def _packages(text: str) -> Iterator[tuple[str, int]]:
    for path, node in _read(text, about="apt"):
        line = node.start_mark.line + 1
        if path[-1:] == ("packages",) and any("apt" in word for word in path[:-1]):
            yield from ((name, line) for name in _names(node.value.split()))
        elif "apt" in node.value and "install" in node.value:
            first = line + (node.style in ("|", ">"))
            yield from ((name, first + offset) for name, offset in installed(node.value))


def _scalars(root: Node | None) -> Iterator[tuple[tuple[str, ...], ScalarNode]]:
    """Every scalar with the keys that lead to it, jobs that neither build nor test left out. Aliases count once."""
    import yaml

    pending: list[tuple[tuple[str, ...], Node]] = [] if root is None else [((), root)]
    seen: set[int] = set()
    while pending and len(seen) < _MOST_NODES:
        path, node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield path, node
        elif isinstance(node, yaml.SequenceNode):
            pending.extend((path, item) for item in reversed(node.value))
        elif isinstance(node, yaml.MappingNode):
            entries = [(key.value, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
            names = [
                v.value for k, v in entries if k in ("name", "job", "displayName") and isinstance(v, yaml.ScalarNode)
            ]
            if any(_NEITHER_BUILT_NOR_TESTED.search(name.lower()) for name in names) and path:
                continue
            uses = [v.value for k, v in entries if k == "uses" and isinstance(v, yaml.ScalarNode) and "apt" in v.value]
            below = [
                ((*path, *uses, key), value)
                for key, value in entries
                if path[-1:] != ("jobs",) or not _NEITHER_BUILT_NOR_TESTED.search(key.lower())
            ]
            pending.extend(reversed(below))


def installed(script: str) -> Iterator[tuple[str, int]]:
    """Packages that a shell script installs with apt, and the line of each command, counted from 0."""
    lines = _EXPRESSION.sub("$", script).splitlines()
    for start in range(len(lines)):
        if start and lines[start - 1].rstrip().endswith("\\"):
            continue
        end = start
        while lines[end].rstrip().endswith("\\") and end + 1 < len(lines):
            end += 1
        whole = " ".join(part.rstrip().removesuffix("\\") for part in lines[start : end + 1])
        for command in _BREAK.split(whole):
            yield from ((name, start) for name in _of_command(command))


def _of_command(command: str) -> Iterator[str]:
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    tools = [place for place, word in enumerate(words) if word in ("apt", "apt-get", "aptitude")]
    if tools and "install" in words[tools[0] :]:
        yield from _names(words[words.index("install", tools[0]) + 1 :])


def _names(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        name = word.partition("=")[0].partition(":")[0]
        if _PACKAGE.fullmatch(name) is not None:
            yield name
