import pytest

from formulacode_dagster.building.suites.overlays import NO_SUITE, SuiteFiles, first_suite
from formulacode_dagster.models.image import WORKLOADS_FOLDER
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.pull_request import ChangedFile, PullRequest


class Reader:
    """Files by commit."""

    def __init__(self, commits):
        self.commits = commits

    def read(self, commit, path):
        return self.commits[commit].get(path)

    def complete(self, *commits, folder=""):
        """All is at hand."""

    def list(self, commit, folder=""):
        return sorted(path for path in self.commits[commit] if path.startswith(f"{folder}/"))


BASE, MERGE, PLANNED = "a" * 40, "c" * 40, "d" * 40
FILES = {"benchmarks/a.py": b"a", "benchmarks/data/b.bin": b"\0", "pkg/core.py": b"c", "benchmarks2/x.py": b""}
SUITE = {"benchmarks/a.py": b"a", "benchmarks/data/b.bin": b"\0"}


@pytest.fixture
def touching(pull_request):
    """A pull request that changes the files given, on BASE, landed as MERGE."""

    def build(*paths):
        pr = pull_request()
        facts = pr.facts.model_copy(update={"merge_commit_sha": MERGE})
        files = tuple(ChangedFile(path=path, status="M") for path in paths)
        return PullRequest(facts=facts, change=pr.change.model_copy(update={"base_sha": BASE, "files": files}))

    return build


def test_a_pull_request_that_touches_the_suite_brings_all_of_it(touching):
    pr = touching("pkg/core.py", "benchmarks/a.py")
    found = first_suite(Reader({MERGE: FILES}), pr, "benchmarks", suite_sha=BASE)
    assert (found.name, found.files) == ("merge commit", SUITE)
    assert (found.provenance.source, found.provenance.commit) == (Source.PULL_REQUEST, MERGE)
    assert found.provenance.sha256 == SuiteFiles("another name", dict(reversed(SUITE.items()))).sha256
    assert found.provenance.sha256 != SuiteFiles("", {**SUITE, "benchmarks/a.py": b"b"}).sha256


def test_a_pull_request_that_leaves_the_suite_uses_that_of_the_base(touching):
    found = first_suite(Reader({MERGE: FILES}), touching("pkg/core.py"), "benchmarks", suite_sha=BASE)
    assert (found.name, found.files, found.sha256) == ("base", None, "")


def test_a_suite_that_was_found_in_a_later_commit_is_brought_from_there(touching):
    reader = Reader({MERGE: {}, PLANNED: FILES})
    found = first_suite(reader, touching("pkg/core.py"), "benchmarks", suite_sha=PLANNED)
    assert (found.name, found.files) == ("later commit dddddddddddd", SUITE)


def test_without_a_suite_none_is_taken_for_the_first(touching):
    assert first_suite(Reader({MERGE: {}}), touching("pkg/core.py"), WORKLOADS_FOLDER, suite_sha=BASE) is NO_SUITE


def test_what_was_adapted_is_kept_as_text_whatever_its_path_is():
    suite = SuiteFiles("snippets", {}, adapted=("docs/é\udcff.rst\nx: Snippet1",))
    assert suite.provenance.adapted == (r"docs/é\udcff.rst\nx: Snippet1",)
    assert suite.provenance.model_dump_json()
