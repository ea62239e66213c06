import pytest

from formulacode_dagster.models.pull_request import ChangedFile, PullRequest
from formulacode_dagster.suites.overlays import MOST_LATER, first_suite, later_suites


class Reader:
    """Files by commit; the commits after the merge in their order."""

    def __init__(self, commits):
        self.commits = commits

    def read(self, commit, path):
        return self.commits[commit].get(path)

    def list(self, commit, folder=""):
        return sorted(path for path in self.commits[commit] if path.startswith(f"{folder}/"))

    def later(self, commit, *patterns):
        assert patterns == ("benchmarks/**",)
        return tuple(sha for sha in self.commits if sha > commit)


BASE, MERGE, PLANNED = "a" * 40, "c" * 40, "d" * 40
FILES = {"benchmarks/a.py": b"a", "benchmarks/data/b.bin": b"\0", "pkg/core.py": b"c", "benchmarks2/x.py": b""}
SUITE = {"benchmarks/a.py": b"a", "benchmarks/data/b.bin": b"\0"}


def suites(*later):
    """Readers whose merge has the benchmark `time_old`, and whose later commits have these texts."""
    texts = [b"def time_old(): old_name()", *later]
    return Reader({chr(ord("c") + number) * 40: {"benchmarks/a.py": text} for number, text in enumerate(texts)})


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


def test_a_pull_request_that_leaves_the_suite_alone_is_measured_with_that_of_the_base(touching):
    found = first_suite(Reader({MERGE: FILES}), touching("pkg/core.py"), "benchmarks", suite_sha=BASE)
    assert (found.name, found.files) == ("base", None)


def test_a_suite_that_was_found_in_a_later_commit_is_brought_from_there(touching):
    reader = Reader({MERGE: {}, PLANNED: FILES})
    found = first_suite(reader, touching("pkg/core.py"), "benchmarks", suite_sha=PLANNED)
    assert (found.name, found.files) == ("later commit dddddddddddd", SUITE)


def test_the_nearest_later_suites_that_begin_to_speak_of_the_change_are_tried(touching):
    reader = suites(b"def time_other(): pass", b"new_name()", b"new_name() # again", b"helper_name()", b"third_name()")
    names = {"old_name", "new_name", "helper_name", "third_name"}
    found = list(later_suites(reader, touching("pkg/core.py"), "benchmarks", names))
    assert [suite.name for suite in found] == ["later commit eeeeeeeeeeee", "later commit gggggggggggg"]
    assert found[0].files == {"benchmarks/a.py": b"new_name()"}
    assert len(found) == MOST_LATER


def test_what_the_suite_speaks_of_already_calls_for_no_later_one(touching):
    reader = suites(b"old_name() # faster")
    assert list(later_suites(reader, touching("pkg/core.py"), "benchmarks", {"old_name"})) == []
