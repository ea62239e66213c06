import pytest

from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.suites.missing_suite import sources_without_suite
from formulacode_dagster.models.pull_request import LinkedIssue


class Reader:
    """The files of the only commit."""

    def __init__(self, files):
        self.files = files

    def read(self, _commit, path):
        return self.files.get(path, "").encode()

    def list(self, _commit, _folder=""):
        return sorted(self.files)


@pytest.fixture
def sources(pull_request):
    def run(files, body="", issue=""):
        facts = pull_request().facts
        at = facts.created_at
        issues = (LinkedIssue(repository=facts.repository, number=1, title="Slow", body=issue, created_at=at),)
        facts = facts.model_copy(update={"body": body, "linked_issues": issues})
        return sources_without_suite(Tree(Reader(files), "b" * 40), pull_request().model_copy(update={"facts": facts}))

    return run


@pytest.mark.parametrize(
    ("path", "text", "source"),
    [
        ("pkg/tests/test_core.py", "", "its tests"),
        ("benchmarks/total.py", "", "its benchmark scripts"),
        ("docs/tour.rst", ">>> pkg.total(3)\n3\n", "code of its documents"),
        ("README.md", "```python\npkg.total(3)\n```\n", "code of its documents"),
        ("docs/speed.rst", ".. ipython:: python\n\n   %timeit pkg.total(3)\n", "code of its documents"),
    ],
)
def test_each_kind_of_file_that_may_hold_a_workload_is_told(sources, path, text, source):
    assert sources({path: text, "pkg/core.py": ""}) == (source,)


@pytest.mark.parametrize("text", ["In [1]: pkg.total(3)", "I ran\n```py\npkg.total(3)\n```"])
def test_text_of_the_pull_request_and_of_its_issues_is_looked_at(sources, text):
    assert sources({}, body=text) == sources({}, issue=text) == ("code of the pull request's text",)


def test_prose_alone_is_nothing_to_time(sources):
    assert sources({"README.md": "# Fast\nIt is.", "docs/data.txt": ">>> pkg.total(3)"}, "It is faster now.") == ()
