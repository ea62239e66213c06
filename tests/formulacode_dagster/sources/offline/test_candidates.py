"""Lists of repositories from elsewhere, in the forms in which they come."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.offline.candidates import read_candidates


def test_a_list_has_one_repository_a_line(tmp_path: Path) -> None:
    path = tmp_path / "repositories.txt"
    path.write_text("# by hand\nada/engine\n\neve/loom  # moved in 2024\nada/engine\n")
    assert read_candidates(path) == {"ada/engine": "", "eve/loom": ""}


def test_an_export_of_bigquery_has_names_and_paths(tmp_path: Path) -> None:
    path = tmp_path / "files.parquet"
    rows = {"repo_name": ["a/b", "a/b", "c/d"], "path": ["deep/asv.conf.json", "asv.conf.json", None]}
    pl.DataFrame(rows).write_parquet(path)
    assert read_candidates(path) == {"a/b": "asv.conf.json", "c/d": ""}


def test_an_export_of_gh_archive_has_the_name_in_a_record(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"repo": {"id": 1, "name": "a/b"}}\n{"repo": {"id": 2, "name": "c/d"}}\n')
    assert list(read_candidates(path)) == ["a/b", "c/d"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("names.txt", "a/b\nnot a name\n", "not a name"),
        ("names.txt", "a/b#12\n", "pull request"),
        ("names.txt", "", "names no repository"),
        ("names.csv", "url\nhttps://github.com/a/b\n", "no column of names"),
        ("names.xlsx", "a/b", "no known format"),
        ("names.parquet", "broken", "cannot be read"),
        ("missing.txt", None, "cannot be read"),
    ],
)
def test_what_is_no_such_file_is_refused_by_name(tmp_path: Path, name: str, content: str | None, words: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=words) as caught:
        read_candidates(path)
    assert name in str(caught.value)
    assert "FC_DISCOVERY" in str(caught.value)
