from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.offline.detect import detect
from formulacode_dagster.sources.offline.schema import SCHEMAS, describe
from tests.support.offline import engine, pull_request


def test_what_a_path_leads_to_is_told(write, mirrors):
    engine(mirrors)
    assert str(detect(str(mirrors))) == f"the folder of mirrors {mirrors}"
    folder = write(pull_requests=[pull_request()])
    both = f"{folder / 'repositories.jsonl'}, {folder / 'pull_requests.jsonl'}"
    assert str(detect(str(folder))) == str(detect(both)) == f"files: {both}"


@pytest.mark.parametrize("text", ["", " , "])
def test_nothing_leads_nowhere(text):
    with pytest.raises(ConfigurationError, match="is not there"):
        detect(text)


def test_a_folder_and_a_file_do_not_go_together(write, mirrors):
    folder = write()
    with pytest.raises(ConfigurationError, match="names several things, and not all are files"):
        detect(f"{folder / 'repositories.jsonl'},{mirrors}")


def test_the_state_changes_with_what_lies_there(write, mirrors):
    engine(mirrors)
    folder = write(pull_requests=[pull_request()])
    before = detect(str(folder)).state(), detect(str(mirrors)).state()
    assert (detect(str(folder)).state(), detect(str(mirrors)).state()) == before
    path = folder / "pull_requests.jsonl"
    found = path.stat()
    path.write_text(path.read_text().replace("Make", "Mate"))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    bare = mirrors / "ada/engine.git"
    subprocess.run(["git", "update-ref", "refs/heads/new", "main"], cwd=bare, check=True)
    after = detect(str(folder)).state(), detect(str(mirrors)).state()
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, False]
    (mirrors / "sandbox.json").write_text("{}")
    assert detect(str(mirrors)).state() != after[1]
    engine(mirrors, "b/b")
    assert detect(str(mirrors)).state() != after[1]


def test_the_explanation_names_every_column(tmp_path: Path):
    text = describe()
    for schema in SCHEMAS:
        for name, field in schema.model.model_fields.items():
            assert f"  {name} " in text
            assert field.description
            assert field.description in text
