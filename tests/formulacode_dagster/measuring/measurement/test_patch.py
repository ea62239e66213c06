import pytest

from formulacode_dagster.measuring.measurement.patch import changed_files, changes_no_compiled_code
from formulacode_dagster.models.errors import ItemFailure


def test_lines_of_both_sides_are_found_with_neighbours_of_insertions(tmp_path, git_patch):
    before = "".join(f"line {n}\n" for n in range(1, 21))
    after = before.replace("line 5\n", "").replace("line 15\n", "line 15\nnew\n")
    (change,) = changed_files(git_patch(tmp_path, {"a.py": before}, {"a.py": after}))
    assert (change.base_path, change.oracle_path) == ("a.py", "a.py")
    assert change.base_lines == {5}
    assert change.beside_insertions == {15, 16}
    assert change.oracle_lines == {15}


def test_moved_added_and_deleted_files_have_the_paths_of_their_sides(tmp_path, git_patch):
    text = "".join(f"line {n}\n" for n in range(1, 21))
    patch = git_patch(
        tmp_path,
        {"old.py": text, "gone.py": "x\n"},
        {"old.py": None, "new.py": text + "more\n", "gone.py": None, "b.py": "y\n"},
    )
    found = {(change.base_path, change.oracle_path) for change in changed_files(patch)}
    assert found == {("old.py", None), (None, "new.py"), ("gone.py", None), (None, "b.py")}


def test_a_path_that_git_quotes_is_read(tmp_path, git_patch):
    (change,) = changed_files(git_patch(tmp_path, {'ä "b".py': "x\n"}, {'ä "b".py': "y\n"}))
    assert change.path == 'ä "b".py'


def test_content_in_any_encoding_keeps_its_lines(tmp_path, git_patch):
    patch = git_patch(tmp_path, {"a.py": "a\nOLD\nc\n"}, {"a.py": "a\nNEW\nc\n"}).replace(b"NEW", b"\x85\xff\x0b\r")
    (change,) = changed_files(patch)
    assert 2 in change.base_lines
    assert change.oracle_lines == {2}


CUT_SHORT = b"--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n-only\n"


@pytest.mark.parametrize("patch", [CUT_SHORT, b"diff --git a/x b/x\n" + CUT_SHORT, b"no patch\n"])
def test_what_is_no_patch_is_a_failure(patch):
    with pytest.raises(ItemFailure) as failure:
        changed_files(patch)
    assert failure.value.kind == "malformed_patch"


@pytest.mark.parametrize("head", ["index 1111111..2222222 160000", "new file mode 160000\nindex 0000000..2222222"])
def test_a_patch_that_moves_a_submodule_is_a_failure(head):
    hunk = "@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n"
    moved = f"diff --git a/lib b/lib\n{head}\n--- a/lib\n+++ b/lib\n{hunk}"
    with pytest.raises(ItemFailure, match="moves the submodule lib") as failure:
        changed_files(moved.encode())
    assert failure.value.kind == "oracle_does_not_apply"


@pytest.mark.parametrize("name", ["a b.png", 'ä "b"'])
def test_a_binary_file_has_the_path_of_its_first_line_and_no_changed_lines(tmp_path, git_patch, name):
    (change,) = changed_files(git_patch(tmp_path, {name: "x\0"}, {name: "y\0"}))
    assert (change.base_path, change.oracle_path, change.base_lines) == (name, name, frozenset())


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("a.py", "b/c.py"), True),
        (("a.py", "doc/whatsnew.rst", "CHANGES.md", "a.pyi"), True),
        (("a.py", "b.pyx"), False),
        (("c.h",), False),
        (("a.py", "CMakeLists.txt"), False),
    ],
)
def test_a_patch_of_python_and_documents_changes_no_compiled_code(tmp_path, git_patch, paths, expected):
    before = dict.fromkeys(paths, "x = 1\n")
    patch = git_patch(tmp_path, before, dict.fromkeys(paths, "x = 2\n"))
    assert changes_no_compiled_code(changed_files(patch)) is expected
