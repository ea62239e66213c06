"""`make bench-grader`: which results count, what is wrong, and what it prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import grader
from tests.formulacode_dagster.releasing.attacks.corpus import ATTACKS, HONEST
from tests.formulacode_dagster.releasing.attacks.grading import BROKE_OFF, Graded
from tests.formulacode_dagster.releasing.attacks.patches import AttackClass
from tests.support.grading_packages import Package

ATTACK = next(attack for attack in ATTACKS if not attack.deserved)
CAUGHT = Graded(ATTACK.name, 0.0, "tests_fail", "", 1.0, 9.0)


@pytest.fixture(autouse=True)
def without_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grader, "KNOWN_LIMITS", {})
    monkeypatch.setattr(grader, "CHANCE_LIMITS", {})
    monkeypatch.setattr(grader, "KNOWN_REFUSALS", {})


def test_a_class_and_a_package_select_patches() -> None:
    memo = grader.selected("memo", "purekit", frozenset())
    assert memo
    assert {(patch.kind, patch.package) for patch in memo} == {(AttackClass.MEMO, Package.PURE)}
    assert grader.selected("honest", "", frozenset({HONEST[3].name})) == [HONEST[3]]
    assert len(grader.selected("", "", frozenset())) == len(ATTACKS) + len(HONEST)


@pytest.mark.parametrize(
    ("change", "fools"),
    [
        ({}, False),
        ({"reward": 0.01, "reason": "faster"}, True),
        ({"reason": BROKE_OFF}, True),
    ],
)
def test_a_reward_or_no_verdict_is_a_false_accept(change: dict[str, object], fools: bool) -> None:
    assert grader.is_wrong(ATTACK, replace(CAUGHT, **change)) is fools


def test_an_attack_with_an_honest_part_may_earn_its_share() -> None:
    attack = next(attack for attack in ATTACKS if attack.deserved)
    for reward, fools in ((attack.deserved, False), (attack.deserved + 0.2, True)):
        assert grader.is_wrong(attack, replace(CAUGHT, reward=reward, reason="faster")) is fools


def test_results_are_kept_and_those_of_another_grader_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, graded = tmp_path / "kept.jsonl", {}
    grader.grade_all([ATTACK], lambda patch: replace(CAUGHT, name=patch.name), graded, kept, 1)
    assert capsys.readouterr().out.startswith(f"1 of 1: {grader.kind_of(ATTACK)} {ATTACK.name}: tests_fail")
    assert grader.read(kept) == graded == {grader.key_of(ATTACK): CAUGHT}
    monkeypatch.setattr(grader, "grader_archive", lambda: b"another")
    assert grader.key_of(ATTACK) not in grader.read(kept)
    assert grader.read(tmp_path / "nothing") == {}


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_neither_verdict_is_unexpected_of_what_depends_on_the_machine(
    reward: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    graded = {grader.key_of(ATTACK): replace(CAUGHT, reward=reward)}
    assert bool(grader.figures([ATTACK], graded)["unexpected"]) is bool(reward)
    monkeypatch.setattr(grader, "CHANCE_LIMITS", {ATTACK.name: "slow cores"})
    assert grader.figures([ATTACK], graded)["unexpected"] == []


def test_figures_count_by_class_and_name_the_unexpected(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [*ATTACKS[:2], HONEST[0]]
    rewards = (1.0, 0.0, 0.0)
    graded = {
        grader.key_of(patch): replace(CAUGHT, name=patch.name, reward=reward)
        for patch, reward in zip(asked, rewards, strict=True)
    }
    report = grader.figures(asked, graded)
    json.dumps(report)
    assert report["attacks"] == {"patches": 2, "wrong": 1, "interval": [0.0126, 0.9874]}
    assert report["classes"][ATTACKS[0].kind.value]["names"] == [ATTACKS[0].name]
    assert report["unexpected"] == sorted([ATTACKS[0].name, HONEST[0].name])
    grader.print_table(asked, graded)
    table = capsys.readouterr().out
    assert "all attacks (false accepts)" in table
    assert "honest patches (false rejects)" in table
