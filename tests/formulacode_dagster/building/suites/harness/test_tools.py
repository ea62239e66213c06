"""Hashes of the code that judges tests."""

from __future__ import annotations

import unittest

from formulacode_dagster.building.suites.harness.tools import hashes


def test_a_replaced_method_has_another_hash(monkeypatch):
    before = hashes(["unittest"])
    monkeypatch.setattr(unittest.TestCase, "assertEqual", lambda *_: None)
    after = hashes(["unittest"])
    assert [name for name in before if before[name] != after[name]] == [
        "unittest.TestCase.assertEqual",
        "unittest.case.TestCase.assertEqual",
    ]


def test_only_the_packages_that_were_asked_for_are_told():
    names = hashes(["operator"])
    assert "operator.add" in names
    assert all(name.startswith("operator.") for name in names)
