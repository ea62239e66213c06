"""Callables that a pull request brings into the suite, and that asv's rule of names leaves out.

An author who adds `test_multipoint_from_numpy` to a class of benchmarks meant it to be timed, but asv never collects
it. Such a callable gets a second name that asv collects, so its class's setup and parameters apply to it as well.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from formulacode_dagster.building.declarations.python_source import parse_python
from formulacode_dagster.building.suites.reading import BENCHMARK_NAME

SUITE_FUNCTIONS = frozenset({"setup", "setup_cache", "teardown"})
"""Functions that asv calls around a benchmark."""
HEADING = "# What asv's rule of names leaves out of what the pull request brings."
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class MissedCallable:
    """A function or method of one file of the suite, by the class it is in (`` for none)."""

    path: str
    owner: str
    name: str

    @property
    def alias(self) -> str:
        """The statement that gives it a name that asv collects."""
        place = f"{self.owner}." if self.owner else ""
        return f"{place}time_{self.name} = {place}{self.name}"


def missed_callables(merged: Mapping[str, bytes], base: Mapping[str, bytes]) -> list[MissedCallable]:
    """Public functions and methods of *merged* that are not so in *base*, that nothing in the suite uses.

    Both map paths to files of the suite. Anything that the suite itself calls is a helper, timed through its caller.
    Decorated and conditional definitions are left out, and those that asv collects.
    """
    uses = Counter(word for path, text in merged.items() if path.endswith(".py") for word in _words(text))
    return [
        MissedCallable(path, owner, name)
        for path, text in sorted(merged.items())
        if path.endswith(".py") and text != base.get(path)
        for (owner, name), meaning in _functions(text).items()
        if uses[name] == 1
        and not uses[f"time_{name}"]
        and not BENCHMARK_NAME.match(name)
        and name not in SUITE_FUNCTIONS
        and _functions(base.get(path, b"")).get((owner, name)) != meaning
    ]


def with_aliases(files: Mapping[str, bytes], missed: list[MissedCallable]) -> dict[str, bytes]:
    """*files* with a line for each of *missed* at the end of its file."""
    laid = dict(files)
    for path in {callable_.path for callable_ in missed}:
        aliases = [callable_.alias for callable_ in missed if callable_.path == path]
        laid[path] = files[path].rstrip() + "\n".join(["\n\n", HEADING, *aliases, ""]).encode()
    return laid


def _functions(source: bytes) -> dict[tuple[str, str], str]:
    """Return the meaning of each public function and method by (class or ``, name); none for invalid Python."""
    try:
        return {
            (owner, function.name): ast.dump(function)
            for owner, function in _definitions(parse_python(source.decode()).body)
            if not function.name.startswith("_") and not function.decorator_list
        }
    except (SyntaxError, ValueError, RecursionError):
        return {}


def _definitions(body: list[ast.stmt]) -> Iterator[tuple[str, ast.FunctionDef]]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            yield "", statement
        elif isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
            yield from ((statement.name, inner) for inner in statement.body if isinstance(inner, ast.FunctionDef))


def _words(source: bytes) -> list[str]:
    return _WORD.findall(source.decode(errors="replace"))
