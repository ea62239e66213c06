"""Snippets of the authors as suites: code of the pull request, of the issues it closes, of docstrings and documents;
and benchmark scripts unknown to asv.

The writer of the statement never sees them. A block that reveals the solution, by the gates of statements, is left out,
because a task is published with its workloads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources

from formulacode_dagster.building.declarations.python_source import PARSER
from formulacode_dagster.building.suites.overlays import SuiteFiles, is_whole_checkout, printable
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.pull_request import MergedPullRequest, PullRequest
from formulacode_dagster.selection.statements.gates import Gates, WithheldText

from .documents import Shown, snippets_of_documents, snippets_of_scripts
from .generated.growing import grown_code
from .scaled import FACTORS, LARGER, LEAST_SECONDS, growth_name
from .shown_code import Snippet, docstrings, snippets_in
from .sides import Sides

MODULE = "snippets"
MOST_SNIPPETS = 20
LONGEST_SECONDS = 30.0
"""Time limit of one call, in seconds."""
TRIAL_SECONDS = 60.0
"""Time limit of one run; snippets beyond it are no workload."""
TOLD = {Source.SCRIPTS: "code of benchmark scripts", Source.SNIPPETS: "code that the authors wrote down"}


def suites_of_scripts(sides: Sides, shown: Shown, *, commit: str, note: Callable[[str], None]) -> Iterator[SuiteFiles]:
    """Return the suite of what benchmark scripts among the *shown* texts of *commit* time, as `suites_of_snippets`."""
    yield from _suites(sides, snippets_of_scripts(shown), Source.SCRIPTS, commit, note)


def suites_of_snippets(
    sides: Sides,
    pr: PullRequest,
    patch: bytes,
    code: Mapping[str, bytes],
    shown: Shown,
    note: Callable[[str], None],
) -> Iterator[SuiteFiles]:
    """Return the suite of snippets that run on both sides with equal results and execute the change, if there are any.

    *code* maps paths to the changed Python files of the base: snippets of changed functions come first, alternating
    with those that documents have *shown*, most relevant first. Short ones are scaled like short tests. Otherwise
    *note* receives the reason. Everything runs in copies of the sessions.
    """
    of_functions = docstrings(code, sides.image.spec.package_name, sides.lines[0])
    of_documents = sorted(snippets_of_documents(shown), key=lambda snippet: -shown.spoken(snippet.timed))
    # neither is to take all the room: the first of each come first
    pairs = itertools.zip_longest(of_functions, of_documents)
    documented = (snippet for pair in pairs for snippet in pair if snippet is not None)
    yield from _suites(
        sides, snippets_of(pr, patch, documented, shown.threads), Source.SNIPPETS, pr.change.base_sha, note
    )


def _suites(
    sides: Sides, every: Iterable[Snippet], source: Source, commit: str, note: Callable[[str], None]
) -> Iterator[SuiteFiles]:
    spec = sides.image.spec
    if not sides.can_be_aimed or is_whole_checkout(spec.benchmark_dir):
        return
    if not sides.is_confined:
        note(f"{TOLD[source]} runs only in containers")
        return
    snippets = list(itertools.islice(every, MOST_SNIPPETS))
    if not snippets:
        note(f"{TOLD[source]} does not mention the change")
        return
    note(f"trying {len(snippets)} pieces of {TOLD[source]}")
    try:
        kept = _fit(sides, snippets)
        note(f"{len(kept)} of them run on both sides with one result and through the change")
        larger = _grown(sides, [snippet for snippet, seconds in kept.items() if seconds < LEAST_SECONDS])
    except ItemFailure as failure:
        note(f"they cannot be tried: {failure}")
        return
    if kept:
        timed = [larger.get(snippet, snippet) for snippet in kept]
        adapted = tuple(f"{snippet.where}: {_class_name(number)}" for number, snippet in enumerate(timed))
        files = snippet_files(timed, spec)
        yield SuiteFiles(f"{len(timed)} snippets", files, source, commit, adapted)


def _fit(sides: Sides, snippets: Sequence[Snippet]) -> dict[Snippet, float]:
    """Return those of *snippets* that can be workloads, with the seconds of a call."""
    if not snippets:
        return {}
    files = snippet_files(snippets, sides.image.spec)
    tried = sides.trial(files, limit=LONGEST_SECONDS, budget=TRIAL_SECONDS).tried
    fit = {each.base.owner: each.seconds for each in tried if sides.may_execute_change(each) and each.agrees}
    named = {_class_name(number): snippet for number, snippet in enumerate(snippets)}
    return {snippet: fit[name] for name, snippet in named.items() if name in fit}


def _grown(sides: Sides, short: Sequence[Snippet]) -> dict[Snippet, Snippet]:
    """Return for each of *short* its smallest sufficient growth, if there is one."""
    growths = [
        (larger, snippet)
        for snippet in short
        for rule in LARGER
        for factor in FACTORS
        if (larger := _larger(snippet, rule, factor))
    ]
    # of two rules that come to the same, the first
    unlike = {(larger.before, larger.timed): (larger, snippet) for larger, snippet in reversed(growths)}
    origins = dict(reversed(unlike.values()))
    fit = _fit(sides, list(origins))
    chosen: dict[Snippet, Snippet] = {}
    for larger, seconds in sorted(fit.items(), key=lambda each: each[1]):
        if seconds >= LEAST_SECONDS:
            chosen.setdefault(origins[larger], larger)
    return chosen


def _larger(snippet: Snippet, rule: str, factor: int) -> Snippet | None:
    try:
        with PARSER:
            parts = [grown_code(code, rule, factor) for code in (snippet.before, snippet.timed)]
    except RecursionError:
        return None
    if not any(parts):
        return None
    return Snippet(parts[0] or snippet.before, parts[1] or snippet.timed, growth_name(snippet.where, rule, factor))


def snippets_of(
    pr: PullRequest, patch: bytes, documented: Iterable[Snippet] = (), threads: Iterable[tuple[str, str]] = ()
) -> Iterator[Snippet]:
    """Iterate over what can be timed in the texts of *pr*, of *threads*, and *documented* code, without duplicates.

    Snippets that reveal parts of *patch* are left out; each is checked on demand.
    """
    facts = pr.facts
    gates = Gates(WithheldText(facts.repository, facts.number, patch))
    texts = (*texts_of(facts), *threads)
    shown = (replace(snippet, where=where) for where, text in texts for snippet in snippets_in(text))
    known: set[tuple[str, str]] = set()
    for snippet in itertools.chain(shown, documented):
        code = snippet.before, snippet.timed
        if code not in known and not gates.solution_in(_as_written(snippet)):
            yield snippet
        known.add(code)


def texts_of(facts: MergedPullRequest) -> list[tuple[str, str]]:
    """Return the texts of a pull request and of the issues it closes, with their places."""
    issues = [(f"{issue.repository}#{issue.number}", issue.body) for issue in facts.linked_issues]
    return [("pull request", facts.body), *issues]


def _as_written(snippet: Snippet) -> str:
    return f"```python\n{snippet.before}\n{snippet.timed}\n```\n"


def snippet_files(snippets: Sequence[Snippet], spec: BuildSpec) -> dict[str, bytes]:
    """Return a benchmark folder with only *snippets*."""
    folder = spec.benchmark_dir.strip("/")
    parts = [
        resources.files("formulacode_dagster.measuring.workloads")
        .joinpath("generated", f"{MODULE}.py")
        .read_text("utf-8")
    ]
    for number, snippet in enumerate(snippets):
        parts.append(f"\n\nclass {_class_name(number)}(_Snippet):\n    # {printable(snippet.where)}\n")
        parts.append(f"    before = {snippet.before!r}\n    timed = {snippet.timed!r}\n")
    return {f"{folder}/__init__.py": b"", f"{folder}/{MODULE}.py": "".join(parts).encode()}


def _class_name(number: int) -> str:
    return f"Snippet{number + 1}"
