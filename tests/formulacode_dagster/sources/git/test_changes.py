from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.sources.git import changes
from formulacode_dagster.sources.git.changes import change_of


def squashed(origin, mirror_of, message="Change"):
    base = origin.sha()
    merge = origin.commit(message)
    change, patch = change_of(mirror_of(merge), origin.facts(merge))
    assert change.base_sha == base
    assert change.merge_tree_sha == origin.git("rev-parse", f"{merge}^{{tree}}")
    assert applied(origin, base, patch) == change.merge_tree_sha
    return change, patch


def applied(origin, base: str, patch: bytes) -> str:
    """The tree a person gets by `git apply` in a clone of their own."""
    index = origin.work / ".git" / "check-index"
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_INDEX_FILE": str(index)}

    def run(*arguments: str, stdin: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=origin.work, env=environment, input=stdin, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    run("read-tree", base)
    run("apply", "--cached", "--whitespace=nowarn", stdin=patch)
    return run("write-tree")


def only_file(change):
    (file,) = change.files
    return file


def test_lines_are_counted(origin, mirror_of):
    origin.write({"a.py": "one\n2\n3\n4\n"})
    change, patch = squashed(origin, mirror_of)
    file = only_file(change)
    assert (file.path, file.status, file.additions, file.deletions, file.binary) == ("a.py", "M", 3, 2, False)
    assert change.patch_bytes == len(patch)


def test_a_rename_is_a_deletion_and_an_addition_that_any_tool_applies(origin, mirror_of):
    origin.git("mv", "a.py", "moved.py")
    change, patch = squashed(origin, mirror_of)
    assert [(file.path, file.status) for file in change.files] == [("a.py", "D"), ("moved.py", "A")]
    assert b"rename from" not in patch


def test_a_mode_change_is_a_change(origin, mirror_of):
    (origin.work / "a.py").chmod(0o755)
    change, patch = squashed(origin, mirror_of)
    assert only_file(change).status == "M"
    assert b"new mode 100755" in patch


def test_a_file_that_becomes_a_link_is_a_change_of_type(origin, mirror_of):
    (origin.work / "b.py").unlink()
    (origin.work / "b.py").symlink_to("a.py")
    change, _ = squashed(origin, mirror_of)
    assert only_file(change).status == "T"


def test_binary_files_are_whole_in_the_patch(origin, mirror_of):
    origin.write({"data.bin": bytes(range(256)) * 20})
    change, patch = squashed(origin, mirror_of)
    assert only_file(change).binary
    assert b"GIT binary patch" in patch


def test_line_ends_of_windows_survive(origin, mirror_of):
    origin.write({"w.txt": b"one\r\ntwo\r\n", ".gitattributes": "*.txt -text\n"})
    origin.commit("Windows")
    origin.write({"w.txt": b"one\r\n2\r\nthree"})
    change, patch = squashed(origin, mirror_of)
    assert b"+2\r\n" in patch
    assert only_file(change).additions == 2


def test_paths_and_contents_that_are_not_utf_8_survive(origin, mirror_of):
    name = b"caf\xe9 \t\n.txt"
    Path(os.fsdecode(bytes(origin.work) + b"/" + name)).write_bytes(b"na\xefve\n")
    change, patch = squashed(origin, mirror_of)
    assert only_file(change).path == "caf\\xe9 \t\n.txt"
    assert b"na\xefve" in patch
    change.model_dump_json()


def test_a_submodule_that_moves_is_a_change(origin, mirror_of):
    first, second = "1" * 40, "2" * 40
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{first},vendor")
    origin.git("commit", "--quiet", "-m", "Add a submodule")
    base = origin.sha()
    origin.git("update-index", "--cacheinfo", f"160000,{second},vendor")
    origin.git("commit", "--quiet", "-m", "Move it")
    merge = origin.sha()
    change, patch = change_of(mirror_of(merge), origin.facts(merge))
    assert only_file(change).path == "vendor"
    assert f"+Subproject commit {second}".encode() in patch
    assert applied(origin, base, patch) == change.merge_tree_sha


def test_submodules_are_told_with_their_commits_and_are_no_files(origin, mirror_of):
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib/größe x")
    origin.git("commit", "--quiet", "-m", "Add a submodule")
    mirror = mirror_of(origin.sha())
    assert mirror.submodules(origin.sha()) == {"lib/größe x": "1" * 40}
    assert "lib/größe x" not in mirror.list(origin.sha())


def test_attributes_of_the_repository_do_not_hide_a_change(origin, mirror_of):
    origin.write({".gitattributes": "*.py -diff\n"})
    origin.commit("Hide diffs")
    origin.write({"a.py": "other\n"})
    _, patch = squashed(origin, mirror_of)
    assert b"a.py" in patch


def test_nothing_changed_is_a_decision_and_not_a_failure(origin, mirror_of):
    merge = origin.commit("Empty")
    with pytest.raises(Rejection) as caught:
        change_of(mirror_of(merge), origin.facts(merge))
    assert caught.value.reason is RejectionReason.NO_PATCH


def test_a_patch_that_gives_another_tree_is_refused(origin, mirror_of, monkeypatch):
    origin.write({"a.py": "one\n"})
    merge = origin.commit("Change")
    monkeypatch.setattr(changes, "_PATCH", (*changes._PATCH, "--diff-filter=D"))
    with pytest.raises(ItemFailure) as caught:
        change_of(mirror_of(merge), origin.facts(merge))
    assert caught.value.kind == "patch_mismatch"


def test_a_patch_is_the_same_every_time(origin, mirror_of):
    origin.write({"a.py": "one\nzwei\nthree\n", "z.bin": b"\0\1"})
    merge = origin.commit("Change")
    mirror = mirror_of(merge)
    assert change_of(mirror, origin.facts(merge)) == change_of(mirror, origin.facts(merge))


def test_the_mirror_is_not_written_to(origin, mirror_of):
    origin.write({"a.py": "one\n"})
    merge = origin.commit("Change")
    mirror = mirror_of(merge)
    before = sorted(str(path) for path in mirror.path.rglob("*"))
    change_of(mirror, origin.facts(merge))
    assert sorted(str(path) for path in mirror.path.rglob("*")) == before
