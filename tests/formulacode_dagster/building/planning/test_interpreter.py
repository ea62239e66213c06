from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.declarations.metadata.project import Sourced
from formulacode_dagster.building.planning.interpreter import DeclaredPythons, rank_interpreters
from formulacode_dagster.models.errors import ItemFailure

AT = datetime(2026, 1, 15, tzinfo=UTC)


def declared(requires="", asv=(), classifiers=()):
    return DeclaredPythons(
        requires_python=Sourced(value=requires, source="pyproject.toml") if requires else None,
        asv=Sourced(value=asv, source="asv.conf.json") if asv else None,
        classifiers=Sourced(value=classifiers, source="setup.cfg") if classifiers else None,
    )


def test_the_newest_that_all_declarations_allow_is_first():
    ranking = rank_interpreters(declared(">=3.9,<3.13", ("3.8", "3.10", "3.11"), ("3.12",)), at=AT, available=None)
    assert ranking.pythons == ("3.11", "3.10", "3.12", "3.9")
    assert ranking.reason_for("3.11").startswith("3.11: requires-python >=3.9,<3.13 allows it and asv names it")


def test_an_interpreter_that_asv_names_against_requires_python_is_no_candidate():
    ranking = rank_interpreters(declared(">=3.12", ("3.10",)), at=AT, available=None)
    assert ranking.pythons == ("3.14", "3.13", "3.12")
    with pytest.raises(ItemFailure):
        rank_interpreters(declared("<3.7", ("3.10",)), at=AT, available=None)


def test_classifiers_stand_in_where_asv_names_nothing():
    assert rank_interpreters(declared(">=3.8", (), ("3.8", "3.9")), at=AT, available=None).pythons[0] == "3.9"
    assert rank_interpreters(declared("", (), ("3.8", "3.9")), at=AT, available=None).pythons[:2] == ("3.9", "3.8")


def test_an_interpreter_that_was_not_out_at_the_merge_is_no_candidate():
    day_before = datetime(2025, 10, 6, 23, 59, tzinfo=UTC)
    assert rank_interpreters(declared(">=3.12"), at=day_before, available=None).pythons == ("3.13", "3.12")
    assert (
        rank_interpreters(declared(">=3.12"), at=datetime(2025, 10, 7, tzinfo=UTC), available=None).pythons[0] == "3.14"
    )


def test_stepping_down_from_what_the_engine_lacks_is_recorded():
    ranking = rank_interpreters(declared(">=3.9", ("3.12", "3.11")), at=AT, available=frozenset({"3.11"}))
    assert ranking.pythons == ("3.11",)
    assert ranking.unavailable == ("3.12",)
    assert "the engine cannot provide 3.12" in ranking.reason_for("3.11")


def test_nothing_that_fits_names_what_was_declared_and_what_the_engine_has():
    with pytest.raises(ItemFailure) as caught:
        rank_interpreters(declared("<3.8", ("2.7",)), at=AT, available=frozenset({"3.11", "3.9"}))
    assert caught.value.kind == "interpreter"
    for part in ("<3.8", "2.7", "the engine has: 3.9, 3.11"):
        assert part in str(caught.value)


def test_names_of_other_interpreters_and_old_ones_do_not_count():
    ranking = rank_interpreters(
        declared("", ("2.7", "pypy3.9", "python3.8", "3.7.4")), at=AT, available=frozenset({"3.7", "3.8"})
    )
    assert ranking.pythons == ("3.8", "3.7")


def test_micro_releases_and_unreadable_specifiers_exclude_no_interpreter():
    assert "3.9" in rank_interpreters(declared(">=3.9.2,!=3.9.7"), at=AT, available=None).pythons
    assert rank_interpreters(declared("at least 3"), at=AT, available=None).pythons[0] == "3.14"


def test_if_only_old_interpreters_are_named_the_oldest_newer_comes_first():
    at = datetime(2020, 6, 1, tzinfo=UTC)
    ranking = rank_interpreters(declared("", ("2.7", "3.5")), at=at, available=None)
    assert ranking.pythons == ("3.7", "3.8")
    assert "asv names 2.7, 3.5: of the newer ones, the oldest first" in ranking.reason_for("3.7")
    assert rank_interpreters(declared(">=3.5", ("2.7", "3.5")), at=at, available=None).pythons == ("3.7", "3.8")
    assert rank_interpreters(declared(">=3.5,<3.8", ("3.6",)), at=at, available=None).pythons == ("3.7",)


def test_old_classifiers_are_no_restriction():
    at = datetime(2020, 6, 1, tzinfo=UTC)
    assert rank_interpreters(declared("", (), ("2.7", "3.4", "3.6")), at=at, available=None).pythons == ("3.7", "3.8")
    assert rank_interpreters(declared(">=3.8", (), ("3.6",)), at=at, available=None).pythons == ("3.8",)


def test_before_the_oldest_interpreter_the_nearest_later_one_is_recorded():
    at = datetime(2016, 5, 1, tzinfo=UTC)
    ranking = rank_interpreters(declared("", ("2.7", "3.5"), ("3.4",)), at=at, available=None)
    assert ranking.pythons == ("3.7", "3.8")
    assert "nearest later one, of 2018-06-27" in ranking.reason_for("3.7")
    engine = frozenset({"3.11", "3.12", "3.13"})
    assert rank_interpreters(declared(">=3.6"), at=datetime(2019, 1, 1, tzinfo=UTC), available=engine).pythons == (
        "3.11",
        "3.12",
    )


def test_an_upper_bound_that_nothing_meets_is_not_overruled():
    with pytest.raises(ItemFailure):
        rank_interpreters(declared(">=2.7,<3.7", ("2.7",)), at=datetime(2018, 1, 1, tzinfo=UTC), available=None)
