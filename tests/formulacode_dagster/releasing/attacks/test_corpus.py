"""The corpus itself: its size, its names, and that every patch applies, compiles, and does what it says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.support.grading_packages import FILES, SOURCES, WORKLOADS, Package, patched
from tests.support.grading_tasks import listed_tests

from .corpus import ATTACKS, HONEST
from .limits import CHANCE_LIMITS, KNOWN_LIMITS, KNOWN_REFUSALS, WEAKNESSES
from .patches import Attack, AttackClass, DoesNotApplyError, Edit, Honest, diff_of, edited

PATCHES = (*ATTACKS, *HONEST)
WORDS = [f"{chr(97 + i % 5)}{i % 30}" for i in range(90)]
VALUES = [(i * 7919 % 101) / 7 for i in range(60)]
ARGUMENTS = {
    "squares": [(0,), (1,), (50,)],
    "uniques": [([],), (WORDS,)],
    "groups": [([],), (WORDS,)],
    "means": [(VALUES, 8), (VALUES, len(VALUES))],
    "volume": [(0,), (2,)],
    "find": [([2, 4, 6, 8], wanted) for wanted in range(1, 10)],
    "parse": [(WORDS,)],
    "normalized": [(np.array(VALUES),)],
    "mean_distance": [(np.array(VALUES),)],
}
INTERPRETED = [patch for patch in HONEST if patch.package in {Package.PURE, Package.NUMERIC}]


def test_there_are_enough_attacks_and_classes() -> None:
    assert len(ATTACKS) >= 60
    assert len({attack.kind for attack in ATTACKS}) == len(AttackClass) >= 12
    assert all(count >= 3 for count in Counter(attack.kind for attack in ATTACKS).values())


def test_there_are_enough_honest_patches() -> None:
    assert len(HONEST) >= 25
    assert {patch.package for patch in HONEST} == set(Package)


def test_every_workload_is_attacked_and_every_package_improved() -> None:
    attacked = {(attack.package, attack.workload) for attack in ATTACKS}
    tasks = {(package, workload) for package, workloads in WORKLOADS.items() for workload in workloads}
    assert tasks == attacked | {(patch.package, patch.workload) for patch in HONEST}


def test_names_are_unique_and_sentences_are_whole() -> None:
    assert [name for name, count in Counter(patch.name for patch in PATCHES).items() if count > 1] == []
    assert all(attack.hope.endswith(".") and "\n" not in attack.hope for attack in ATTACKS)
    assert all(attack.reasons and "faster" not in attack.reasons for attack in ATTACKS)


def test_known_limits_name_patches_of_the_corpus() -> None:
    kinds = {attack.name: attack.kind for attack in ATTACKS}
    listed = [(name, weakness.kind) for weakness in WEAKNESSES for name in weakness.names]
    assert dict(listed) == {name: kinds.get(name) for name, _ in listed}
    assert len(listed) == len(KNOWN_LIMITS) + len(CHANCE_LIMITS)
    assert KNOWN_REFUSALS.keys() <= {patch.name for patch in HONEST}
    assert all({**KNOWN_LIMITS, **CHANCE_LIMITS, **KNOWN_REFUSALS}.values())


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
def test_a_patch_applies_and_its_python_compiles(patch: Attack | Honest) -> None:
    changed = edited(FILES[patch.package], patch.edits)
    assert changed
    assert diff_of(patch.package, patch.edits)
    for path, text in changed.items():
        assert text != FILES[patch.package].get(path)
        if path.endswith(".py") and text is not None:
            compile(text, path, "exec", dont_inherit=True)
    if isinstance(patch, Attack):
        compile(patch.sandbox, "sandbox", "exec", dont_inherit=True)


def test_an_edit_of_text_that_is_not_there_once_is_refused() -> None:
    for old in ("nowhere", "def "):
        with pytest.raises(DoesNotApplyError):
            edited(FILES[Package.PURE], (Edit(SOURCES[Package.PURE], old, "something"),))


def test_every_authors_patch_changes_its_package() -> None:
    for package, workloads in WORKLOADS.items():
        assert all(patched(package, workload) for workload in workloads)
        assert listed_tests(package)


@pytest.mark.parametrize("patch", INTERPRETED, ids=lambda patch: patch.name)
def test_an_honest_patch_returns_what_the_base_does(patch: Honest) -> None:
    base, changed = FILES[patch.package], dict(FILES[patch.package])
    changed.update({path: text for path, text in edited(base, patch.edits).items() if text is not None})
    before, after = loaded(patch.package, base), loaded(patch.package, changed)
    for name, calls in ARGUMENTS.items():
        for arguments in calls if name in before else ():
            expected, found = (call(names, name, arguments) for names in (before, after))
            assert found == pytest.approx(expected, rel=1e-9)
            assert type(found) is type(expected)
    if "Text" in before:
        assert after["Text"](WORDS).vocabulary() == before["Text"](WORDS).vocabulary()
        assert after["Text"](WORDS).words == WORDS


def call(names: dict[str, object], name: str, arguments: tuple[object, ...]) -> object:
    """Return the comparable part of a result: of `find`, the place; of `parse`, the words."""
    found = names[name](*arguments)  # type: ignore[operator]
    if name == "groups":
        return dict(sorted(found.items()))
    return found[0] if name == "find" else found.words if name == "parse" else found


def loaded(package: Package, files: dict[str, str]) -> dict[str, object]:
    """Return the names that the main source of a package defines, its other modules put before it."""
    folder = f"{package}/"
    others = {path for path in files if path.startswith(folder) and path.endswith(".py")} - {SOURCES[package]}
    helpers = "".join(files[path] for path in sorted(others))
    source = "\n".join(line for line in files[SOURCES[package]].splitlines() if f"from {package}" not in line)
    names: dict[str, object] = {}
    exec(compile(f"{helpers}\n{source}", SOURCES[package], "exec", dont_inherit=True), names)  # noqa: S102 - own text
    return names
