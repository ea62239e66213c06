"""Contents that a mirror lacks: named before any work, with a command that brings them."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache
from formulacode_dagster.sources.git.shared_mirrors import SharedMirrors
from tests.support.git_origin import NAME, GitHost, Origin
from tests.support.git_world import git, lose_object


def refused(mirror: Mirror, *commits: str) -> ItemFailure:
    with pytest.raises(ItemFailure) as caught:
        mirror.require(*commits)
    assert caught.value.kind == "files_missing"
    return caught.value


def test_a_mirror_that_is_whole_passes(cache: MirrorCache, origin: Origin) -> None:
    with cache.ensure(NAME) as mirror:
        mirror.require(origin.sha(), origin.sha())
        assert not (mirror.path / "broken").exists()


def test_files_that_only_the_mirror_lacks_are_there_in_the_next_run(cache: MirrorCache, origin: Origin) -> None:
    head = origin.sha()
    with cache.ensure(NAME) as mirror:
        for path in ("docs/c.txt", "a.py"):
            lose_object(mirror.path, origin.git("rev-parse", f"HEAD:{path}"))
        failure = refused(mirror, head)
    assert failure.what == f"2 files are missing from commit {head[:12]} in the mirror of {NAME}: a.py, docs/c.txt"
    assert failure.remedy == f"Run again: the mirror is then copied from {origin.bare}, which has them"
    with cache.ensure(NAME) as mirror:
        mirror.require(head)


def test_the_command_of_the_message_repairs_the_source_and_the_next_run_goes_on(
    cache: MirrorCache, origin: Origin, tmp_path: Path
) -> None:
    head, upstream = origin.sha(), tmp_path / "upstream.git"
    git(tmp_path, "clone", "-q", "--bare", str(origin.bare), str(upstream))
    git(origin.bare, "remote", "add", "origin", str(upstream))
    lose_object(origin.bare, origin.git("rev-parse", "HEAD:docs/c.txt"))
    for _ in range(2):
        with cache.ensure(NAME) as mirror:
            failure = refused(mirror, head)
    assert failure.what.endswith(f"in the mirror of {NAME}: docs/c.txt")
    command = failure.remedy.partition("then run again: ")[2]
    assert command == shlex.join(["git", "-C", str(origin.bare), "fetch", "--refetch", "--no-filter", "origin", head])
    subprocess.run(shlex.split(command), check=True, capture_output=True)
    with cache.ensure(NAME) as mirror:
        mirror.require(head)
        assert mirror.read(head, "docs/c.txt") == b"c\n"


def test_a_source_that_was_cloned_without_contents_is_named(origin: Origin, tmp_path: Path) -> None:
    head, source = origin.sha(), tmp_path / "partial" / f"{NAME}.git"
    clone = ("-c", "uploadpack.allowFilter=true", "clone", "-q", "--bare", "--no-local", "--filter=blob:none")
    git(origin.bare, "config", "uploadpack.allowFilter", "true")
    source.parent.mkdir(parents=True)
    git(tmp_path, *clone, f"file://{origin.bare}", str(source))
    cache = MirrorCache(tmp_path / "mirrors", source.parent.parent.as_uri())
    with cache.ensure(NAME) as mirror:
        failure = refused(mirror, head)
    assert failure.what.startswith("3 files are missing")
    subprocess.run(shlex.split(failure.remedy.partition("then run again: ")[2]), check=True, capture_output=True)
    with cache.ensure(NAME) as mirror:
        mirror.require(head)


def test_a_picture_of_the_documentation_may_be_absent_and_a_page_may_not(cache: MirrorCache, origin: Origin) -> None:
    unread = ("docs/logo.png", "examples/run.ipynb", "img/demo.gif")
    origin.write({**{path: f"picture {path}\n" for path in unread}, "pkg/logo.png": "data\n"})
    head = origin.commit("Pictures")
    origin.publish()
    with cache.ensure(NAME) as mirror:
        for path in unread:
            lose_object(mirror.path, origin.git("rev-parse", f"HEAD:{path}"))
        assert mirror.require(head) == unread
        assert not (mirror.path / "broken").exists()
        assert mirror.words_at(head, ["nowhere"]) == frozenset()
        lose_object(mirror.path, origin.git("rev-parse", "HEAD:pkg/logo.png"))
        assert refused(mirror, head).what.startswith("4 files are missing")
        with pytest.raises(ItemFailure):
            mirror.words_at(head, ["nowhere"])


def test_a_source_without_a_remote_is_fetched_from_github(cache: MirrorCache, origin: Origin) -> None:
    lose_object(origin.bare, origin.git("rev-parse", "HEAD:a.py"))
    with cache.ensure(NAME) as mirror:
        assert f" https://github.com/{NAME}.git {origin.sha()}" in refused(mirror, origin.sha()).remedy


def test_the_token_in_the_address_of_a_source_is_not_shown(cache: MirrorCache, origin: Origin) -> None:
    git(origin.bare, "remote", "add", "origin", f"https://x-access-token:ghp_secret@github.com/{NAME}.git")
    lose_object(origin.bare, origin.git("rev-parse", "HEAD:a.py"))
    with cache.ensure(NAME) as mirror:
        failure = refused(mirror, origin.sha())
    assert "ghp_secret" not in str(failure)


def test_many_files_are_counted_and_a_lost_folder_is_named_by_its_id(cache: MirrorCache, origin: Origin) -> None:
    origin.write({f"many/{number}.txt": f"{number}\n" for number in range(9)})
    head = origin.commit("Many")
    origin.publish()
    tree = origin.git("rev-parse", "HEAD:docs")
    for number in range(9):
        lose_object(origin.bare, origin.git("rev-parse", f"HEAD:many/{number}.txt"))
    with cache.ensure(NAME) as mirror:
        what = refused(mirror, head).what
        assert what.startswith("9 files")
        assert what.endswith("many/0.txt, many/1.txt, many/2.txt, many/3.txt, many/4.txt and 4 more")
        lose_object(mirror.path, tree)
        assert "10 files" in refused(mirror, head).what


def test_a_host_that_cannot_send_a_file_is_a_failure_with_its_path(
    git_host: GitHost, origin: Origin, tmp_path: Path
) -> None:
    cache, head = MirrorCache(tmp_path / "mirrors", git_host.url), origin.sha()
    with cache.ensure(NAME) as mirror:
        mirror.require(head)
        lose_object(origin.bare, origin.git("rev-parse", "HEAD:docs/c.txt"))
        with pytest.raises(ItemFailure, match=r"in the mirror of .*: docs/c\.txt\. Run again once the host") as caught:
            mirror.complete(head)
        assert caught.value.kind == "files_missing"


def test_a_change_whose_contents_are_missing_names_them_and_the_next_reader_has_them(
    cache: MirrorCache, origin: Origin
) -> None:
    origin.write({"a.py": "new\n"})
    merge = origin.commit("Change")
    origin.publish()
    facts = origin.facts(merge)
    with SharedMirrors(cache, {NAME: [facts]}) as shared:
        with shared.mirror(NAME) as mirror:
            lose_object(mirror.path, origin.git("rev-parse", "HEAD:a.py"))
        with pytest.raises(ItemFailure, match=r"1 file is missing .*: a\.py") as caught, shared.mirror(NAME) as mirror:
            change_of(mirror, facts)
        assert caught.value.kind == "files_missing"
        with shared.mirror(NAME) as mirror:
            assert change_of(mirror, facts)[0].files[0].path == "a.py"


def test_a_file_that_the_host_lacks_fails_its_change_and_no_other(
    git_host: GitHost, origin: Origin, tmp_path: Path
) -> None:
    first = origin.facts((origin.write({"a.py": "new\n"}), origin.commit("First"))[1])
    second = origin.facts((origin.write({"b.py": "new b\n"}), origin.commit("Second"))[1], number=8)
    origin.publish()
    lose_object(origin.bare, origin.git("rev-parse", "HEAD:a.py"))
    with SharedMirrors(MirrorCache(tmp_path / "mirrors", git_host.url), {NAME: [first, second]}) as shared:
        with pytest.raises(ItemFailure, match=r"1 file is missing .*: a\.py") as caught, shared.mirror(NAME) as mirror:
            change_of(mirror, first)
        assert caught.value.kind == "files_missing"
        with shared.mirror(NAME) as mirror:
            assert [file.path for file in change_of(mirror, second)[0].files] == ["b.py"]
