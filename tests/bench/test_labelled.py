"""The labelled commits: the list itself, and how messages become prompts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.filter_recall import report, screen_labelled, screen_months
from bench.labelled import Label, Source, Stratum, read_examples, read_list, stratum_of, without_prefixes
from bench.labelling import candidates
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.git.history import Mirror
from tests.support.git_world import BareRepository

HEADER = "repository\tsha\tstratum\tlabel\tsource\treason\n"
NAME = "acme/wheels"
BASE = {"pkg/core.py": b"a = 1\n", "tests/test_core.py": b"", "benchmarks/bench_core.py": b""}
COMMITS = (
    ("PERF: Add from a table, 3x (#2)", {"pkg/core.py": b"a = 2\n"}),
    ("PERF: Hoist (#3)\n\n* PERF: hoist\n* MAINT: names", {"pkg/core.py": b"a = 3\n"}),
    ("MAINT: Names (#4)", {"pkg/core.py": b"a = 4\n"}),
    ("BENCH: Add sums (#5)", {"benchmarks/bench_core.py": b"b = 1\n"}),
    ("TST: Cover sums (#6)", {"tests/test_core.py": b"c = 1\n"}),
    ("Tune the solver (#7)", {"pkg/optimize.py": b"d = 1\n"}),
    ("PERF: Faster tests only (#8)", {"tests/test_core.py": b"c = 2\n"}),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of one mirror, whose history holds COMMITS."""
    repository = BareRepository(tmp_path / f"{NAME}.git")
    files = dict(BASE)
    mark = repository.add("Begin", "2026-01-01 00:00", files)
    for day, (message, changed) in enumerate(COMMITS, 2):
        files |= changed
        mark = repository.add(message, f"2026-01-{day:02} 00:00", changed)
    repository.write(mark)
    return tmp_path


def test_the_list_is_large_hard_and_its_disguised_optimisations_were_read() -> None:
    entries = read_list()
    assert len(entries) >= 400
    assert len({entry.repository for entry in entries}) >= 12
    assert sum(entry.label is Label.OTHER for entry in entries) >= 299
    hiding = [entry for entry in entries if entry.stratum in (Stratum.MAINT, Stratum.ENH)]
    assert {entry.source for entry in hiding} == {Source.READ}
    assert {entry.label for entry in hiding} == set(Label)
    assert all(len(entry.sha) == 40 and entry.reason for entry in entries)
    parts = Counter((entry.held_out, entry.label) for entry in entries)
    assert len(parts) == 4
    assert min(parts.values()) >= 60


def test_a_commit_listed_twice_is_refused(tmp_path: Path) -> None:
    line = f"{NAME}\t{'a' * 40}\tbench\tother\tprefix\tbenchmarks only\n"
    (path := tmp_path / "list.tsv").write_text(HEADER + line + line)
    with pytest.raises(ConfigurationError, match="twice"):
        read_list(path)


@pytest.mark.parametrize(
    ("subject", "stratum", "bare"),
    [
        ("PERF: faster merge", Stratum.PERF_TITLED, "faster merge"),
        ("perf(parser)!: cache nodes (#7)", Stratum.PERF_TITLED, "cache nodes (#7)"),
        ("ENH/PERF: only what is needed", Stratum.ENH, "only what is needed"),
        ("[ENH] Docstrings", Stratum.ENH, "Docstrings"),
        ("MNT: drop", Stratum.MAINT, "drop"),
        ('Revert "PERF: cache"', Stratum.REVERT, 'Revert "PERF: cache"'),
        ("Performance of merge", None, "Performance of merge"),
        ("Fix the parser", None, "Fix the parser"),
    ],
)
def test_prefixes_tell_the_stratum_and_are_taken_out(subject: str, stratum: Stratum | None, bare: str) -> None:
    assert stratum_of(subject) is stratum
    assert without_prefixes(subject) == bare


def test_candidates_come_with_the_stratum_that_prefix_and_files_tell(folder: Path) -> None:
    sampled = Counter(entry.stratum for entry in candidates(NAME, folder / f"{NAME}.git"))
    assert sampled == {
        Stratum.PERF_MEASURED: 1,
        Stratum.PERF_TITLED: 1,
        Stratum.MAINT: 1,
        Stratum.BENCH: 1,
        Stratum.TEST: 1,
        Stratum.OPTIMIZE_MODULE: 1,
    }


def test_examples_show_no_prefix_and_the_filter_covers_labels_and_months(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def mirror_of(name: str) -> Mirror:
        return Mirror(name, folder / f"{name}.git")

    entries = list(candidates(NAME, folder / f"{NAME}.git"))
    examples = list(read_examples(entries, mirror_of))
    elsewhere = entries[0].model_copy(update={"sha": "a" * 40})
    with pytest.raises(ConfigurationError, match=f"{NAME} lacks 1 of the commits"):
        list(read_examples([elsewhere], mirror_of))
    hoisted = next(example for example in examples if example.pr.facts.number == 3)
    assert (hoisted.pr.facts.title, hoisted.pr.facts.body) == ("Hoist", "* hoist\n* names")
    assert b"+a = 3" in hoisted.patch
    assert [screened.rejection for screened in screen_labelled(examples, Label.PERFORMANCE)] == ["", ""]
    merged = list(screen_months(folder, [NAME], mirror_of, ["2026-01"]))
    assert [change.as_merged.name for change in merged if change.unmarked] == [f"{NAME}#{n}" for n in (2, 3, 8)]
    figures = report(examples, merged)
    assert figures["counts"] == {
        "labelled, performance": [2, 2],
        "labelled, other": [2, 4],
        "months, marked as performance": [2, 3],
        "months, everything merged": [4, 7],
    }
    assert (figures["recall"], figures["passed_on"], figures["reached"]) == (1.0, 0.5714, True)
    assert f"turned away: {NAME}#8: no_core_file" in capsys.readouterr().out
    assert report(examples, [change for change in merged if not change.as_merged.rejection])["reached"] is False
