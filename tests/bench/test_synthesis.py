from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from formulacode_dagster.models.attempt import Rung
from tests.records import make_attempt

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("synthesis")


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("synthesis_standin")


@pytest.fixture
def passes(bench):
    plain, asked = bench.Pass("none"), bench.Pass("command")
    held = make_attempt(rung=Rung.RULES, seconds=2.0)
    plain.attempts = {"a/b#1": [held], "a/b#2": [make_attempt(kind="build", seconds=1.0)]}
    plain.specs, plain.lost = {"a/b#1": "1"}, {"a/b#2": "build"}
    by_agent = make_attempt(rung=Rung.AGENT, tokens_in=90, tokens_out=10, dollars=0.25)
    asked.attempts = {"a/b#1": [held], "a/b#2": [make_attempt(kind="build"), by_agent]}
    asked.specs = {"a/b#1": "1", "a/b#2": "2"}
    return plain, asked


def test_the_last_line_tells_yield_and_cost_of_each_rung(bench, passes):
    told = bench.figures(passes)
    assert (told["items"], told["changed"]) == (2, [])
    plain, asked = told["passes"]["none"], told["passes"]["command"]
    assert (plain["held"], plain["lost"], asked["held"]) == (1, {"a/b#2": "build"}, 2)
    assert plain["rungs"]["rules"] == {"attempts": 2, "held": 1, "seconds": 3.0, "tokens": 0, "dollars": 0}
    assert asked["rungs"]["agent"] == {"attempts": 1, "held": 1, "seconds": 1.5, "tokens": 100, "dollars": 0.25}
    header, _, *rows = bench.table(passes)
    assert {row.count("|") for row in rows} == {header.count("|")}
    assert "| command | all | | 2 of 2 | | | |" in rows


def test_what_an_agent_in_reach_changes_of_what_holds_without_one_is_named(bench, passes):
    passes[1].specs["a/b#1"] = "another"
    assert bench.figures(passes)["changed"] == ["a/b#1"]
    del passes[1].specs["a/b#1"]
    assert bench.figures(passes)["changed"] == ["a/b#1"]
    assert bench.figures(passes[:1])["changed"] == []


@pytest.mark.parametrize(
    ("line", "edit"),
    [
        ("KeyError: 'KEYED_BUILD'", 'environment = { "KEYED_BUILD" = "1" }'),
        ("sh: command not found: bison", 'system_packages = ["bison"]'),
        ("AttributeError: module 'six' has no attribute 'moves'", 'requirements = ["six"]'),
        ("there is no way", ""),
    ],
)
def test_the_stand_in_knows_a_few_lines_and_gives_up_on_others(stand_in, line, edit):
    assert stand_in.edit_for(line) == edit
