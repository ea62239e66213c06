"""What counts as a clock that the timed code has changed."""

from __future__ import annotations

import builtins
import time

import pytest

from formulacode_dagster.building.suites.harness import clocks, timing


def test_nothing_is_changed_by_itself():
    assert clocks.changed(clocks.watched()) == []


@pytest.mark.parametrize(
    ("owner", "name", "value", "told"),
    [
        (time, "perf_counter", lambda: 0.0, "time.perf_counter"),
        (timing, "_timings", lambda *_: ([], 1), f"{timing.__name__}._timings"),
        (timing.SetUpOnce, "timeit", lambda *_: 0.0, f"{timing.__name__}.SetUpOnce.timeit"),
        (timing, "sorted", lambda values: values, f"{timing.__name__}.sorted"),
        (builtins, "sum", lambda _: 0, "builtins.sum"),
    ],
    ids=["function", "harness", "method", "hidden built-in", "built-in"],
)
def test_what_the_code_replaced_is_named(owner, name, value, told, monkeypatch):
    before = clocks.watched()
    monkeypatch.setattr(owner, name, value, raising=False)
    assert clocks.changed(before) == [told]


def test_code_of_a_function_may_not_be_another(monkeypatch):
    before = clocks.watched()
    monkeypatch.setattr(timing.load_module, "__code__", (lambda _: {}).__code__)
    assert f"{timing.__name__}.load_module" in clocks.changed(before)


def test_what_libraries_add_is_no_clock(monkeypatch):
    before = clocks.watched()
    monkeypatch.setattr(builtins, "_", str, raising=False)
    monkeypatch.setattr(builtins, "print", print, raising=False)
    assert clocks.changed(before) == []
