"""Suites in repositories of their own."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from formulacode_dagster.measuring.workloads.external_suites import candidates_for, is_named, suites_elsewhere
from formulacode_dagster.models.errors import SuspectedOutage
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.mirror import MirrorCache
from tests.records import make_merged, make_pull_request
from tests.support.git_world import BareRepository

MERGED = datetime(2026, 2, 1, tzinfo=UTC)
BEFORE, AFTER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
NAMED = {"repo": "https://github.com/acme/fast.git", "benchmark_dir": "suite"}


@pytest.fixture
def suites(tmp_path):
    """Suites for acme/fast in a repository of this configuration, and the messages about it."""

    def find(config, *, candidates=("acme/fast-benchmarks",), clone=True):
        if clone:
            history = BareRepository(tmp_path / "host" / "acme" / "fast-benchmarks.git")
            given = config if isinstance(config, str) else json.dumps(config)
            history.add("Old", BEFORE, files={"asv.conf.json": given, "suite/bench.py": "def time_old(): pass\n"})
            history.add("New", AFTER, files={"suite/bench.py": "def time_new(): pass\n", "README": "no benchmark\n"})
            history.write()
        pr = make_pull_request(make_merged(repository="acme/fast", merged_at=MERGED))
        cache = MirrorCache(tmp_path / "mirrors", (tmp_path / "host").as_uri())
        return list(suites_elsewhere(cache, candidates, pr, "benchmarks/", find.notes.append))

    find.notes = []
    return find


def test_the_suite_as_it_stood_at_the_merge_comes_before_the_newest(suites):
    merged, newest = suites(NAMED)
    assert merged.files == {"benchmarks/bench.py": b"def time_old(): pass\n"}
    assert newest.files == {"benchmarks/bench.py": b"def time_new(): pass\n"}
    for suite in (merged, newest):
        provenance = suite.provenance
        assert (provenance.source, provenance.repository) == (Source.OTHER_REPOSITORY, "acme/fast-benchmarks")
        assert suite.name == f"acme/fast-benchmarks at {provenance.commit[:12]}"
    assert suites.notes == []


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({**NAMED, "repo": "https://github.com/acme/faster.git"}, id="names another"),
        pytest.param({"benchmark_dir": "suite"}, id="names none"),
        pytest.param({**NAMED, "benchmark_dir": "."}, id="its root"),
    ],
)
def test_a_suite_that_is_not_for_this_repository_is_none_of_its(suites, config):
    assert suites(config) == []
    assert suites.notes == []


def test_what_cannot_be_read_is_told_and_costs_nothing_else(suites):
    assert suites("no configuration") == []
    assert suites(NAMED, candidates=("acme/fast-suite", "acme/other"), clone=False) == []
    assert [note.partition(":")[0] for note in suites.notes] == [
        "the suite of acme/fast-benchmarks cannot be read",
        "the suite of acme/fast-suite cannot be read",
    ]


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("https://github.com/acme/fast.git", True),
        ("git@github.com:Acme/Fast.git", True),
        ("git://github.com/acme/fast/", True),
        ("https://github.com/acme/fast", True),
        ("https://github.com/other/fast.git", False),
        ("https://github.com/acme/faster", False),
        ("..", False),
        ("", False),
    ],
)
def test_an_address_names_a_repository_on_any_host(address, named):
    assert is_named(address, "acme/fast") is named


def test_only_repositories_with_the_name_in_theirs_are_cloned():
    candidates = ("acme/Fast-benchmarks", "fast/suite", "acme/slow-benchmarks", "acme/fast")
    assert candidates_for("acme/fast", candidates) == ["acme/Fast-benchmarks", "fast/suite"]


def test_what_may_be_read_the_next_time_ends_the_search():
    class CutOff:
        def ensure(self, name, **_):
            raise SuspectedOutage("git", FailureKind.INCOMPLETE, f"git was cut off while it was to clone {name}")

    pr = make_pull_request(make_merged(repository="acme/fast", merged_at=MERGED))
    with pytest.raises(SuspectedOutage, match="acme/fast-suite"):
        list(suites_elsewhere(CutOff(), ("acme/fast-suite",), pr, "benchmarks/", print))
