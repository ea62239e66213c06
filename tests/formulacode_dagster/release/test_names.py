from __future__ import annotations

import re

import pytest

from formulacode_dagster.release.names import MAX_NAME, docker_name

COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")


@pytest.mark.parametrize("name", ["numpy__numpy-1", "a-b__c.d-12", "pandas-dev__pandas-99999"])
def test_a_name_that_docker_accepts_stays(name: str) -> None:
    assert docker_name(name) == name


@pytest.mark.parametrize("name", ["a__.github-1", "a__b_-1", "a__b..c-1", "a__-1", "A__b___c-1", "x" * 300])
def test_any_other_name_is_made_acceptable(name: str) -> None:
    found = docker_name(name)
    assert COMPONENT.fullmatch(found)
    assert len(found) <= MAX_NAME


def test_names_that_differ_stay_different() -> None:
    names = ["a__b_-1", "a__b.-1", "a__b-1", "a__b..-1", "a__-b-1"]
    assert len({docker_name(name) for name in names}) == len(names)
