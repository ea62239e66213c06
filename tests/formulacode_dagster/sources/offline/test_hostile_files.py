"""Files of people and broken programs: every fault is named by file, line and column, many at once."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.offline.problems import SHOWN, Problems
from formulacode_dagster.sources.offline.rows import read_rows
from formulacode_dagster.sources.offline.schema import PULL_REQUESTS
from tests.support.offline import found, pull_request, windows


def complaint(folder: Path | str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        windows(folder)
    assert "fc-data offline schema" in caught.value.remedy
    return str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"merged_at": "2026-02-03T04:05:06"}, "merged_at: is '2026-02-03T04:05:06': has no time zone"),
        ({"merged_at": "yesterday"}, "merged_at: is 'yesterday': not a time such as"),
        ({"merged_at": 1770091506}, "merged_at: is 1770091506: not a time"),
        ({"merged_at": ""}, "merged_at: is empty"),
        ({"merged_at": "0001-01-01T00:00:00+14:00"}, "merged_at: is '0001-01-01T00:00:00+14:00': it is out of range"),
        ({"number": 0}, "number: is 0: Input should be greater than or equal to 1"),
        ({"number": "12x"}, "number: is '12x': not a whole number"),
        ({"number": 1.5}, "number: is 1.5: Input should be a valid integer"),
        ({"number": 2**31}, "number: is 2147483648: Input should be less than 2147483648"),
        ({"number": True}, "number: is True: not a whole number"),
        ({"number": None}, "number: is empty"),
        ({"title": 7}, "title: is 7: Input should be a valid string"),
        ({"repository": "engine"}, "repository: is 'engine': not owner/name"),
        ({"repository": "ada/engine#1"}, "repository: is 'ada/engine#1': not owner/name"),
        ({"repository": "../etc"}, "repository: is '../etc': not owner/name"),
        ({"repository": "bob/tool"}, "repository: bob/tool is not among the repositories of 2026-02"),
        ({"merge_commit_sha": "HEAD"}, "merge_commit_sha: is 'HEAD': String should match pattern '^[0-9a-f]{40}$'"),
        ({"labels": "perf"}, "labels: is 'perf': not a JSON list"),
        ({"labels": {"a": 1}}, "labels: is {'a': 1}: Input should be a valid tuple"),
        ({"labels": ["a", 1]}, "labels.1: is 1: Input should be a valid string"),
        ({"body": "a\0b"}, "body: is 'a\\x00b': contains a NUL byte"),
        ({"body": "\ud800"}, "body: is '\\ud800': Input should be a valid string"),
        ({"body": "x" * (4 * 2**20 + 1)}, f"body: is 'x{'x' * 58}…: String should have at most 4194304 characters"),
        ({"linked_issues": [{"number": 1}]}, "linked_issues.0.repository: is empty"),
        ({"linked_issues": [["x"]]}, "linked_issues.0: is ['x']: Input should be a valid dictionary"),
        (
            {"linked_issues": [{"repository": "a/b", "number": 1, "created_at": "2026-01-01T00:00:00Z"}]},
            "linked_issues.0.title: is empty",
        ),
        ({"commit_count": -1}, "commit_count: is -1: Input should be greater than or equal to 0"),
        ({"merge_sha": "x"}, "merge_sha: there is no such column; there are repository, number,"),
    ],
)
def test_a_cell_that_is_not_what_its_column_holds_is_named(write, wrong, said):
    text = complaint(write(pull_requests=[pull_request(9), pull_request(**{"number": 1, **wrong})]))
    assert f"pull_requests.jsonl, line 2, {said}" in text


def test_many_faults_are_told_at_once_and_not_more_than_a_person_reads(write):
    rows = [pull_request(number, merged_at="x", labels=3) for number in range(1, 100)]
    text = complaint(write(pull_requests=rows))
    assert text.count("pull_requests.jsonl, line") == SHOWN
    assert "only the first 20" in text


def test_several_faults_of_one_row_are_all_told(write):
    text = complaint(write(pull_requests=[pull_request(0, labels="x", merge_commit_sha="y")]))
    assert [column in text for column in ("line 1, number", "line 1, labels", "line 1, merge_commit_sha")] == [True] * 3


def test_the_same_pull_request_twice_is_named_with_both_places(write):
    rows = [pull_request(1), pull_request(2), pull_request(1, repository="Ada/Engine")]
    assert "line 3, number: ada/engine#1 stands at line 1 too" in complaint(write(pull_requests=rows))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"full_name": "ada/engine"}, {"full_name": "Ada/Engine"}], "line 2, full_name: 'ada/engine' is the name of"),
        ([{"full_name": "a/a", "id": 5}, {"full_name": "b/b", "id": 5}], "line 2, full_name: 5 is the id of line 1"),
        ([{"full_name": "a/a"}, {"full_name": "b/b", "aliases": ["A/A"]}], "'a/a' is the name of line 1 too"),
        ([{"full_name": "a/a", "state": "gone"}], "state: is 'gone': Input should be 'active', 'archived'"),
        ([{"full_name": "a/a", "id": -5}], "id: is -5: Input should be greater than or equal to 1"),
        ([{"full_name": "a/a", "month": "2026-13"}], "month: is '2026-13': not a month"),
        ([{"full_name": "a/a", "stars": "many"}], "stars: is 'many': not a whole number"),
    ],
)
def test_repositories_that_cannot_be_are_named(write, rows, said):
    assert said in complaint(write(repositories=rows))


def test_counts_that_disagree_or_name_strangers_are_named(write):
    counts = [
        {"repository": "ada/engine", "month": "2026-02", "reported": 1},
        {"repository": "ada/engine", "month": "2026-02", "reported": 2},
        {"repository": "bob/tool", "month": "2026-02", "reported": 2},
    ]
    text = complaint(write(pull_requests=[pull_request()], counts=counts))
    assert "counts.jsonl, line 2, reported: ada/engine is counted twice, differently" in text
    assert "counts.jsonl, line 3, repository: bob/tool is not among" in text


def test_jsonl_that_is_none_is_named_by_line_and_the_rest_is_read_on(write):
    folder = write()
    good = json.dumps(pull_request(1))
    lines = ["{", "[]", good[:-5], "[" * 100_000, "", good, '{"number": 1' + "0" * 5000 + "}"]
    (folder / "pull_requests.jsonl").write_text("\n".join(lines))
    text = complaint(folder)
    assert [f"line {number}: is not" in text for number in (1, 2, 3, 4, 5, 6)] == [True] * 4 + [False] * 2
    assert "line 7: is not JSON" in text


def test_a_line_without_end_is_refused_before_it_fills_the_memory(write):
    path, problems = write(pull_requests=[pull_request()]) / "pull_requests.jsonl", Problems()
    assert list(read_rows(path, PULL_REQUESTS, problems, longest_line=50)) == []
    with pytest.raises(ConfigurationError, match=r"pull_requests\.jsonl, line 1: is longer than 50 characters"):
        problems.raise_any("source")


CSV_HEAD = "repository,number,title,merged_at"
CSV_ROW = "ada/engine,1,Fast,2026-02-03T04:05:06Z"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"{CSV_HEAD}\n{CSV_ROW},more\n", "line 2: has 5 cells, the header 4"),
        (f'{CSV_HEAD}\n{CSV_ROW}\nada/engine,2,"Fast', "line 3: cannot be read as CSV: unexpected end of data"),
        (f'{CSV_HEAD}\n"a"b,1,c,d\n', "line 2: cannot be read as CSV"),
        ("number,title,merged_at\n", "header, repository: this column is missing"),
        (f"{CSV_HEAD},merged\n", "header, merged: there is no such column"),
        (f"{CSV_HEAD},title\n", "header, title: this column is there twice"),
        ("", "header, repository: this column is missing"),
        (f"{CSV_HEAD}\nada/engine,1,F\0st,2026-02-03T04:05:06Z\n", "line 2, title: is 'F\\x00st': contains a NUL byte"),
        (f'{CSV_HEAD}\n{CSV_ROW}\nada/engine,2,"two\nlines",x\n', "line 3, merged_at: is 'x'"),
    ],
)
def test_csv_that_is_none_is_named_by_line(write, content, said):
    folder = write()
    (folder / "pull_requests.csv").write_text(content)
    assert f"pull_requests.csv, {said}" in complaint(folder)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(write):
    folder = write()
    (folder / "pull_requests.csv").write_bytes(f"{CSV_HEAD}\r\n{CSV_ROW}\r\n\r\n".encode("utf-8-sig"))
    assert windows(folder)["ada/engine"].pull_requests[0].title == "Fast"
    (folder / "pull_requests.csv").unlink()
    (folder / "pull_requests.jsonl").write_bytes((json.dumps(pull_request(1)) + "\r\n").encode("utf-8-sig"))
    assert windows(folder)["ada/engine"].count.stored == 1


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text_that_is_not_utf8_is_named_by_column(write, ending):
    folder = write(ending, pull_requests=[pull_request(1, title="na_ve")])
    path = folder / f"pull_requests.{ending}"
    path.write_bytes(path.read_bytes().replace(b"na_ve", b"na\xefve"))
    assert "title: is 'na\\udcefve': Input should be a valid string" in complaint(folder)


def test_utf16_is_named_as_such(write):
    folder = write()
    (folder / "pull_requests.csv").write_text(f"{CSV_HEAD}\n{CSV_ROW}\n", encoding="utf-16")
    assert "pull_requests.csv: is UTF-16; save it as UTF-8" in complaint(folder)


@pytest.mark.parametrize("kept", [0, 3, 40, 0.5, 0.99])
def test_a_parquet_file_that_is_cut_short_is_named(write, kept):
    folder = write("parquet", pull_requests=[pull_request()])
    path = folder / "pull_requests.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept if kept > 1 or kept == 0 else len(whole) * kept)])
    assert "pull_requests.parquet: is not a Parquet file, or is truncated" in complaint(folder)


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_parquet_file_is_an_error_or_read_and_never_a_crash(write, seed):
    folder = write("parquet", pull_requests=[pull_request(number) for number in range(1, 50)])
    path = folder / "pull_requests.parquet"
    content = bytearray(path.read_bytes())
    for step in range(10):
        content[4 + (seed * 7919 + step * 104_729) % (len(content) - 8)] ^= 0xFF
    path.write_bytes(content)
    said = "read"
    try:
        windows(folder)
    except ConfigurationError as error:
        said = str(error)
    assert said == "read" or "pull_requests.parquet" in said


def test_a_column_of_times_without_a_zone_is_named_once(write):
    folder = write()
    rows = [pull_request(number, merged_at=datetime(2026, 2, 3)) for number in range(1, 30)]  # noqa: DTZ001
    pl.DataFrame(rows).write_parquet(folder / "pull_requests.parquet")
    text = complaint(folder)
    assert text.count("pull_requests.parquet") == 2
    assert "pull_requests.parquet, merged_at: its times have no zone" in text


def test_rows_of_parquet_are_counted_from_one_whatever_month_they_are_of(write):
    folder = write()
    times = pl.Series("merged_at", ["2026-01-03T00:00:00Z", "2026-02-03T00:00:00Z"]).str.to_datetime(time_zone="UTC")
    frame = pl.DataFrame([pull_request(1), pull_request(0)]).with_columns(times)
    frame.write_parquet(folder / "pull_requests.parquet")
    assert "pull_requests.parquet, row 2, number: is 0:" in complaint(folder)


@pytest.mark.parametrize("name", ["data.csv", "pull_requests.txt", "pull_requests.csv.gz"])
def test_a_file_that_is_not_known_by_its_name_is_refused(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(ConfigurationError, match=r"is not known by its name.*Call it repositories"):
        found(tmp_path / name)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"the offline source .*nothing is not there"):
        found(tmp_path / "nothing")
    with pytest.raises(ConfigurationError, match="contains neither mirrors nor files"):
        found(tmp_path)


def test_two_files_for_one_table_are_refused(write):
    write("csv")
    with pytest.raises(ConfigurationError, match=r"both .*\.csv and .*\.jsonl hold repositories"):
        found(write("jsonl"))


def test_counts_alone_are_no_source(write):
    folder = write(repositories=None, counts=[{"repository": "a/a", "month": "2026-02", "reported": 1}])
    with pytest.raises(ConfigurationError, match="contains only counts"):
        found(folder)


def test_a_file_that_may_not_be_read_is_named(write):
    folder = write()
    (folder / "pull_requests.jsonl").mkdir()
    assert "pull_requests.jsonl: cannot be read" in complaint(folder)
