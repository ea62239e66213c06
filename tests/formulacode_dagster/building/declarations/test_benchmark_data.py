from datetime import UTC, datetime

from formulacode_dagster.building.declarations.benchmark_data import choose_data
from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement
from formulacode_dagster.building.declarations.optional import OptionalGroup

IMPORTS = {"pydicom": "b/m.py:1", "pydicom.data": "b/m.py:2", "numpy": "b/m.py:3"}
EXTRA = OptionalGroup(name="extra dev", items=(DeclaredRequirement(text="pydicom-data>=1", source="pyproject.toml"),))


def test_the_package_that_carries_the_data_is_taken_with_the_reason():
    found = choose_data(IMPORTS, ("numpy",), ())
    assert [(item.text, item.source) for item in found.requirements] == [("pydicom-data", "b/m.py:2")]
    assert found.floors == {"pydicom-data": datetime(2022, 10, 4, tzinfo=UTC)}
    assert found.notes[0].startswith("pydicom-data is taken: b/m.py:2 imports pydicom.data, and ")


def test_the_projects_own_words_have_precedence():
    assert [item.text for item in choose_data(IMPORTS, (), [EXTRA]).requirements] == ["pydicom-data>=1"]


def test_what_is_locked_anyway_may_still_be_as_new_as_its_first_release():
    found = choose_data(IMPORTS, ("pydicom-data",), ())
    assert (found.requirements, found.notes, list(found.floors)) == ((), (), ["pydicom-data"])


def test_importing_the_package_alone_reads_no_data():
    assert choose_data({"pydicom": "b/m.py:1", "pydicom.database": "b/m.py:2"}, (), ()).requirements == ()


def test_a_package_that_holds_code_too_keeps_to_the_date():
    assert choose_data({"MDAnalysisTests.datafiles": "b/m.py:1"}, (), ()).floors == {}
