from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from formulacode_dagster.models.attempt import Rung
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind
from tests.formulacode_dagster.building.images.test_recipes import make_context
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
def results(bench):
    return importlib.import_module("synthesis_results")


@pytest.fixture
def passes(bench, results):
    plain, asked = bench.Pass("none"), bench.Pass("command")
    held = make_attempt(rung=Rung.RULES, seconds=2.0)
    failed = make_attempt(kind="build", seconds=1.0)
    by_agent = make_attempt(rung=Rung.AGENT, tokens_in=90, tokens_out=10, dollars=0.25)
    plain.take(results.Climb(made_in="none", item="a/b#1", attempts=[held], spec="1"))
    plain.take(results.Climb(made_in="none", item="a/b#2", attempts=[failed], lost="build"))
    asked.take(results.Climb(made_in="command", item="a/b#1", attempts=[held], spec="1"))
    asked.take(results.Climb(made_in="command", item="a/b#2", attempts=[failed, by_agent], spec="2"))
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
    passes[1].take(passes[1].climbs["a/b#1"].model_copy(update={"spec": "another"}))
    assert bench.figures(passes)["changed"] == ["a/b#1"]
    del passes[1].climbs["a/b#1"]
    assert bench.figures(passes)["changed"] == ["a/b#1"]
    assert bench.figures(passes[:1])["changed"] == []


class _Laboratory:
    """Where every change ends with an error."""

    def __init__(self, end):
        self._end = end

    def change(self, item):
        raise self._end


def test_an_outage_cuts_an_item_short_and_the_next_run_retries_it(bench, results, tmp_path):
    gone = _Laboratory(OutsideSystemError("docker", "no answer"))
    failing = _Laboratory(ItemFailure(FailureKind.VANISHED, "no such merge"))
    plain, climbs = bench.Pass("none"), results.Climbs(tmp_path / "results.jsonl")
    for item, laboratory in (("a/b#1", gone), ("a/b#2", failing)):
        plain.take(climbs.keep(plain.climb(laboratory, None, item)))
    told = bench.figures([plain])
    assert (told["cut_short"], told["changed"]) == (["a/b#1"], [])
    assert told["passes"]["none"]["lost"] == {"a/b#1": "cut short: docker: no answer", "a/b#2": "vanished"}
    resumed = results.Climbs(tmp_path / "results.jsonl")
    assert resumed.made("none", "a/b#1") is None
    assert resumed.made("none", "a/b#2") == plain.climbs["a/b#2"]
    assert resumed.made("command", "a/b#2") is None


def test_a_passing_item_leaves_its_recipe_whether_new_or_stored(passes, results):
    context = make_context("d" * 40)
    passes[1].take(results.Climb(made_in="command", item="a/b#3", context=context, spec="3"))
    assert passes[1].contexts == [context]


def test_pull_requests_of_a_list_are_taken_from_both_its_ends(monkeypatch, bench, tmp_path):
    samples = importlib.import_module("synthesis_samples")
    for name in ("shapely/shapely", "pytoolz/toolz"):
        (tmp_path / f"{name}.git").mkdir(parents=True)
    assert list(samples.listed(tmp_path, 3)) == [
        *(f"pytoolz/toolz#{number}" for number in (534, 313)),
        *(f"shapely/shapely#{number}" for number in (2283, 1323, 2142)),
    ]


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
