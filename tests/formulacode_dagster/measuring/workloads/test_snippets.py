"""Code that the authors wrote down, as benchmarks."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from formulacode_dagster.building.suites.patching import apply_patch
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.workloads import snippets as module
from formulacode_dagster.measuring.workloads.documents import Shown, threads_of
from formulacode_dagster.measuring.workloads.shown_code import Snippet, docstrings, has_prompts, snippets_in
from formulacode_dagster.measuring.workloads.sides import Sides
from formulacode_dagster.measuring.workloads.snippets import (
    MOST_SNIPPETS,
    snippet_files,
    snippets_of,
    suites_of_scripts,
    suites_of_snippets,
)
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.links import Link, LinkWalk, ThreadComment
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.pull_request import LinkedIssue
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.selection.statements import solution
from formulacode_dagster.selection.statements.gates import Gates

CHAIN = " + ".join(["1"] * 500)
"""Input that the parser accepts, and that cannot be written out again."""
CORE = "import time\n\n\ndef total(n):\n    return sum(range(n))\n\n\ndef wrong(n):\n    return total(n)\n"
FASTER = CORE.replace("sum(range(n))", "n * (n - 1) // 2").replace("return total(n)", "return total(n) + 1")
LINES = {"pkg/core.py": [5, 9]}


def fenced(code, language="python"):
    return f"Look:\n```{language}\n{code}\n```\nand more.\n"


@pytest.mark.parametrize(
    ("text", "snippets"),
    [
        pytest.param(
            fenced("import pkg\nn = 5\npkg.total(n)\npkg.total(6)"),
            [("import pkg\nn = 5", "pkg.total(n)\npkg.total(6)")],
            id="a script",
        ),
        pytest.param(fenced("import pkg\nt = pkg.total(5)"), [("import pkg", "t = pkg.total(5)")], id="an assignment"),
        pytest.param(
            fenced("In [1]: import pkg\nIn [2]: %timeit -n 5 pkg.total(5)\n1.2 ms\nIn [3]: %timeit pkg.f(6)", ""),
            [("import pkg", "pkg.total(5)"), ("import pkg", "pkg.f(6)")],
            id="a session of IPython",
        ),
        pytest.param(
            fenced("import pkg\n%%timeit n = 5\npkg.total(n)"), [("import pkg\nn = 5", "pkg.total(n)")], id="a cell"
        ),
        pytest.param(
            ">>> import pkg\n>>> pkg.total(\n...     5)\n10\n",
            [("import pkg", "pkg.total(5)")],
            id="an unfenced doctest",
        ),
        pytest.param(
            fenced("$ python3 -m timeit -n 5 -s 'import pkg' 'pkg.total(5)'", "sh"),
            [("import pkg", "pkg.total(5)")],
            id="timeit in a shell",
        ),
        pytest.param(
            fenced("import pkg, timeit\ntimeit.timeit('pkg.total(5)', setup='n = 5')\ntimeit.repeat(lambda: pkg.f(6))"),
            [("import pkg, timeit\nn = 5", "pkg.total(5)"), ("import pkg, timeit", "pkg.f(6)")],
            id="calls of timeit",
        ),
        pytest.param(
            fenced("pkg.total(np.ones(5))"),
            [("import numpy as np\nimport pkg", "pkg.total(np.ones(5))")],
            id="no import",
        ),
        pytest.param(fenced("this is no code"), [], id="prose"),
        pytest.param(fenced("pkg.total(5)", "diff"), [], id="another language"),
        pytest.param(fenced("def f():\n    pass"), [], id="nothing that takes time"),
        pytest.param(fenced("python -m timeit 'unclosed", "sh"), [], id="a broken command"),
        pytest.param("pkg.total(5)", [], id="no code block"),
    ],
)
def test_what_can_be_timed_is_told_from_what_comes_before(text, snippets):
    assert list(snippets_in(text)) == [Snippet(*each) for each in snippets]


@pytest.fixture
def image(image):
    """Folders here are declared to be images: only in those is code of texts run."""
    return image.model_copy(update={"engine": EngineName.DOCKER})


def test_nothing_of_it_is_run_on_the_host(written, image):
    notes = []
    folder = image.model_copy(update={"engine": EngineName.PROCESS})
    sides = Sides(None, folder, (None, None), (LINES, LINES), "run")
    assert list(suites_of_snippets(sides, written(fenced("pkg.total(5)")), b"", {}, Shown(), notes.append)) == []
    assert notes == ["code that the authors wrote down runs only in containers"]


@pytest.fixture
def written(pull_request):
    """The pull request with this text, whose issues have those."""

    def make(body, *issues):
        pr = pull_request("pkg/core.py")
        opened = datetime(2026, 2, 1, tzinfo=UTC)
        linked = tuple(
            LinkedIssue(repository="acme/fast", number=number, title="slow", body=text, created_at=opened)
            for number, text in enumerate(issues, start=1)
        )
        return pr.model_copy(update={"facts": pr.facts.model_copy(update={"body": body, "linked_issues": linked})})

    return make


def test_of_the_same_code_the_first_place_is_told(written):
    same = fenced("pkg.total(5)")
    places = [snippet.where for snippet in snippets_of(written(same, same, fenced("pkg.total(6)")), b"")]
    assert places == ["pull request", "acme/fast#2"]


def test_comments_of_linked_issues_follow_the_issues_by_date(written):
    at = datetime(2026, 2, 1, tzinfo=UTC)
    first, second, later = (ThreadComment(author="a", body=fenced(f"pkg.total({n})"), created_at=at) for n in (6, 7, 8))
    link = Link(repository="acme/fast", number=9, title="slow", created_at=at, comments=(first, second))
    threads = threads_of(LinkWalk(links=(link,), later=(later,)))
    snippets = snippets_of(written(fenced("pkg.total(5)"), fenced("pkg.total(6)")), b"", threads=threads)
    assert [(snippet.timed, snippet.where) for snippet in snippets] == [
        ("pkg.total(5)", "pull request"),
        ("pkg.total(6)", "acme/fast#1"),
        ("pkg.total(7)", "acme/fast#9"),
        ("pkg.total(8)", "a later comment"),
    ]
    assert threads_of(None) == ()


@pytest.mark.parametrize(
    ("code", "taken"),
    [
        pytest.param("pkg.core.total(n=5)", True, id="calls it"),
        pytest.param("totals = numpy.cumsum(values, dtype=object)\ntotals[5]", False, id="the solution"),
        pytest.param("sums = numpy.cumsum(numbers, dtype=object)\nsums[5]", False, id="with other names"),
        pytest.param("def total(n):\n    return sum(range(n))\ntotal(5)", True, id="the base"),
    ],
)
def test_what_tells_the_solution_is_no_workload(written, git_patch, tmp_path, code, taken):
    after = CORE.replace("return sum(range(n))", "totals = numpy.cumsum(values, dtype=object)\n    return totals[-1]")
    patch = git_patch(tmp_path, {"pkg/core.py": CORE}, {"pkg/core.py": after})
    assert bool(list(snippets_of(written(fenced(code)), patch))) is taken


NOTHING = Shown()


@pytest.fixture
def tried(tmp_path, git_patch, engine_of, image):
    """Suites of the snippets of a pull request that makes `total` faster, and a session of its base."""
    source = tmp_path / "source"
    source.mkdir()
    files = {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/bench.py": ""}
    patch = git_patch(source, files, {"pkg/core.py": FASTER})
    engine = engine_of(source)

    @contextmanager
    def run(pr, notes, code=MappingProxyType({}), shown=NOTHING):
        with engine.session(image, run_id="run") as base, engine.session(image, run_id="run") as oracle:
            apply_patch(oracle, patch)
            sides = Sides(engine, image, (base, oracle), (LINES, LINES), "run")
            suites = suites_of_scripts(sides, shown, commit="b" * 40, note=notes.append)
            yield [*suites, *suites_of_snippets(sides, pr, patch, code, shown, notes.append)], base

    return run


@pytest.mark.slow
def test_code_that_reaches_the_change_with_one_result_is_timed(tried, written):
    codes = (
        "core.total(1000)",
        "core.wrong(1000)",
        "core.time.sleep(0.001)",
        "core.nothing(3)",
        "open('/proc/self/stat').read() + str(core.total(3))",
    )
    body = "\n".join(fenced(f"from pkg import core\n{code}") for code in codes)
    notes = []
    with tried(written(body), notes) as ((suite,), session):
        remote = HarnessClient(session, benchmark_dir="benchmarks")
        remote.write(suite.files)
        (benchmark,) = remote.survey(lines=LINES, limit=10, budget=30).benchmarks
    assert (suite.source, suite.adapted) == (Source.SNIPPETS, ("pull request: Snippet1",))
    assert (benchmark.outcome, benchmark.lines) == ("ran", {"pkg/core.py": (5,)})
    assert notes[-1] == "1 of them run on both sides with one result and through the change"


@pytest.mark.slow
def test_scripts_and_documents_of_the_base_are_timed_by_where_they_stand(tried, written):
    other = "def other():\n    return core.nothing(1)\n"
    script = f"from pkg import core\n\ndef bench():\n    return core.total(100000)\n\n{other}"
    document = ">>> from pkg import core\n\n>>> core.total(200000)\n"
    shown = Shown({"benchmarks/sums.py": script, "docs/tour.rst": document}, frozenset({"total"}))
    with tried(written("It is faster."), [], shown=shown) as ((scripts, snippets), session):
        remote = HarnessClient(session, benchmark_dir="benchmarks")
        surveys = []
        for suite in (scripts, snippets):
            remote.write(suite.files)
            surveys.append(remote.survey(lines=LINES, limit=10, budget=30).benchmarks)
    assert (scripts.source, scripts.adapted) == (Source.SCRIPTS, ("benchmarks/sums.py: bench: Snippet1",))
    assert (snippets.source, snippets.adapted) == (Source.SNIPPETS, ("docs/tour.rst: Snippet1",))
    assert [[(each.outcome, each.lines) for each in survey] for survey in surveys] == [
        [("ran", {"pkg/core.py": (5,)})],
        [("ran", {"pkg/core.py": (5,)})],
    ]


DOCUMENTED = CORE.replace(
    "def total(n):\n", 'def total(n):\n    """The sum.\n\n    >>> total(n=2000)\n    1999000\n    """\n'
)


@pytest.mark.slow
def test_a_doctest_is_timed_with_larger_inputs_where_it_is_short(tried, written):
    notes = []
    with tried(written("It is faster."), notes, {"pkg/core.py": DOCUMENTED.encode()}) as ((suite,), session):
        remote = HarnessClient(session, benchmark_dir="benchmarks")
        remote.write(suite.files)
        (benchmark,) = remote.survey(lines=LINES, limit=10, budget=30).benchmarks
    # which factor it takes is the machine's
    assert suite.adapted[0].startswith("pkg/core.py: total | sizes x")
    assert "total(n=2000 * 10" in suite.files["benchmarks/snippets.py"].decode()
    assert (benchmark.outcome, benchmark.lines) == ("ran", {"pkg/core.py": (5,)})


@pytest.mark.parametrize(
    ("path", "source", "timed"),
    [
        pytest.param("src/pkg/core.py", DOCUMENTED, ["total(n=2000)"], id="a doctest"),
        pytest.param("src/pkg/core.py", CORE, [], id="no doctest"),
        pytest.param("src/pkg/core.py", "def (", [], id="cannot be read"),
        pytest.param("tests/test_core.py", DOCUMENTED, [], id="of tests"),
    ],
)
def test_doctests_run_in_the_names_of_their_module(path, source, timed):
    snippets = list(docstrings({path: source.encode()}, "pkg"))
    assert [snippet.timed for snippet in snippets] == timed
    assert all("import_module('pkg.core')" in snippet.before for snippet in snippets)


@pytest.mark.parametrize(
    ("seconds", "timed"),
    [
        pytest.param({"": 0.001, "sizes x10": 0.001, "sizes x100": 0.02, "sizes x1000": 0.2}, "sizes x100", id="grown"),
        pytest.param({"": 0.5, "sizes x10": 5.0}, "", id="long enough"),
        pytest.param({"": 0.001, "sizes x10": 0.001}, "", id="nothing takes long enough"),
    ],
)
def test_a_short_snippet_is_replaced_by_its_least_growth_that_is_seen(written, image, monkeypatch, seconds, timed):
    def fit(_sides, snippets):
        growths = {snippet: snippet.where.removeprefix("pull request").removeprefix(" | ") for snippet in snippets}
        return {snippet: seconds[growth] for snippet, growth in growths.items() if growth in seconds}

    monkeypatch.setattr(module, "_fit", fit)
    sides = Sides(None, image, (None, None), (LINES, LINES), "run")
    (suite,) = suites_of_snippets(sides, written(fenced("pkg.total(n=4)")), b"", {}, Shown(), [].append)
    assert suite.adapted == (f"pull request{' | ' if timed else ''}{timed}: Snippet1",)
    code = suite.files["benchmarks/snippets.py"].decode()
    assert ("pkg.total(n=4 * 100)" in code) is bool(timed)


def test_without_any_code_nothing_is_run(written, image):
    notes = []
    sides = Sides(None, image, (None, None), (LINES, LINES), "run")
    assert list(suites_of_snippets(sides, written("It is faster."), b"", {}, Shown(), notes.append)) == []
    assert notes == ["code that the authors wrote down does not mention the change"]


def test_what_cannot_be_tried_is_told_and_costs_nothing_else(written, image, monkeypatch):
    def broken(*_arguments, **_options):
        raise ItemFailure(FailureKind.TIMEOUT, "surveying the suite took too long")

    monkeypatch.setattr(Sides, "trial", broken)
    notes = []
    sides = Sides(None, image, (None, None), (LINES, LINES), "run")
    assert list(suites_of_snippets(sides, written(fenced("pkg.total(5)")), b"", {}, Shown(), notes.append)) == []
    assert notes[-1] == "they cannot be tried: surveying the suite took too long"


def test_doctests_of_the_change_come_first_innermost_before_outer():
    shows = '    """\n    >>> total({n})\n    """\n'
    functions = [f"def f{n}():\n{shows.format(n=n)}    return {n}\n" for n in (1, 2)]
    inner = "\n".join(f"    {line}" for line in functions[1].splitlines())
    source = functions[0] + f"class C:\n{shows.format(n=3)}{inner}\n"
    last = len(source.splitlines())
    timed = [snippet.timed for snippet in docstrings({"pkg/core.py": source.encode()}, "pkg", {"pkg/core.py": [last]})]
    assert timed == ["total(2)", "total(3)", "total(1)"]


@pytest.mark.parametrize(
    "code", [f"pkg.total({CHAIN})", f"{CHAIN.replace('1 +', 'f(1) +', 1)}\npkg.total(3)"], ids=["timed", "before it"]
)
def test_a_block_that_cannot_be_written_out_is_passed_over_alone(code):
    assert [each.timed for each in snippets_in(fenced(code) + fenced("pkg.total(5)"))] == ["pkg.total(5)"]


def test_what_is_timed_as_it_stands_and_cannot_be_written_out_is_not_grown(written, image, monkeypatch):
    monkeypatch.setattr(module, "_fit", lambda _sides, snippets: dict.fromkeys(snippets, 0.001))
    sides = Sides(None, image, (None, None), (LINES, LINES), "run")
    magic = fenced(f"%timeit pkg.total({CHAIN}, n=4)")
    (suite,) = suites_of_snippets(sides, written(magic), b"", {}, Shown(), [].append)
    assert suite.adapted == ("pull request: Snippet1",)


def test_a_text_of_many_blanks_is_read_in_no_time():
    """Each blank was where a prompt might begin."""
    blanks = " " * 200_000
    assert not has_prompts(blanks)
    assert not has_prompts("\n" * 200_000)
    assert has_prompts(f"{blanks}\n  >>> total(3)")
    assert [each.timed for each in snippets_in(f"{blanks}\n>>> total(3)\n")] == ["total(3)"]


def test_no_more_is_judged_than_is_tried_and_the_patch_is_read_once(written, image, git_patch, tmp_path, monkeypatch):
    judged, split = [], []
    in_gates, in_solution = Gates.solution_in, solution.split_patch
    monkeypatch.setattr(Gates, "solution_in", lambda gates, text: judged.append(text) or in_gates(gates, text))
    monkeypatch.setattr(solution, "split_patch", lambda patch: split.append(patch) or in_solution(patch))
    monkeypatch.setattr(module, "_fit", lambda _sides, snippets: dict.fromkeys(snippets, 1.0))
    patch = git_patch(tmp_path, {"pkg/core.py": CORE}, {"pkg/core.py": FASTER.replace("+ 1", "+ 1  # once")})
    body = "".join(fenced(f"pkg.total({number})") for number in range(200))
    sides = Sides(None, image, (None, None), (LINES, LINES), "run")
    (suite,) = suites_of_snippets(sides, written(body), patch, {}, Shown(), [].append)
    assert len(suite.adapted) == len(judged) == MOST_SNIPPETS
    before = len(split)
    gates = snippets_of(written(body), patch)
    list(itertools.islice(gates, 1))
    first = len(split) - before
    list(gates)
    assert len(split) - before == first > 0, "each that is judged reads it again"


@pytest.mark.parametrize("path", ["docs/\udcff.rst", "docs/a\nraise SystemExit  #.rst", "docs/a\x85b.rst"])
def test_a_snippet_is_told_by_whatever_path_it_stands_in(image, path):
    (text,) = (text for text in snippet_files([Snippet("", "f()", path)], image.spec).values() if text)
    laid = {}
    exec(compile(text, "snippets.py", "exec"), laid)  # noqa: S102 - as a suite is imported
    assert laid["Snippet1"].timed == "f()"
    assert ascii(path)[1:-1].replace("'", "") in text.decode()
