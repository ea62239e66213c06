from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.files import Area, ImageConfig
from formulacode_dagster.building.verification.facts import FileFact, ImageFacts
from formulacode_dagster.building.verification.oracle import oracle_absent
from formulacode_dagster.building.verification.origin import FolderOrigin, GroundTruth, added_lines
from formulacode_dagster.building.verification.repository import ImageRepository
from formulacode_dagster.building.verification.scan import Scan, SearchPatterns, Secret
from formulacode_dagster.building.verification.verifications import no_credentials
from formulacode_dagster.models.errors import ItemFailure
from tests.support.git_world import git
from tests.support.images import Sample

LINE = b"return cached_neighbours(graph, node)"
TRUTH = GroundTruth("b" * 40, {"fast/a.py": ("100644", "a" * 40)}, frozenset({"a" * 40}), {"c" * 40: "fast/a.py"}, 1)


def judged(facts: ImageFacts, objects: set[str] = frozenset()) -> str:  # type: ignore[assignment]
    verdict = oracle_absent(facts, TRUTH, objects, frozenset({LINE}))
    return "" if verdict.ok else verdict.detail


def test_an_object_beyond_the_base_is_found() -> None:
    assert judged(ImageFacts(), {"a" * 40}) == ""
    assert "d" * 40 in judged(ImageFacts(), {"a" * 40, "d" * 40})


def test_a_store_that_borrows_from_another_is_found() -> None:
    facts = ImageFacts()
    facts.files[Area.REPOSITORY][".git/objects/info/alternates"] = FileFact(0, None, "", "", "")
    assert judged(facts) == "the object store borrows from another"


@pytest.mark.parametrize("area", Area)
def test_a_file_as_the_change_left_it_is_found_anywhere(area: Area) -> None:
    facts = ImageFacts()
    facts.files[area]["hint"] = FileFact(0, None, "", "c" * 40, "")
    assert judged(facts) == f"{area}: hint is fast/a.py as changed by the pull request"


def test_a_line_of_the_change_is_found_outside_what_the_base_holds() -> None:
    where = Area.SYSTEM, "home/formulacode/notes.txt"
    facts = ImageFacts(scan=Scan(lines={where: {LINE}}))
    assert judged(facts) == "system: home/formulacode/notes.txt holds 1 lines added by the pull request"
    facts.scan.lines[Area.REPOSITORY, "fast/a.py"] = {LINE}
    assert judged(facts) == "", "the base says it too"


def test_a_wheel_of_the_lock_may_say_the_same() -> None:
    path = "lib/python3.11/site-packages/other/a.py"
    facts = ImageFacts(scan=Scan(lines={(Area.ENVIRONMENT, path): {LINE}}))
    assert judged(facts) == f"environment: {path} holds 1 lines added by the pull request"
    assert oracle_absent(facts, TRUTH, (), frozenset({LINE}), {(Area.ENVIRONMENT, path)}).ok


def test_the_lines_of_a_patch_are_those_it_adds() -> None:
    patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+    " + LINE + b"\n same\n"
    assert added_lines(patch) == [b"    " + LINE]
    assert FolderOrigin("b" * 40, patch).lines == {LINE}


@pytest.fixture
def repository(tmp_path: Path, pure: Sample) -> ImageRepository:
    """The objects of a sample's base, as an image has them."""
    made = ImageRepository(tmp_path / "store.git")
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", "--no-local", str(pure.mirror), str(checkout)], check=True)
    for path in (checkout / ".git/objects").rglob("*"):
        if path.is_file():
            target = made.objects / path.relative_to(checkout / ".git/objects")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return made


def test_a_commits_files_are_known_from_the_images_objects(repository: ImageRepository, pure: Sample) -> None:
    listed = git(pure.mirror, "ls-tree", "-r", pure.base).splitlines()
    expected = {line.partition("\t")[2]: tuple(line.split()[0:3:2]) for line in listed}
    assert repository.tree(pure.base) == expected
    assert repository.list(pure.base, "benchmarks") == ["benchmarks/__init__.py", "benchmarks/bench_total.py"]
    assert b"TimeTotal" in (repository.read(pure.base, "benchmarks/bench_total.py") or b"")
    assert repository.read(pure.base, "nothing") is None
    assert pure.merge in repository.all_objects() - repository.reachable(pure.base)
    repository.close()


def test_an_object_that_is_not_what_its_name_says_is_not_believed(repository: ImageRepository, pure: Sample) -> None:
    with pytest.raises(ItemFailure, match="lacks the commit"):
        repository.tree("1" * 40)
    tree = git(pure.mirror, "rev-parse", f"{pure.base}^{{tree}}")
    forged = repository.objects / "22" / ("2" * 38)
    forged.parent.mkdir()
    content = f"tree {tree}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx".encode()
    forged.write_bytes(zlib.compress(b"commit %d\0" % len(content) + content))
    with pytest.raises(ItemFailure, match="holds another commit"):
        repository.tree("2" * 40)
    repository.close()


def test_a_credential_in_files_or_configuration_fails_without_its_value() -> None:
    facts = ImageFacts(scan=Scan(SearchPatterns((Secret("GH_TOKENS", b"value-of-ours"),))))
    assert no_credentials(facts, ImageConfig(variables={"PATH": "/bin"}).by_place).ok
    words = ImageConfig(
        variables={"TOKEN": "value-of-ours"}, labels={"by": "hf_" + "aB" * 17}, history=("RUN x", "ARG a=value-of-ours")
    )
    verdict = no_credentials(facts, words.by_place)
    assert not verdict.ok
    assert verdict.detail.split("; ") == [
        "the variable TOKEN holds the value of GH_TOKENS",
        "the label by holds a Hugging Face token",
        "line 2 of the history holds the value of GH_TOKENS",
    ]
    facts.scan.credentials[Area.TOOLS, "task/build.env"] = ["the value of GH_TOKENS"]
    assert no_credentials(facts, {}).detail == "tools: task/build.env holds the value of GH_TOKENS"
