"""setup.py read without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from formulacode_dagster.building.declarations.declared_requirement import (
    DeclaredRequirement,
    parse_requirement_lines,
    read_requirements_files,
    validate,
)
from formulacode_dagster.building.declarations.tree import Tree, join
from formulacode_dagster.models.environment import DroppedRequirement

from .project import ProjectMetadata, python_classifiers, sourced
from .static_python import Script
from .static_values import Unreadable, Value


class _SetupCall:
    """Arguments of the call to `setup`, and the names known at the call."""

    def __init__(self) -> None:
        self.arguments: dict[str, ast.expr | None] = {}
        self.values: dict[str, Value] = {}


def read_setup_py(tree: Tree, folder: str) -> ProjectMetadata:
    """Return what `setup.py` in *folder* declares in literals, names, and files it reads; the rest is recorded as
    unread.
    """
    path = join(folder, "setup.py") or ""
    source = tree.text(path)
    if source is None:
        return ProjectMetadata()

    def read_file(name: str) -> str | None:
        place = join(folder, name)
        return None if place is None else tree.text(place)

    script = Script(read_file, source=source)
    call = _SetupCall()
    script.on_call = lambda node, names: _collect(script, call, node, names)
    try:
        script.run()
    except (SyntaxError, ValueError, RecursionError) as error:
        reason = f"is not readable as Python: {str(error).splitlines()[0]}"
        return ProjectMetadata(unread=(DroppedRequirement(requirement=path, source=path, reason=reason),))

    unread: list[DroppedRequirement] = []

    def leave(argument: str, source: str, reason: str = "only running the script would show") -> None:
        unread.append(DroppedRequirement(requirement=argument, source=source, reason=reason))

    def requirements(argument: str) -> tuple[DeclaredRequirement, ...] | None:
        if argument not in call.values:
            return None
        place = f"{path}:{argument}"
        value = call.values[argument]
        if isinstance(value, Unreadable):
            found = _of_files_named(script, call.arguments.get(argument), tree, folder)
            if found:
                return found
            leave(argument, place)
            return None
        line = _conditional_line(script, call.arguments.get(argument))
        if line:
            reason = f"in part set under a condition on line {line}, which only running the script would show"
            leave(argument, place, reason)
        return _declarations(value, place)

    extras_value = call.values.get("extras_require")
    dependencies = requirements("install_requires")
    if dependencies is None:
        dependencies = requirements("requires")
    if isinstance(extras_value, Unreadable):
        # the script as the place, since metadata of a build would not add extras to a lock
        leave("extras_require", path)
    extras = {
        str(name): _declarations(value, f"{path}:extras_require.{name}")
        for name, value in (extras_value.items() if isinstance(extras_value, dict) else ())
        if not isinstance(value, Unreadable)
    }
    tests = call.values.get("tests_require")
    if tests is not None and not isinstance(tests, Unreadable):
        extras.setdefault("tests_require", _declarations(tests, f"{path}:tests_require"))
    return ProjectMetadata(
        name=sourced(call.values.get("name"), f"{path}:name"),
        requires_python=sourced(call.values.get("python_requires"), f"{path}:python_requires"),
        classifiers=python_classifiers(call.values.get("classifiers"), f"{path}:classifiers"),
        dependencies=dependencies,
        extras=extras,
        setup_requires=requirements("setup_requires") or (),
        import_names=tuple(dict.fromkeys(name.split(".")[0] for name in _names(call.values))),
        source_folders=_source_folders(call.values.get("package_dir")),
        unread=tuple(unread),
    )


def _collect(script: Script, call: _SetupCall, node: ast.Call, names: Mapping[str, Value]) -> None:
    name = ast.unparse(node.func).rpartition(".")[2]
    own = name.endswith("_setup") and any(keyword.arg == "install_requires" for keyword in node.keywords)
    if (name != "setup" and not own) or name in script.functions:
        return
    for keyword in node.keywords:
        try:
            value: Value = script.value(keyword.value, names)
        except Unreadable as unreadable:
            value = unreadable
        if keyword.arg is not None:
            call.values[keyword.arg] = value
            call.arguments[keyword.arg] = keyword.value
        elif isinstance(value, dict):
            call.values.update({str(key): item for key, item in value.items()})
        elif isinstance(value, Unreadable):
            call.values.setdefault("install_requires", value)


def _declarations(value: Value, source: str) -> tuple[DeclaredRequirement, ...]:
    if isinstance(value, str):
        return parse_requirement_lines(value, source=source)
    if not isinstance(value, list | tuple | set):
        return ()
    texts = (str(item) for item in value if isinstance(item, str))
    return tuple(item for text in texts for item in parse_requirement_lines(text, source=source))


def _reachable(script: Script, node: ast.expr | None) -> list[ast.AST]:
    """Nodes of an expression and of the functions of the script that it calls."""
    if node is None:
        return []
    nodes = list(ast.walk(node))
    called = [inner.func.id for inner in nodes if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name)]
    return [*nodes, *(deep for name in called if name in script.functions for deep in ast.walk(script.functions[name]))]


def _of_files_named(script: Script, node: ast.expr | None, tree: Tree, folder: str) -> tuple[DeclaredRequirement, ...]:
    """Requirements in the files that an expression names, when the expression itself is too clever to follow."""
    constants = [inner.value for inner in _reachable(script, node) if isinstance(inner, ast.Constant)]
    names = [value for value in constants if isinstance(value, str) and value.endswith((".txt", ".in"))]
    seen = set[str]()
    files = [read_requirements_files(tree, folder, [name], seen=seen) for name in names]
    return tuple(item for items in files if validate(items).accepted for item in items)


def _conditional_line(script: Script, node: ast.expr | None) -> int:
    named = {inner.id for inner in _reachable(script, node) if isinstance(inner, ast.Name)}
    return min((line for name, line in script.conditional.items() if name in named), default=0)


def _names(values: Mapping[str, Value]) -> list[str]:
    names: list[str] = []
    for argument in ("packages", "py_modules"):
        value = values.get(argument)
        names += [item for item in value if isinstance(item, str) and item] if isinstance(value, list | tuple) else []
    return names


def _source_folders(package_dir: Value) -> tuple[str, ...]:
    top = package_dir.get("") if isinstance(package_dir, dict) else None
    return (top,) if isinstance(top, str) and top else ()
