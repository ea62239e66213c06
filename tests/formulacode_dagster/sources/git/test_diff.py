from pathlib import Path

import pytest

from formulacode_dagster.sources.git.diff import ChangedLine, split_patch
from tests.support.git_world import patch_between


@pytest.fixture
def patch(tmp_path: Path) -> bytes:
    """git's own output for an edit, a rename, a deletion, a binary file and a file that is not UTF-8."""

    lines = "".join(f"line {n}\n" for n in range(20))
    return patch_between(
        tmp_path / "patch.git",
        {
            "a/edit.py": "one\n-- two\nthree\n",
            "a/old.py": lines,
            "gone.py": "bye\n",
            "latin.py": b"x = 'caf\xe9'\n",
        },
        {
            "a/edit.py": "one\n++ two\r\nthree",
            "a/new.py": lines,
            "latin.py": b"x = 'th\xe9'\n",
            "picture.bin": bytes(range(256)),
        },
        renames="-M",
    )


def test_sections_are_named_by_the_path_after_the_change(patch: bytes) -> None:
    assert {part.path for part in split_patch(patch)} == {
        "a/edit.py", "a/new.py", "gone.py", "latin.py", "picture.bin",
    }  # fmt: skip


def test_lines_that_look_like_headers_are_content(patch: bytes) -> None:
    (edit,) = (part for part in split_patch(patch) if part.path == "a/edit.py")
    assert list(edit.changed_lines()) == [
        ChangedLine("-", "-- two", 2, 2),
        ChangedLine("-", "three", 3, 3),
        ChangedLine("+", "++ two", 2, 4),
        ChangedLine("+", "three", 3, 4),
    ]


def test_binary_content_is_recognized_and_holds_no_lines(patch: bytes) -> None:
    by_path = {part.path: part for part in split_patch(patch)}
    assert by_path["picture.bin"].binary
    assert not list(by_path["picture.bin"].changed_lines())
    assert not by_path["latin.py"].binary
    assert len(list(by_path["latin.py"].changed_lines())) == 2


def test_the_sections_together_are_the_patch(patch: bytes) -> None:
    assert "".join(part.text for part in split_patch(patch)) == patch.decode("utf-8", errors="replace")


def test_an_empty_patch_has_no_section() -> None:
    assert split_patch(b"") == ()
