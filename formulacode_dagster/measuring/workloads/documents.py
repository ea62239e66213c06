"""Examples of use in the repository at the base: its documents, and benchmark scripts unknown to asv."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from formulacode_dagster.building.declarations.needs_of_tests import is_of_tests
from formulacode_dagster.building.suites.missing_suite import DOCUMENTS, is_benchmark_script
from formulacode_dagster.building.suites.overlays import is_whole_checkout
from formulacode_dagster.models.links import LinkWalk
from formulacode_dagster.sources.git.reader import CommitReader

from .shown_code import (
    Snippet,
    as_far_as_written,
    code_in_markdown,
    entered,
    has_prompts,
    parsed,
    snippets_in_code,
)

MOST_TEXTS = 20
"""Maximum of each kind: those that mention the change most."""
MOST_BYTES = 500_000
"""A longer one is data."""
_WORD = re.compile(r"[A-Za-z_]\w+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_DIRECTIVE = re.compile(
    r"(?P<indent>[ \t]*)\.\. (?:code|code-block|sourcecode|ipython)::[ \t]*(?:(?:i?python3?|py3?|pycon)[ \t]*)?"
)
_OPTION = re.compile(r"[ \t]*:[\w-]+:.*")


@dataclass(frozen=True)
class Shown:
    """Documents and benchmark scripts, by path, that speak of names of the change, and these names."""

    texts: Mapping[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    threads: tuple[tuple[str, str], ...] = ()
    """Texts in threads that the pull request refers to, as `owner/repo#n` and text."""

    def spoken(self, text: str) -> int:
        """Return how many of the names *text* mentions."""
        return len(self.names.intersection(_WORD.findall(text)))


def shown_at(reader: CommitReader, commit: str, names: Collection[str], *, benchmark_dir: str) -> Shown:
    """Return the texts at *commit*, MOST_TEXTS of each kind, those with most of *names* first.

    Files in *benchmark_dir* are asv's.
    """
    suite = "" if is_whole_checkout(benchmark_dir) else benchmark_dir.strip("/")
    reader.complete(commit)
    paths = [path for path in reader.list(commit) if not (suite and path.startswith(f"{suite}/"))]
    documents = [path for path in paths if path.endswith(DOCUMENTS)]
    scripts = [path for path in paths if _is_script(PurePosixPath(path))]
    shown, chosen = Shown({}, frozenset(names)), dict[str, str]()
    for kind in (scripts, documents):
        texts = {path: (reader.read(commit, path) or b"")[:MOST_BYTES].decode(errors="replace") for path in kind}
        spoken = {path: shown.spoken(text) for path, text in texts.items()}
        speaking = sorted((path for path in kind if spoken[path]), key=lambda path: -spoken[path])
        chosen |= {path: texts[path] for path in speaking[:MOST_TEXTS]}
    return replace(shown, texts=chosen)


def threads_of(walk: LinkWalk | None) -> tuple[tuple[str, str], ...]:
    """Return the texts of linked issues with their comments, then later comments, as far as they are stored."""
    if walk is None:
        return ()
    threads = [
        (f"{link.repository}#{link.number}", text)
        for link in walk.links
        for text in (link.body, *(comment.body for comment in link.comments))
    ]
    return (*threads, *(("a later comment", comment.body) for comment in walk.later))


def snippets_of_documents(shown: Shown) -> Iterator[Snippet]:
    """Return snippets of documents that mention the names; each block follows the earlier blocks it needs."""
    for path, text in shown.texts.items():
        if not path.endswith(DOCUMENTS):
            continue
        earlier: list[_Earlier] = []
        for code in code_in_markdown(text) if path.endswith(".md") else _code_in_restructured(text):
            if shown.spoken(code):
                yield from (_at(path, snippet) for snippet in _after(earlier, code))
            earlier += map(_Earlier, _statements(code))


@as_far_as_written
def _after(earlier: Sequence[_Earlier], code: str) -> Iterator[Snippet]:
    yield from snippets_in_code(code, "\n".join(statement.code for statement in _needed(earlier, code)))


def snippets_of_scripts(shown: Shown) -> Iterator[Snippet]:
    """Return what scripts time or run at their end, and functions without arguments, those that mention the names
    first.
    """
    for path, text in shown.texts.items():
        tree = parsed(text) if path.endswith(".py") else None
        if tree is not None:
            yield from _of_script(path, tree, shown)


@as_far_as_written
def _of_script(path: str, tree: ast.Module, shown: Shown) -> Iterator[Snippet]:
    body = [statement for statement in tree.body if not _is_guard(statement)]
    alone = [inner for guard in tree.body if isinstance(guard, ast.If) and _is_guard(guard) for inner in guard.body]
    yield from (_at(path, snippet) for snippet in snippets_in_code(_code(body + alone)))
    functions = [each for each in body if isinstance(each, ast.FunctionDef) and _needs_no_argument(each)]
    for function in sorted(functions, key=lambda each: -shown.spoken(ast.unparse(each))):
        yield Snippet(_code(body), f"{function.name}()", f"{path}: {function.name}")


def _is_script(path: PurePosixPath) -> bool:
    return is_benchmark_script(path) and not is_of_tests(path)


def _code_in_restructured(text: str) -> Iterator[str]:
    """The bodies of directives for code, and paragraphs with prompts."""
    lines = text.expandtabs().splitlines()
    place = 0
    while place < len(lines):
        start, directive = place, _DIRECTIVE.fullmatch(lines[place])
        place += 1
        if directive is not None:
            indent = len(directive["indent"])
            while place < len(lines) and (not lines[place].strip() or _indent(lines[place]) > indent):
                place += 1
            yield textwrap.dedent("\n".join(line for line in lines[start + 1 : place] if not _OPTION.fullmatch(line)))
        elif has_prompts(lines[start]):
            while place < len(lines) and lines[place].strip():
                place += 1
            yield textwrap.dedent("\n".join(lines[start:place]))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _statements(code: str) -> list[ast.stmt]:
    """Return *code* without magic commands."""
    tree = parsed("\n".join(line for line in entered(code) if not line.lstrip().startswith(("%", "!"))))
    return tree.body if tree is not None else []


class _Earlier:
    """A statement of an earlier block: looked through once, however many blocks come after it."""

    def __init__(self, statement: ast.stmt) -> None:
        self._statement = statement
        self.bound, self.touched = _bound(statement), _touched(statement)
        self.imported, self.read = _imported(statement), _read(statement)

    @functools.cached_property
    def code(self) -> str:
        """Return its source; raises RecursionError if it is nested too deeply."""
        return ast.unparse(self._statement)


def _needed(earlier: Sequence[_Earlier], code: str) -> list[_Earlier]:
    """Return those of *earlier* that define or modify what *code* names, and what they themselves read."""
    wanted = set(_NAME.findall(code))
    imported = {name for statement in earlier for name in statement.imported}
    needed: list[_Earlier] = []
    for statement in reversed(earlier):
        # a call of a module's function does nothing to the module
        if not wanted.isdisjoint(statement.bound | (statement.touched - imported)):
            needed.append(statement)
            wanted |= statement.read
    return needed[::-1]


def _read(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _imported(statement: ast.stmt) -> set[str]:
    aliases = [node for node in ast.walk(statement) if isinstance(node, ast.alias)]
    return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}


def _bound(statement: ast.stmt) -> set[str]:
    nodes = list(ast.walk(statement))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return bound | _imported(statement)


def _touched(statement: ast.stmt) -> set[str]:
    """Return names on which *statement* calls a method, or whose parts it assigns."""
    nodes = list(ast.walk(statement))
    owners = [node.func.value for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    parts = [node.value for node in nodes if isinstance(node, ast.Subscript | ast.Attribute) and not _is_load(node)]
    return {node.id for node in (*owners, *parts) if isinstance(node, ast.Name)}


def _is_load(node: ast.Subscript | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_guard(statement: ast.stmt) -> bool:
    """Return True for `if __name__ == "__main__":`."""
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _needs_no_argument(function: ast.FunctionDef) -> bool:
    arguments = function.args
    every = len(arguments.posonlyargs) + len(arguments.args)
    keywords = any(default is None for default in arguments.kw_defaults)
    return every == len(arguments.defaults) and not keywords and not function.decorator_list


def _code(statements: Sequence[ast.stmt]) -> str:
    return "\n".join(map(ast.unparse, statements))


def _at(path: str, snippet: Snippet) -> Snippet:
    return replace(snippet, where=path)
