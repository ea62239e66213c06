"""What the authors wrote down: code blocks of the pull request and of the issues that it closes, as a suite.

Whoever writes the statement sees nothing of it. A block that tells of the solution what the gates of statements forbid
is left out: a task is given with its workloads.
"""

from __future__ import annotations

import ast
import builtins
import re
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources

from formulacode_dagster.declarations.python_source import parse_python
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.problem import LeakKind
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.problems.gates import Gates, Secrets
from formulacode_dagster.problems.markdown import blocks
from formulacode_dagster.suites.overlays import SuiteFiles, is_whole_checkout

from .sides import Sides

MODULE = "snippets"
MOST_SNIPPETS = 20
LONGEST_SECONDS = 30.0
"""Of one call."""
TRIAL_SECONDS = 60.0
"""For all of one run; what they do not come to is no workload."""
TELLING = frozenset({LeakKind.LINE, LeakKind.RENAMED_LINE, LeakKind.CODE})
"""What a block must not tell. That it stands in the pull request's text is what it is taken for."""
_LANGUAGES = frozenset({"", "py", "python", "python3", "ipython", "ipython3", "pycon", "py3", "console", "bash", "sh"})
_PROMPT = re.compile(r"\s*(?:>>> ?|\.\.\.(?: |$)|In \[\d*\]: ?|\.{3,}: ?)")
_FIRST_PROMPT = re.compile(r"\s*(?:>>>|In \[\d*\]:)")
_MAGIC = re.compile(r"(?P<cell>%{1,2})(?:timeit|time)\b(?:[ \t]+-\w+(?:[ \t]*\d+)?)*[ \t]*(?P<rest>.*)")
_SHELL = re.compile(r"[\s$]*python[\d.]*\s+-m\s+timeit\s+(?P<rest>.+)")
_ALIASES = {"np": "numpy", "pd": "pandas", "xr": "xarray", "nx": "networkx", "da": "dask.array", "gpd": "geopandas"}
"""What everybody calls them."""
_TIMERS = frozenset({"timeit", "repeat", "Timer"})


@dataclass(frozen=True)
class Snippet:
    """One block: what is executed before the clock starts, what is timed, and where it stands."""

    before: str
    timed: str
    where: str = ""


def suites_of_snippets(
    sides: Sides, pr: PullRequest, patch: bytes, note: Callable[[str], None]
) -> Iterator[SuiteFiles]:
    """The suite of the blocks that run on both sides with one result and execute the change, if there are any.

    Else *note* says why. They are tried in copies of the sessions.
    """
    spec = sides.image.spec
    if not sides.can_be_traced or is_whole_checkout(spec.benchmark_dir):
        return
    snippets = snippets_of(pr, patch)[:MOST_SNIPPETS]
    if not snippets:
        note("nobody wrote down what shows the change")
        return
    note(f"trying {len(snippets)} pieces of code that the authors wrote down")
    try:
        tried = sides.trial(snippet_files(snippets, spec), limit=LONGEST_SECONDS, budget=TRIAL_SECONDS).tried
    except ItemFailure as failure:
        note(f"they cannot be tried: {failure}")
        return
    fit = {each.base.owner for each in tried if each.executes_change and each.agrees}
    kept = [snippet for number, snippet in enumerate(snippets) if _class_name(number) in fit]
    note(f"{len(tried)} of them run on both sides, {len(kept)} with one result and through the change")
    if kept:
        adapted = tuple(f"{snippet.where}: {_class_name(number)}" for number, snippet in enumerate(kept))
        files = snippet_files(kept, spec)
        yield SuiteFiles(f"{len(kept)} snippets", files, Source.SNIPPETS, pr.change.base_sha, adapted)


def snippets_of(pr: PullRequest, patch: bytes) -> list[Snippet]:
    """What can be timed of the texts of *pr*, its own first, none twice; without what tells something of *patch*."""
    facts = pr.facts
    gates = Gates(Secrets(facts.repository, facts.number, patch))
    texts = [("pull request", facts.body)]
    texts += [(f"{issue.repository}#{issue.number}", issue.body) for issue in facts.linked_issues]
    unique = {
        (snippet.before, snippet.timed): replace(snippet, where=where)
        for where, text in reversed(texts)
        for snippet in reversed(list(snippets_in(text)))
    }
    return [
        snippet
        for snippet in reversed(unique.values())
        if not any(leak.kind in TELLING for leak in gates.judge(_as_written(snippet), snippet.where))
    ]


def _as_written(snippet: Snippet) -> str:
    return f"```python\n{snippet.before}\n{snippet.timed}\n```\n"


def snippets_in(text: str) -> Iterator[Snippet]:
    """What can be timed of the code blocks of *text*, markdown."""
    for block in blocks(text.replace("\r\n", "\n")):
        if block.fenced and block.language.partition(" ")[0] in _LANGUAGES:
            code = textwrap.dedent("\n".join(block.text.splitlines()[1:])).rstrip("`~ \n")
            yield from _in_code(code)
        elif not block.fenced and _FIRST_PROMPT.search(block.text):
            yield from _in_code(block.text)


def _in_code(code: str) -> Iterator[Snippet]:
    lines = code.splitlines()
    yield from filter(None, map(_of_shell, lines))
    if any(map(_FIRST_PROMPT.match, lines)):
        # what has no prompt is what was printed
        lines = [line[match.end() :] for line in lines if (match := _PROMPT.match(line))]
    magics = [(place, match) for place, line in enumerate(lines) if (match := _MAGIC.fullmatch(line.strip()))]
    if not magics:
        yield from _of_script("\n".join(lines))
        return
    cells = [place for place, match in magics if match["cell"] == "%%"]
    for place, match in magics:
        before = [line for line in lines[:place] if not line.lstrip().startswith("%")]
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


def _of_script(code: str) -> Iterator[Snippet]:
    """What `timeit` is given in it; else its last statements, from the first that does more than prepare them."""
    tree = _parsed(code)
    if tree is None or not tree.body:
        return
    before = tree.body
    timers = [(place, call) for place, each in enumerate(before) for call in _timer_calls(each)]
    for place, call in timers:
        timed, setup = _given(call)
        if timed:
            yield from _snippet([*map(ast.unparse, _without_timers(before[:place])), setup], [timed])
    if timers:
        return
    first = next((place for place, each in enumerate(before) if not _prepares(each)), len(before) - 1)
    yield from _snippet(map(ast.unparse, before[:first]), map(ast.unparse, before[first:]))


def _timer_calls(statement: ast.stmt) -> list[ast.Call]:
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in _TIMERS and call.args]


def _given(call: ast.Call) -> tuple[str, str]:
    """What a call of `timeit` times, and what it does before; `` for what cannot be told."""
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
    return isinstance(
        statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
    )


def _snippet(before: Iterable[str], timed: Iterable[str]) -> Iterator[Snippet]:
    """The snippet of these lines, if both are code, and the timed one does something."""
    first, second = ("\n".join(filter(str.strip, lines)).strip() for lines in (before, timed))
    prepared, tree = _parsed(first), _parsed(second)
    # a name alone, or a definition, is nothing that takes time
    if prepared and tree and any(isinstance(node, ast.Call | ast.BinOp | ast.Subscript) for node in ast.walk(tree)):
        names = _unbound(prepared, tree)
        imports = [f"import {_ALIASES[name]} as {name}" if name in _ALIASES else f"import {name}" for name in names]
        yield Snippet("\n".join(filter(None, [*imports, first])), second)


def _unbound(*trees: ast.Module) -> list[str]:
    """Names of which attributes are read and that nothing binds: modules, which who writes an issue does not import."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    bound |= {(node.asname or node.name).partition(".")[0] for node in nodes if isinstance(node, ast.alias)}
    owners = (node.value for node in nodes if isinstance(node, ast.Attribute))
    return sorted({node.id for node in owners if isinstance(node, ast.Name)} - bound - set(dir(builtins)))


def _parsed(code: str) -> ast.Module | None:
    try:
        return parse_python(code)
    except (SyntaxError, ValueError, RecursionError):
        return None


def snippet_files(snippets: Sequence[Snippet], spec: BuildSpec) -> dict[str, bytes]:
    """The benchmark folder with *snippets* alone."""
    folder = spec.benchmark_dir.strip("/")
    parts = [resources.files("formulacode_dagster.workloads").joinpath("laid", f"{MODULE}.py").read_text("utf-8")]
    for number, snippet in enumerate(snippets):
        parts.append(f"\n\nclass {_class_name(number)}(_Snippet):\n    # {snippet.where}\n")
        parts.append(f"    before = {snippet.before!r}\n    timed = {snippet.timed!r}\n")
    return {f"{folder}/__init__.py": b"", f"{folder}/{MODULE}.py": "".join(parts).encode()}


def _class_name(number: int) -> str:
    return f"Snippet{number + 1}"
