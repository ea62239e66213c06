"""Parts of a change in an image outside the checkout, found with objects and packs as git itself writes them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.files import Area, ImageFile
from formulacode_dagster.building.verification import leak_scan
from formulacode_dagster.building.verification.facts import ImageFacts, gather_facts
from formulacode_dagster.building.verification.leak_scan import Elsewhere, versions_by_name
from formulacode_dagster.building.verification.oracle import oracle_absent
from formulacode_dagster.building.verification.origin import GroundTruth
from tests.support.git_world import BareRepository, git

MERGED = b"def merge(rows):\n    return frozenset(rows)\n"


def image_file(path: str, content: bytes = b"", area: Area = Area.SYSTEM) -> ImageFile:
    return ImageFile(area, path, 0, None, len(content), lambda: io.BytesIO(content))


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A repository that holds the merged file."""
    made = BareRepository(tmp_path / "other.git")
    made.add("Merge", "2026-02-03T00:00:00Z", {"w.py": MERGED})
    made.write()
    return tmp_path / "other.git"


def files_below(folder: Path, place: str, area: Area) -> Iterator[ImageFile]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield image_file(f"{place}/{path.relative_to(folder)}", path.read_bytes(), area)


def detail_of(facts: ImageFacts, truth: GroundTruth, local: dict[str, str] | None = None) -> str:
    verdict = oracle_absent(facts, truth, (), frozenset(), (), local)
    return "" if verdict.ok else verdict.detail


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("place", "area"),
    [
        ("home/user/fork/.git", Area.SYSTEM),
        ("vendor/part/.git", Area.REPOSITORY),
        (".git/worktrees/x", Area.REPOSITORY),
        ("lib/python3.12/site-packages/w/.git", Area.ENVIRONMENT),
    ],
)
def test_an_object_of_the_change_is_found_in_any_repository(
    other: Path, tmp_path: Path, place: str, area: Area, packed: bool
) -> None:
    if packed:
        git(other, "repack", "-adq")
    else:
        pack = next((other / "objects/pack").glob("*.pack"), None)
        if pack is not None:
            moved = pack.rename(tmp_path / pack.name)
            (other / "objects/pack" / pack.with_suffix(".idx").name).unlink()
            git(other, "unpack-objects", "-q", stdin=moved.read_bytes())
    blob, commit = git(other, "rev-parse", "HEAD:w.py"), git(other, "rev-parse", "HEAD")
    facts = gather_facts(files_below(other, place, area), objects=tmp_path / "objects")
    for solution, commits in (({blob: "w.py"}, frozenset[str]()), ({}, frozenset({commit}))):
        truth = GroundTruth("b" * 40, {}, frozenset(), solution, 1, commits)
        assert "as changed by the pull request" in detail_of(facts, truth)
    assert detail_of(facts, GroundTruth("b" * 40, {}, frozenset(), {"c" * 40: "w.py"}, 1)) == ""


@pytest.mark.parametrize("index", [None, b"", b"\377tOc\0\0\0\2short"])
def test_a_pack_that_nothing_tells_about_does_not_pass(index: bytes | None) -> None:
    seen, stem = Elsewhere(), f"srv/x.git/objects/pack/pack-{'a' * 40}"
    seen.look(image_file(f"{stem}.pack"))
    if index is not None:
        seen.look(image_file(f"{stem}.idx", index))
    assert list(seen.problems({}, {})) == [f"system: {stem}.pack has no index of its content"]


def test_indexes_beyond_the_memory_of_a_machine_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leak_scan, "INDEX_BYTES", 4096)
    seen, stems = Elsewhere(), [f"srv/x.git/objects/pack/pack-{letter * 40}" for letter in "ab"]
    index = b"\377tOc\0\0\0\2" + b"\0\0\0\1" * 256 + b"i" * 20
    for stem, size in zip(stems, (len(index), 4096), strict=True):
        seen.look(image_file(f"{stem}.pack"))
        seen.look(ImageFile(Area.SYSTEM, f"{stem}.idx", 0, None, size, lambda: io.BytesIO(index)))
    assert list(seen.problems({(b"i" * 20).hex(): "w.py"}, {})) == [
        f"system: {stems[0]}.idx holds w.py as changed by the pull request",
        f"system: {stems[1]}.pack has no index of its content",
    ]


@pytest.mark.parametrize("path", [".git/ORIG_HEAD", ".git/packed-refs", ".git/logs/HEAD", ".git/refs/heads/fast"])
def test_a_name_of_the_change_in_the_checkout_s_own_repository_is_found(tmp_path: Path, path: str) -> None:
    truth = GroundTruth("b" * 40, {}, frozenset(), {}, 1, frozenset({"d" * 40}))
    named = [image_file(path, f"{'d' * 40} fast\n".encode(), Area.REPOSITORY)]
    told = detail_of(gather_facts(named, objects=tmp_path), truth)
    assert told == f"repository: {path} names the commit {'d' * 40}"
    harmless = [image_file(path, f"{'b' * 40} base\n".encode(), Area.REPOSITORY)]
    assert detail_of(gather_facts(harmless, objects=tmp_path), truth) == ""


@pytest.mark.parametrize(
    "path",
    [
        "root/.cache/pip/wheels/ab/fast_wheels-1.3.0-cp312-cp312-linux_x86_64.whl",
        "home/user/fast-wheels-2.0.tar.gz",
        "root/.cache/uv/archive-v0/x/fast_wheels-1.2.1.dist-info/METADATA",
        "usr/lib/python3/dist-packages/Fast.Wheels-1.2.post1.egg-info/PKG-INFO",
        "root/.cache/uv/wheels-v5/pypi/fast-wheels/1.4.0-cp312-cp312-linux_x86_64.msgpack",
        "root/.cache/uv/sdists-v9/pypi/fast-wheels/1.4.0/metadata.msgpack",
        "opt/conda/pkgs/fast-wheels-1.3.0-py312h1234_0.conda",
        "opt/conda/pkgs/fast-wheels-1.3.0-py312h1234_0/info/index.json",
    ],
)
def test_a_newer_release_of_the_package_is_found(tmp_path: Path, path: str) -> None:
    facts = gather_facts([image_file(path)], objects=tmp_path)
    local = versions_by_name([("fast_wheels", "1.2.0")])
    assert "newer than the 1.2.0 under test" in detail_of(facts, GroundTruth("b" * 40, {}, frozenset(), {}, 1), local)


@pytest.mark.parametrize(
    "path",
    ["srv/fast_wheels.egg-info/PKG-INFO", "srv/fast_wheels.egg-info", "tmp/x/PKG-INFO", "opt/a.dist-info/METADATA"],
)
def test_a_newer_release_is_found_by_what_it_says_of_itself(tmp_path: Path, path: str) -> None:
    def told(version: str, name: str = "Fast.Wheels", area: Area = Area.SYSTEM) -> str:
        content = f"Metadata-Version: 2.1\r\nName: {name}\r\nVersion: {version}\r\n\r\nText".encode()
        facts = gather_facts([image_file(path, content, area)], objects=tmp_path)
        local = versions_by_name([("fast_wheels", "1.2.0")])
        return detail_of(facts, GroundTruth("b" * 40, {}, frozenset(), {}, 1), local)

    assert told("1.3.0") == f"system: {path} is fast-wheels 1.3.0, newer than the 1.2.0 under test"
    assert (told("1.2.0"), told("1.3.0", name="numpy"), told("1.3.0", area=Area.REPOSITORY)) == ("", "", "")


@pytest.mark.parametrize(
    "path",
    [
        "build/fast_wheels-1.2.0-py3-none-any.whl",
        "root/.cache/fast_wheels-1.1.9-py3-none-any.whl",
        "root/.cache/fast_wheels_extra-3.0-py3-none-any.whl",
        "root/.cache/numpy-2.0.0-cp312-cp312-linux_x86_64.whl",
        "usr/share/doc/fast-wheels/changelog-9.9",
    ],
)
def test_the_package_itself_older_ones_and_others_may_lie_there(tmp_path: Path, path: str) -> None:
    facts = gather_facts([image_file(path, area=Area.TOOLS)], objects=tmp_path)
    local = versions_by_name([("fast_wheels", "1.2.0")])
    assert detail_of(facts, GroundTruth("b" * 40, {}, frozenset(), {}, 1), local) == ""
