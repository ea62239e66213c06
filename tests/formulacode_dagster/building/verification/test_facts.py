"""Facts about files of any size, of which only a start is kept."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.files import Area, ImageFile
from formulacode_dagster.building.verification import facts as module
from formulacode_dagster.building.verification.facts import ImageFacts, gather_facts
from formulacode_dagster.building.verification.scan import SearchPatterns, Secret
from formulacode_dagster.building.verification.tamper_scan import find_planted

KEPT = 64
SECRET = Secret("LLM_API_KEY", b"the-value-of-a-key")
SITE = "lib/python3.11/site-packages"


class Stream(io.BytesIO):
    """A file that is too large to be read at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert 0 <= size <= KEPT
        return super().read(size)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCANNED_BYTES", KEPT)
    monkeypatch.setattr(module, "_CHUNK", KEPT // 4)


def facts_of(tmp_path: Path, files: dict[str, bytes], area: Area = Area.ENVIRONMENT) -> ImageFacts:
    listed = [
        ImageFile(area, path, 1000, None, len(data), lambda data=data: Stream(data)) for path, data in files.items()
    ]
    return gather_facts(listed, objects=tmp_path, watch=SearchPatterns((SECRET,)))


def test_a_file_is_hashed_in_parts(tmp_path: Path) -> None:
    content = b"x" * 10 * KEPT
    fact = facts_of(tmp_path, {"data": content}).environment["data"]
    assert fact.sha256 == base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    assert fact.blob == hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("area", [Area.ENVIRONMENT, Area.SYSTEM])
@pytest.mark.parametrize("before", [0, KEPT - 5, 3 * KEPT, 3 * KEPT - 5])
def test_a_secret_is_found_wherever_it_stands(tmp_path: Path, before: int, area: Area) -> None:
    content = b"x" * before + SECRET.value + b"x" * KEPT
    found = facts_of(tmp_path, {"srv/data": content}, area).scan.credentials
    assert found == {(area, "srv/data"): ["the value of LLM_API_KEY"]}


def test_a_module_is_known_by_an_entry_far_from_its_start(tmp_path: Path) -> None:
    files = dict.fromkeys(("_fast.so", "_slow.so"), b"x" * (3 * KEPT - 5) + b"\0PyInit__fast\0")
    made = facts_of(tmp_path, files).environment
    assert [made[name].is_extension for name in files] == [True, False]


@pytest.mark.parametrize("name", ["a.pth", "a-1.0.dist-info/RECORD"])
def test_a_text_too_long_to_be_read_is_no_honest_one(tmp_path: Path, name: str) -> None:
    facts = facts_of(tmp_path, {f"{SITE}/{name}": b"#" * KEPT + b"\nimport os\n"})
    assert f"{SITE}/{name} is too long to be read" in find_planted(facts, "", {})


def test_texts_together_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEXT_BYTES", 2 * KEPT)
    facts = facts_of(tmp_path, {f"{SITE}/{name}.pth": b"#" * KEPT for name in "abc"})
    assert facts.unread == {(Area.ENVIRONMENT, f"{SITE}/c.pth")}


def test_a_record_that_is_no_table_lists_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's reader refuses a field of more than 128 KiB."""
    monkeypatch.setattr(module, "SCANNED_BYTES", 1 << 20)
    before = csv.field_size_limit(1 << 17)
    files = {f"{SITE}/a.py": b"", f"{SITE}/a-1.0.dist-info/RECORD": b"a.py,sha256=" + b"x" * (1 << 18) + b",1\n"}
    listed = [
        ImageFile(Area.ENVIRONMENT, path, 0, None, len(data), lambda data=data: io.BytesIO(data))
        for path, data in files.items()
    ]
    found = find_planted(gather_facts(listed, objects=tmp_path), "a==1.0", {})
    csv.field_size_limit(before)
    assert f"{SITE}/a.py belongs to no installed package" in found


def test_weights_that_are_called_pth_are_no_startup_files(tmp_path: Path) -> None:
    size = 1 << 40
    listed = [
        ImageFile(area, path, 0, None, size, lambda: io.BytesIO(b"weights"))
        for area, path in [(Area.REPOSITORY, "model.pth"), (Area.ENVIRONMENT, f"{SITE}/pkg/assets/full.pth")]
    ]
    assert gather_facts(listed, objects=tmp_path).unread == set()
