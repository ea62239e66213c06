"""Requirements of a repository's tests besides the package: extras, groups, files, tox, nox and CI.

Nothing is guessed but pytest itself, which runs them all.
"""

from __future__ import annotations

import ast
import configparser
import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

from .ci_files import scripts_of_ci
from .declared_requirement import (
    DeclaredRequirement,
    parse_requirement_lines,
    read_requirements_files,
    requirement_name,
    validate,
)
from .imports import projects_of
from .install_arguments import install_arguments
from .optional import OptionalGroup
from .python_source import parse_python
from .tree import Tree

PYTEST = DeclaredRequirement(text="pytest", source="what runs the tests")
_TEST_FOLDERS = frozenset({"test", "tests", "testing", "testsuite", "_tests"})
_TEST_FILE = re.compile(r"^(test_.*|.*_tests?|tests|conftest)\.py$")
_FOR_TESTS = re.compile(r"(^|[^a-z])(tests?|testing)([^a-z]|$)")
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_PLUGIN = re.compile(r"pytest([-_.]|$)")
_FOR_OTHERS = re.compile(
    r"pytest[-_.](cov|xdist|timeout|randomly|sugar|html|benchmark|codspeed|rerunfailures|github)\b"
)
"""Plugins about how tests are run, which is ours to say."""
_TOX_FACTOR = re.compile(r"^[\w.,{}!-]+:\s*(?=\S)")
_MOST_FILES = 300
"""Files of tests whose imports are read."""


def is_of_tests(path: PurePosixPath) -> bool:
    """Return True if a file belongs to tests, by its name or one of its folders."""
    return not _TEST_FOLDERS.isdisjoint(path.parts[:-1]) or _TEST_FILE.match(path.name) is not None


def choose_for_tests(tree: Tree, among: Iterable[OptionalGroup], *, own_name: str) -> tuple[DeclaredRequirement, ...]:
    """The requirements of the tests at the commit of *tree*, pytest first, each project once.

    Groups of *among* named for tests count in full, except plugins that only change how tests run; from all others, and
    from tox, nox and CI, only what tests import and plugins that change their meaning.
    """
    paths = [path for path in tree.files if path.endswith(".py") and is_of_tests(PurePosixPath(path))]
    imported = {name for path in paths[:_MOST_FILES] for name in _IMPORT.findall(tree.text(path) or "")}
    projects = {project for name in imported for project in projects_of(name)}
    groups = tuple(among)
    meant = [group for group in groups if _FOR_TESTS.search(group.name.lower())]
    others = [group for group in groups if group not in meant]
    declared = [item for group in meant for item in group.items]
    files = set[str]()
    elsewhere = [
        *_tox(tree, files),
        *_nox(tree, files),
        *_ci(tree, files),
        *(item for group in others for item in group.items),
    ]
    chosen: dict[str, DeclaredRequirement] = {"pytest": PYTEST} if paths else {}
    for item in _usable(declared, own_name) if paths else ():
        if not _FOR_OTHERS.match(requirement_name(item.text)):
            _add(chosen, item)
    for item in _usable(elsewhere, own_name) if paths else ():
        name = requirement_name(item.text)
        if name in projects or (_PLUGIN.match(name) and not _FOR_OTHERS.match(name)):
            _add(chosen, item)
    return tuple(chosen.values())


def _add(chosen: dict[str, DeclaredRequirement], item: DeclaredRequirement) -> None:
    """The first declaration of a project counts, but any is better than an inferred one."""
    name = requirement_name(item.text)
    if chosen.get(name, PYTEST) is PYTEST:
        chosen[name] = item


def _usable(items: Collection[DeclaredRequirement], own_name: str) -> tuple[DeclaredRequirement, ...]:
    return validate(items, own_name=own_name).accepted


def _tox(tree: Tree, files: set[str]) -> Iterator[DeclaredRequirement]:
    for path in ("tox.ini", "setup.cfg"):
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
        try:
            parser.read_string(tree.text(path) or "")
        except configparser.Error:
            continue
        for section in parser.sections():
            # the plain environment, and those that are a test run of some kind
            if section == "testenv" or (section.startswith("testenv:") and _FOR_TESTS.search(section)):
                text = "\n".join(
                    _TOX_FACTOR.sub("", line.strip()) for line in (parser[section].get("deps") or "").split("\n")
                )
                yield from parse_requirement_lines(
                    text,
                    source=f"{path}:{section}",
                    include=lambda name: read_requirements_files(tree, ".", [name], seen=files),
                )


def _nox(tree: Tree, files: set[str]) -> Iterator[DeclaredRequirement]:
    try:
        module = parse_python(tree.text("noxfile.py") or "")
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "install":
            # a variable may be the value of an option
            words = [str(word.value) if isinstance(word, ast.Constant) else "$" for word in node.args]
            yield from _of_pip(tree, words, f"noxfile.py:{node.lineno}", files)


def _ci(tree: Tree, files: set[str]) -> Iterator[DeclaredRequirement]:
    for script, source in scripts_of_ci(tree):
        for command in re.findall(r"\bpip3? install\s+([^\n;&|]+)", script.replace("\\\n", " ")):
            try:
                words = shlex.split(command, comments=True)
            except ValueError:
                continue
            yield from _of_pip(tree, words, source, files)


def _of_pip(tree: Tree, words: list[str], source: str, files: set[str]) -> Iterator[DeclaredRequirement]:
    """Return the arguments of `pip install`; a folder, perhaps with extras, is the project itself.

    *files* are requirements files that were read before.
    """
    for option, word in install_arguments(words):
        if option == "-r":
            yield from read_requirements_files(tree, ".", [word], seen=files)
        elif not option and not word.startswith((".", "/", "$")):
            yield DeclaredRequirement(text=word, source=source)
