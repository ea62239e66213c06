from __future__ import annotations

import pytest

from formulacode_dagster.building.images.differences import compare, compare_toolchains
from formulacode_dagster.building.verification.contents import Listing
from formulacode_dagster.models.image import Toolchain
from formulacode_dagster.models.reproduction import Difference, DifferenceKind, Reproduction

NUMPY = Listing("numpy", "2.1.0", {"lib/numpy/__init__.py": "aaa", "lib/numpy/core.so": "bbb"})
TINY = Listing("tiny", "1.0", {"lib/tiny/__init__.py": "ccc", "bin/tiny": "-> ../lib/tiny"})


def told(differences: tuple[Difference, ...]) -> list[tuple[str, str, str]]:
    return [(difference.kind.value, difference.name, difference.detail) for difference in differences]


def test_equal_installs_have_no_difference() -> None:
    assert compare([NUMPY, TINY], [TINY, NUMPY]) == ()
    assert compare([NUMPY.summary, TINY.summary], [NUMPY, TINY]) == ()


def test_a_difference_is_named_by_distribution_and_file() -> None:
    newer = Listing("numpy", "2.1.1", NUMPY.files)
    assert told(compare([NUMPY], [newer])) == [("version", "numpy", "2.1.0 → 2.1.1")]
    assert told(compare([NUMPY], [NUMPY, TINY])) == [("added", "tiny", "1.0")]
    assert told(compare([NUMPY, TINY], [NUMPY])) == [("removed", "tiny", "1.0")]
    other = Listing("tiny", "1.0", {"bin/tiny": "ddd", "lib/tiny/new.py": "eee"})
    assert told(compare([TINY], [other])) == [("files", "tiny", "bin/tiny, -lib/tiny/__init__.py, +lib/tiny/new.py")]


def test_many_changed_files_are_counted() -> None:
    many = Listing("many", "1", {f"f{number:02}": "a" for number in range(20)})
    ((_, _, detail),) = told(compare([many], [Listing("many", "1", dict.fromkeys(many.files, "b"))]))
    assert detail == "f00, f01, f02, f03, f04, f05, f06, f07 and 12 more"


def test_without_the_first_listing_a_change_is_seen_without_its_files() -> None:
    other = Listing("tiny", "1.0", {**TINY.files, "bin/tiny": "ddd"})
    assert told(compare([TINY.summary], [other])) == [("files", "tiny", "which files differ is not known any more")]


@pytest.mark.parametrize("listing", [NUMPY, TINY, Listing("odd", "", {"a b\tc": "-> x y", "": "z"})])
def test_a_listing_comes_back_from_what_is_kept_of_it(listing: Listing) -> None:
    assert Listing.of(listing.summary, listing.text) == listing
    assert listing.summary.files == len(listing.files)


def test_a_toolchain_explains_and_is_no_difference_of_what_is_installed() -> None:
    first = Toolchain(os_digest="sha256:1", apt=("gcc=12", "git=2"), compiler="cc 12", tools={"uv": "1"})
    second = Toolchain(os_digest="sha256:1", apt=("gcc=13", "git=2"), compiler="cc 13", tools={"uv": "1", "git": "2"})
    differences = compare_toolchains(first, second)
    assert told(differences) == [("toolchain", "compiler", "cc 12 → cc 13"), ("toolchain", "apt", "-gcc=12, +gcc=13")]
    assert compare_toolchains(Toolchain(), second) == (), "of the first nothing is known"

    def reproduction(*found: Difference) -> Reproduction:
        return Reproduction(
            month="2026-02",
            repository_id=7,
            number=1,
            item="a/b#1",
            tag="t",
            digest="sha256:1",
            against="the image",
            distributions=1,
            files=1,
            differences=found,
            seconds=1.0,
        )

    assert reproduction(*differences).is_equal
    removed = Difference(kind=DifferenceKind.REMOVED, name="tiny", detail="1.0")
    assert not reproduction(*differences, removed).is_equal
