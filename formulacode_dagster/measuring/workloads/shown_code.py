"""Code in texts: the part executed before the clock starts, and the part that is timed."""

from __future__ import annotations

import ast
import builtins
import functools
import math
import re
import shlex
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ParamSpec

from formulacode_dagster.building.declarations.needs_of_tests import is_of_tests
from formulacode_dagster.building.declarations.python_source import parse_python
from formulacode_dagster.sources.markdown import blocks

from .overlay import imported_as

_LANGUAGES = frozenset({"", "py", "python", "python3", "ipython", "ipython3", "pycon", "py3", "console", "bash", "sh"})
_PROMPT = re.compile(r"\s*(?:>>> ?|\.\.\.(?: |$)|In \[\d*\]: ?|\.{3,}: ?)")
_FIRST_PROMPT = re.compile(r"^[ \t]*(?:>>>|In \[\d*\]:)", re.MULTILINE)
_MAGIC = re.compile(r"(?P<cell>%{1,2})(?:timeit|time)\b(?:[ \t]+-\w+(?:[ \t]*\d+)?)*[ \t]*(?P<rest>.*)")
_SHELL = re.compile(r"[\s$]*python[\d.]*\s+-m\s+timeit\s+(?P<rest>.+)")
_ALIASES = {"np": "numpy", "pd": "pandas", "xr": "xarray", "nx": "networkx", "da": "dask.array", "gpd": "geopandas"}
"""Conventional aliases."""
_TIMERS = frozenset({"timeit", "repeat", "Timer"})
P = ParamSpec("P")


@dataclass(frozen=True)
class Snippet:
    """One block: code before the clock starts, timed code, and its place."""

    before: str
    timed: str
    where: str = ""


def as_far_as_written(read: Callable[P, Iterator[Snippet]]) -> Callable[P, Iterator[Snippet]]:
    """*read*, which ends at code that is nested too deep to be written out: `ast` parses more than it unparses."""

    @functools.wraps(read)
    def passing_over(*given: P.args, **named: P.kwargs) -> Iterator[Snippet]:
        with suppress(RecursionError):
            yield from read(*given, **named)

    return passing_over


def snippets_in(text: str) -> Iterator[Snippet]:
    """Return what can be timed in the code blocks of *text*, Markdown."""
    for code in code_in_markdown(text):
        yield from snippets_in_code(code)


def shows_code(texts: Iterable[tuple[str, str]]) -> bool:
    """Return True if one of *texts*, with their places, contains something that can be timed."""
    return any(True for _, text in texts for _ in snippets_in(text))


def code_in_markdown(text: str) -> Iterator[str]:
    """Return the code of the blocks of *text*, and unfenced text with prompts."""
    for block in blocks(text.replace("\r\n", "\n")):
        if block.fenced and block.language.partition(" ")[0] in _LANGUAGES:
            yield textwrap.dedent("\n".join(block.text.splitlines()[1:])).rstrip("`~ \n")
        elif not block.fenced and has_prompts(block.text):
            yield block.text


def has_prompts(text: str) -> bool:
    """Return True if *text* shows an interpreter session."""
    return _FIRST_PROMPT.search(text) is not None


def entered(code: str) -> list[str]:
    """Return the code lines of *code*: with prompts, lines without one are output."""
    lines = code.splitlines()
    if not any(map(_FIRST_PROMPT.match, lines)):
        return lines
    return [line[match.end() :] for line in lines if (match := _PROMPT.match(line))]


@as_far_as_written
def snippets_in_code(code: str, earlier: str = "") -> Iterator[Snippet]:
    """Return what can be timed in one block, with code executed *earlier*."""
    yield from filter(None, map(_of_shell, code.splitlines()))
    lines = entered(code)
    magics = [(place, match) for place, line in enumerate(lines) if (match := _MAGIC.fullmatch(line.strip()))]
    if not magics:
        yield from _of_script("\n".join(lines), earlier)
        return
    cells = [place for place, match in magics if match["cell"] == "%%"]
    for place, match in magics:
        before = [earlier, *(line for line in lines[:place] if not line.lstrip().startswith("%"))]
        if match["cell"] == "%%":
            end = next((cell for cell in cells if cell > place), len(lines))
            yield from _snippet([*before, match["rest"]], lines[place + 1 : end])
        else:
            yield from _snippet(before, [match["rest"]])


def _of_shell(line: str) -> Snippet | None:
    """`python -m timeit -s 'before' 'timed'`."""
    match = _SHELL.match(line)
    if match is None:
        return None
    try:
        words = shlex.split(match["rest"])
    except ValueError:
        return None
    before: list[str] = []
    timed: list[str] = []
    while words:
        word = words.pop(0)
        if word in ("-s", "--setup") and words:
            before.append(words.pop(0))
        elif word in ("-n", "-r", "-u") and words:
            words.pop(0)
        elif not word.startswith("-"):
            timed.append(word)
    return next(_snippet(before, timed), None)


def _of_script(code: str, earlier: str) -> Iterator[Snippet]:
    """Return the argument of `timeit` in it; else its last statements, from the first that does more than prepare."""
    tree = parsed(code)
    if tree is None or not tree.body:
        return
    before = tree.body
    timers = [(place, call) for place, each in enumerate(before) for call in _timer_calls(each)]
    for place, call in timers:
        timed, setup = _given(call)
        if timed:
            yield from _snippet([earlier, *map(ast.unparse, _without_timers(before[:place])), setup], [timed])
    if timers:
        return
    first = next((place for place, each in enumerate(before) if not _prepares(each)), len(before) - 1)
    yield from _snippet([earlier, *map(ast.unparse, before[:first])], map(ast.unparse, before[first:]))


def _timer_calls(statement: ast.stmt) -> list[ast.Call]:
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in _TIMERS and call.args]


def _given(call: ast.Call) -> tuple[str, str]:
    """Return what a call of `timeit` times, and its setup; empty if unknown."""
    setup = next((keyword.value for keyword in call.keywords if keyword.arg == "setup"), None)
    setup = call.args[1] if setup is None and len(call.args) > 1 else setup
    return _code_of(call.args[0]), _code_of(setup)


def _code_of(given: ast.expr | None) -> str:
    match given:
        case ast.Constant(value=str() as code):
            return textwrap.dedent(code).strip()
        case ast.Lambda(body=body):
            return ast.unparse(body)
        case ast.Name(id=name):
            return f"{name}()"
    return ""


def _without_timers(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [statement for statement in statements if not _timer_calls(statement)]


def _prepares(statement: ast.stmt) -> bool:
    match statement:
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
            caught = [each for handler in handlers for each in handler.body]
            return all(map(_prepares, [*body, *caught, *orelse, *finalbody]))
    return _defines(statement) or isinstance(statement, ast.Assign | ast.AnnAssign)


def _defines(statement: ast.stmt) -> bool:
    """Return True for an import, a definition, or a text, which take no time."""
    match statement:
        case ast.Expr(value=ast.Constant()):
            return True
    return isinstance(
        statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Pass
    )


def _snippet(before: Iterable[str], timed: Iterable[str]) -> Iterator[Snippet]:
    """The snippet of these lines, if both are code, and the timed one does something."""
    first, second = ("\n".join(filter(str.strip, lines)).strip() for lines in (before, timed))
    prepared, tree = parsed(first), parsed(second)
    # a lone name, or a definition, takes no time
    acts = [statement for statement in tree.body if not _defines(statement)] if tree else []
    nodes = (node for statement in acts for node in ast.walk(statement))
    if prepared and tree and any(isinstance(node, ast.Call | ast.BinOp | ast.Subscript) for node in nodes):
        names = _unbound(prepared, tree)
        imports = [f"import {_ALIASES[name]} as {name}" if name in _ALIASES else f"import {name}" for name in names]
        yield Snippet("\n".join(filter(None, [*imports, first])), second)


def _unbound(*trees: ast.Module) -> list[str]:
    """Return names whose attributes are read and that nothing binds: modules that authors of issues do not import."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    bound |= {(node.asname or node.name).partition(".")[0] for node in nodes if isinstance(node, ast.alias)}
    owners = (node.value for node in nodes if isinstance(node, ast.Attribute))
    return sorted({node.id for node in owners if isinstance(node, ast.Name)} - bound - set(dir(builtins)))


def parsed(code: str) -> ast.Module | None:
    """Return the statements of *code*; None if it cannot be parsed."""
    try:
        return parse_python(code)
    except (SyntaxError, ValueError, RecursionError):
        return None


def docstrings(
    code: Mapping[str, bytes], package: str, lines: Mapping[str, Collection[int]] | None = None
) -> list[Snippet]:
    """Return doctests in the files *code*, each in the names of its module, as in doctest.

    Those of definitions with one of *lines*, by path, come first, innermost first.
    """
    shown = [
        (_lines_around(node, (lines or {}).get(path, ())), snippet)
        for path, node, snippet in _documented(code, package)
    ]
    return [snippet for _, snippet in sorted(shown, key=lambda each: each[0])]


def _lines_around(node: ast.stmt, lines: Collection[int]) -> float:
    end = node.end_lineno or node.lineno
    return end - node.lineno if any(node.lineno <= line <= end for line in lines) else math.inf


def _documented(code: Mapping[str, bytes], package: str) -> Iterator[tuple[str, ast.stmt, Snippet]]:
    for path, source in sorted(code.items()):
        tree = parsed(source.decode(errors="replace"))
        if tree is None or is_of_tests(PurePosixPath(path)):
            continue
        module = imported_as(path, package)
        names = f"import importlib\nglobals().update(vars(importlib.import_module({module!r})))"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and ">>>" in (text := ast.get_docstring(node) or ""):
                for snippet in snippets_in(text):
                    before = "\n".join(filter(None, [names, snippet.before]))
                    yield path, node, Snippet(before, snippet.timed, f"{path}: {node.name}")
