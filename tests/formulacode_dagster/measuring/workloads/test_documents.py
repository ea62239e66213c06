import ast

import pytest

from formulacode_dagster.measuring.workloads import documents as module
from formulacode_dagster.measuring.workloads.documents import (
    Shown,
    shown_at,
    snippets_of_documents,
    snippets_of_scripts,
)
from formulacode_dagster.measuring.workloads.shown_code import Snippet

NAMES = frozenset({"total"})
TOUR = """
Tour
====

>>> import pkg
>>> unrelated = pkg.other(2)
>>> numbers = pkg.Numbers()
>>> numbers.add(3)

They are added:

.. code-block:: python
   :linenos:

   import math

   sums = pkg.total(numbers)

And timed:

.. ipython:: python

   %timeit pkg.total(numbers)

.. code-block:: c

   total(5);
"""
GUIDE = """
```python
import pkg
n = 5
```
Then:
```python
pkg.total(n)
```
"""
SCRIPT = '''
"""Times sums."""
import pkg
import timeit

N = 5

def bench_other():
    return pkg.other(N)

def bench_total():
    return pkg.total(N)

def helper(n):
    return pkg.total(n)

if __name__ == "__main__":
    print(timeit.timeit("pkg.total(N)", globals=globals()))
'''


class Reader:
    """The files of the only commit."""

    def __init__(self, files):
        self.files = files

    def read(self, _commit, path):
        return self.files[path].encode()

    def complete(self, *_commits, folder=""):
        """All is at hand."""

    def list(self, _commit, _folder=""):
        return sorted(self.files)


@pytest.mark.parametrize(
    ("path", "text", "snippets"),
    [
        pytest.param(
            "docs/tour.rst",
            TOUR,
            [
                (
                    "import pkg\nnumbers = pkg.Numbers()\nnumbers.add(3)\nimport math",
                    "sums = pkg.total(numbers)",
                ),
                ("import pkg\nnumbers = pkg.Numbers()\nnumbers.add(3)", "pkg.total(numbers)"),
            ],
            id="reStructuredText",
        ),
        pytest.param("README.md", GUIDE, [("import pkg\nn = 5", "pkg.total(n)")], id="Markdown"),
        pytest.param("docs/a.rst", ">>> pkg.other(3)\n3\n", [], id="nothing of the names"),
    ],
)
def test_a_block_about_the_change_follows_the_blocks_it_needs(path, text, snippets):
    shown = list(snippets_of_documents(Shown({path: text}, NAMES)))
    assert shown == [Snippet(before, timed, path) for before, timed in snippets]


def test_a_script_offers_its_timings_first_then_its_relevant_functions():
    first, *functions = snippets_of_scripts(Shown({"benchmarks/sums.py": SCRIPT}, NAMES))
    assert (first.timed, first.where) == ("pkg.total(N)", "benchmarks/sums.py")
    assert [(each.timed, each.where) for each in functions] == [
        ("bench_total()", "benchmarks/sums.py: bench_total"),
        ("bench_other()", "benchmarks/sums.py: bench_other"),
    ]
    assert all("N = 5" in each.before and "__main__" not in each.before for each in (first, *functions))


MODULE_OF_A_SUITE = '''"""Benchmarks of totals."""
import os
try:
    import pkg
    HAVE_PKG = bool(os.environ)
except ImportError:
    HAVE_PKG = False


class TimeTotal:
    def time_total(self):
        pkg.total(5)
'''


def test_a_script_that_only_defines_is_nothing_that_takes_time():
    assert list(snippets_of_scripts(Shown({"benchmarks/moved.py": MODULE_OF_A_SUITE}, NAMES))) == []
    called = f"{MODULE_OF_A_SUITE}\n\nTimeTotal().time_total()\n"
    (snippet,) = snippets_of_scripts(Shown({"benchmarks/moved.py": called}, NAMES))
    assert snippet.timed == "TimeTotal().time_total()"
    assert "HAVE_PKG = False" in snippet.before


def test_what_cannot_be_read_shows_nothing():
    texts = {"benchmarks/old.py": "print total", "docs/a.rst": ">>> total(\n"}
    shown = Shown(texts, NAMES)
    assert [*snippets_of_scripts(shown), *snippets_of_documents(shown)] == []


@pytest.mark.parametrize("folder", ["asv_bench/benchmarks", ".ci/benchmarks/"])
def test_relevant_documents_and_scripts_are_used_not_suites_or_tests(folder):
    files = {
        "README.md": "total",
        "docs/more.rst": "total and double",
        "docs/silent.rst": "totals",
        "benchmarks/run.py": "total()",
        f"{folder.strip('/')}/core.py": "total()",
        "benchmarks/test_run.py": "total()",
        "pkg/core.py": "def total(): ...",
    }
    shown = shown_at(Reader(files), "a" * 40, {"total", "double"}, benchmark_dir=folder)
    assert list(shown.texts) == ["benchmarks/run.py", "docs/more.rst", "README.md"]


CHAIN = " + ".join(["1"] * 500)
"""Input that the parser accepts, and that cannot be written out again."""


def test_only_code_nested_too_deeply_is_skipped():
    tree = ast.parse(CHAIN)
    with pytest.raises(RecursionError):
        ast.unparse(tree)
    deep = f"```python\nimport pkg\nx = {CHAIN}\n```\n```python\npkg.total(x)\n```\n```python\npkg.total(3)\n```\n"
    texts = {"a.md": deep, "benchmarks/deep.py": f"import pkg\npkg.total({CHAIN})\n", "benchmarks/sums.py": SCRIPT}
    shown = Shown(texts, NAMES)
    assert list(snippets_of_documents(shown)) == [Snippet("import pkg", "pkg.total(3)", "a.md")]
    assert {snippet.where.partition(":")[0] for snippet in snippets_of_scripts(shown)} == {"benchmarks/sums.py"}


def test_a_statement_is_searched_once_regardless_of_later_blocks(monkeypatch):
    walked = []
    bound = module._bound
    monkeypatch.setattr(module, "_bound", lambda statement: walked.append(statement) or bound(statement))
    blocks = "".join(f"```python\npkg.total({number})\n```\n" for number in range(30))
    assert len(list(snippets_of_documents(Shown({"a.md": blocks}, NAMES)))) == 30
    assert len(walked) == 30


def test_a_directive_of_many_blanks_is_read_in_no_time():
    text = f".. code::{' ' * 200_000}x\n\n>>> total(3)\n"
    assert [snippet.timed for snippet in snippets_of_documents(Shown({"docs/a.rst": text}, NAMES))] == ["total(3)"]
