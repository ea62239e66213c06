from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.building.declarations.requirements import Requirements
from formulacode_dagster.building.planning.availability import Era
from formulacode_dagster.building.planning.lock import read_lock
from formulacode_dagster.building.planning.locking import lock_best
from formulacode_dagster.building.planning.tests_lock import lock_tests

ERA = Era(exclude_newer=datetime(2026, 1, 15, tzinfo=UTC), pythons=("3.11",))


@pytest.fixture
def lock(resolver, index):
    """The tests' requirements, pinned in addition to an environment with `shared` 1.0."""
    index.publish("shared", "1.0", "2020-01-01T00:00:00Z")
    index.publish("shared", "2.0", "2021-01-01T00:00:00Z")
    index.publish("pytest", "8.0", "2024-01-01T00:00:00Z", requires=("shared",))
    index.publish("pytest", "9.0", "2026-06-01T00:00:00Z")
    index.publish("strict", "1.0", "2024-01-01T00:00:00Z", requires=("shared>=2",))
    index.publish("plugin", "1.0", "2024-01-01T00:00:00Z", requires=("pytest",))
    index.publish_source("unbuilt", "1.0", "2024-01-01T00:00:00Z")

    def run(*texts, shared="1.0", floors=None):
        runtime = (DeclaredRequirement(text=f"shared=={shared}", source=""),)
        environment = lock_best(resolver, {"3.11": Requirements(runtime=runtime, floors=floors or {})}, era=ERA)
        return lock_tests(resolver, [DeclaredRequirement(text=text, source="") for text in texts], environment, era=ERA)

    return run


def pins(locked):
    return {pin.name: pin.version for pin in read_lock(locked.lock).pins}


def test_test_requirements_are_pinned_at_the_date_without_locked_ones(lock):
    locked = lock("pytest", "plugin")
    assert pins(locked) == {"pytest": "8.0", "plugin": "1.0"}
    assert (locked.requirements, locked.notes) == (("pytest", "plugin"), ())
    assert not read_lock(locked.lock).strange


@pytest.mark.parametrize("other", ["strict", "unbuilt"])
def test_only_pytest_is_taken_if_the_rest_does_not_fit_or_is_no_wheel(lock, other):
    locked = lock("pytest", other)
    assert pins(locked) == {"pytest": "8.0"}
    assert f"pytest, {other} of the tests" in locked.notes[0]


@pytest.mark.slow
def test_what_does_not_fit_is_left_out_and_what_stands_beside_it_is_not(lock):
    """As anndata's, whose tests import dask while loompy, among their requirements, has no wheel."""
    locked = lock("pytest", "strict", "unbuilt", "plugin")
    assert pins(locked) == {"pytest": "8.0", "plugin": "1.0"}
    assert locked.requirements == ("pytest", "plugin")
    assert {"strict is left out", "unbuilt is left out"} <= set(locked.notes)


def test_a_project_that_may_be_newer_in_the_lock_may_be_so_for_the_tests(lock, index):
    index.publish("shared", "3.0", "2026-02-01T00:00:00Z")
    locked = lock("pytest", shared="3.0", floors={"shared": datetime(2026, 3, 1, tzinfo=UTC)})
    assert (pins(locked), locked.notes) == ({"pytest": "8.0"}, ())


def test_without_tests_there_is_no_lock(lock):
    assert lock().lock == ""
