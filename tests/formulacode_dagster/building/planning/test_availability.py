"""Files a lock may use beyond the wheels of the date, and the record of it."""

from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.building.declarations.requirements import Requirements
from formulacode_dagster.building.planning.availability import Era
from formulacode_dagster.building.planning.lock import read_lock
from formulacode_dagster.building.planning.locking import lock_best
from formulacode_dagster.building.planning.resolution import Unsolvable

IN_2016 = datetime(2016, 6, 1, tzinfo=UTC)


def items(*texts):
    return tuple(DeclaredRequirement(text=text, source="setup.py") for text in texts)


@pytest.fixture
def lock(resolver):
    def run(*runtime, matrix=(), build=(), at=IN_2016, pythons=("3.7", "3.8")):
        wanted = Requirements(runtime=items(*runtime), matrix=items(*matrix), build=items(*build))
        return lock_best(resolver, dict.fromkeys(pythons, wanted), era=Era(exclude_newer=at, pythons=pythons))

    return run


@pytest.fixture
def compiled(index):
    """A project with wheels for single interpreters: 3.5 in 2016, 3.7 from the middle of 2018 on."""
    index.publish("compiled", "1.0", "2016-01-01T00:00:00Z", tag="cp35-cp35m-manylinux1_x86_64")
    index.publish("compiled", "1.4", "2018-06-29T00:00:00Z", tag="cp37-cp37m-manylinux1_x86_64")
    index.publish("compiled", "1.5", "2018-09-01T00:00:00Z", tag="cp37-cp37m-manylinux1_x86_64")
    index.publish("compiled", "1.5", "2019-10-20T00:00:00Z", tag="cp38-cp38-manylinux1_x86_64")
    return index


def pins(locked):
    return {pin.name: pin.version for pin in read_lock(locked.resolution.lock).pins}


@pytest.mark.slow
def test_what_has_no_wheel_for_the_interpreter_takes_the_first_that_has(lock, compiled):
    locked = lock("compiled", "setuptools")
    assert (locked.python, pins(locked)["compiled"]) == ("3.7", "1.4")
    assert any("compiled may be as new as 2018-06-29" in note for note in locked.notes)
    assert locked.cut_off == IN_2016
    assert locked.later["compiled"] == datetime(2018, 6, 29, 0, 0, 1, tzinfo=UTC)
    assert locked.later["setuptools"] == datetime(2019, 3, 1, tzinfo=UTC)
    assert pins(locked)["setuptools"] == "41.0"


def test_another_interpreter_comes_before_a_later_file(lock, compiled):
    locked = lock("compiled", at=datetime(2019, 1, 1, tzinfo=UTC), pythons=("3.8", "3.7"))
    assert (locked.python, pins(locked)) == ("3.7", {"compiled": "1.5"})
    assert not any("compiled" in note for note in locked.notes)


@pytest.mark.slow
def test_a_first_file_of_another_era_is_not_taken(lock, index):
    index.publish("compiled", "9.0", "2023-01-01T00:00:00Z", tag="cp37-cp37m-manylinux1_x86_64")
    index.publish_source("compiled", "1.0", "2015-01-01T00:00:00Z")
    locked = lock("compiled", pythons=("3.7",))
    assert pins(locked) == {"compiled": "1.0"}
    assert any("compiled is taken as a source distribution" in note for note in locked.notes)


@pytest.mark.slow
def test_projects_read_from_sources_keep_their_date_or_take_a_wheel(lock, index):
    index.publish_source("old", "1.0", "2015-01-01T00:00:00Z")
    index.publish("pure", "1.0", "2015-01-01T00:00:00Z")
    index.publish_source("pure", "1.1", "2015-06-01T00:00:00Z")
    index.publish("wheel", "0.31", "2015-06-01T00:00:00Z")
    index.publish_source("wheel", "0.31", "2015-06-01T00:00:00Z")
    locked = lock("old", "pure", "wheel")
    assert (locked.python, pins(locked)) == ("3.7", {"old": "1.0", "pure": "1.1", "wheel": "0.31"})
    assert [note for note in locked.notes if "taken as a source distribution" in note] == [
        "old is taken as a source distribution: 1.0 has no wheel for Python 3.7",
        "pure is taken as a source distribution: 1.1 has no wheel for Python 3.7",
    ]


@pytest.mark.slow
def test_a_compiled_project_takes_a_wheel_over_a_newer_source_release(lock, compiled):
    compiled.publish_source("compiled", "1.6", "2018-10-01T00:00:00Z")
    compiled.publish_source("old", "1.0", "2015-01-01T00:00:00Z")
    locked = lock("compiled", "old", at=datetime(2019, 1, 1, tzinfo=UTC))
    assert pins(locked) == {"compiled": "1.5", "old": "1.0"}


def test_a_project_whose_old_files_are_gone_takes_the_first_that_is_left(lock, index):
    index.publish("gone", "3.0", "2016-09-01T00:00:00Z")
    index.publish("gone", "4.0", "2017-01-01T00:00:00Z")
    locked = lock("gone", "setuptools")
    assert pins(locked)["gone"] == "3.0"
    assert locked.dropped == ()
    assert any("gone may be as new as 2016-09-01" in note for note in locked.notes)


def test_a_name_of_condas_never_waits_for_a_later_project_of_that_name(lock, index):
    index.publish("geos", "1.0", "2016-09-01T00:00:00Z")
    locked = lock("setuptools", matrix=["geos"])
    assert [drop.requirement for drop in locked.dropped] == ["geos"]


@pytest.mark.slow
def test_a_matrix_pin_without_a_wheel_is_loosened_with_a_record(lock, compiled):
    locked = lock("setuptools", matrix=["compiled==1.0"])
    assert pins(locked)["compiled"] == "1.4"
    assert any("compiled==1.0 has no solution, any version was allowed" in note for note in locked.notes)


def test_one_requirement_without_a_solution_does_not_abort_the_rest(lock, index):
    locked = lock("attrs>=9", "wheel", at=datetime(2019, 1, 1, tzinfo=UTC))
    assert (locked.python, pins(locked)) == ("3.7", {"wheel": "0.30"})
    (dropped,) = locked.dropped
    assert dropped.requirement == "attrs>=9"
    assert "attrs>=9" in dropped.reason


@pytest.mark.slow
def test_a_source_distribution_that_fails_to_build_is_dropped(lock, index):
    index.publish_source("broken", "1.0", "2015-01-01T00:00:00Z", "raise SystemExit('no such library')\n")
    index.publish("pure", "1.0", "2015-01-01T00:00:00Z")
    locked = lock("broken", "pure")
    assert pins(locked) == {"pure": "1.0"}
    (dropped,) = locked.dropped
    assert (dropped.requirement, "does not build" in dropped.reason) == ("broken", True)


def test_two_that_contradict_each_other_are_the_callers_business(lock):
    with pytest.raises(Unsolvable):
        lock("attrs<1", "attrs>=1", at=datetime(2019, 1, 1, tzinfo=UTC))
