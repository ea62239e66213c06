import pytest

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.building.declarations.requirements import Requirements
from formulacode_dagster.building.planning.fixes import add_requirements, constraints_of, step_below
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.recipe import Fix

DECLARED = Requirements(runtime=(DeclaredRequirement(text="numpy", source="pyproject.toml"),))


def fix(**changes):
    return Fix(rule="missing-module", evidence="No module named 'six'", **changes)


def test_requirements_of_a_fix_count_at_run_and_build_with_its_rule():
    wanted = add_requirements(DECLARED, [fix(requirements=("six",)), fix(requirements=("six", "pybind11>=2"))])
    assert [item.text for item in wanted.runtime] == ["numpy", "six", "pybind11>=2"]
    assert [(item.text, item.source) for item in wanted.build] == [
        ("six", "repair rule missing-module"),
        ("pybind11>=2", "repair rule missing-module"),
    ]


def test_a_fixs_requirement_that_does_not_parse_is_dropped_by_name():
    wanted = add_requirements(DECLARED, [fix(requirements=("six (((",))])
    assert wanted.runtime == DECLARED.runtime
    assert [(drop.requirement, drop.source) for drop in wanted.dropped] == [("six (((", "repair rule missing-module")]


def test_constraints_are_sorted_and_a_wrong_one_names_its_rule():
    assert constraints_of([fix(constraints=("numpy<2", "cython<3")), fix(constraints=("numpy<2",))]) == (
        "cython<3",
        "numpy<2",
    )
    with pytest.raises(ItemFailure, match="repair rule missing-module sets the bound"):
        constraints_of([fix(constraints=("cython < ",))])


def test_below_the_last_rung_there_is_nothing():
    rungs = {"3.9": DECLARED, "3.8": DECLARED}
    assert list(step_below(rungs, "3.9", fix(step_down=True))) == ["3.8"]
    with pytest.raises(ItemFailure) as caught:
        step_below({"3.8": DECLARED}, "3.8", fix(step_down=True))
    assert caught.value.kind == "interpreter"
    assert "No module named 'six'" in str(caught.value)
