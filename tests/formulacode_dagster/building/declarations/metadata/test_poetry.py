import pytest

from formulacode_dagster.building.declarations.metadata.poetry import requirements, specifier


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1", ">=1,<2"),
        ("1.2.*", "==1.2.*"),
        ("1.2", "==1.2"),
        ("*", ""),
        (">=1.0, <2.0", ">=1.0,<2.0"),
        (">=1.0 <2.0", ">=1.0,<2.0"),
        ("~=1.4", "~=1.4"),
        ("!=1.5", "!=1.5"),
        ("^2.7 || ^3.6", None),
    ],
)
def test_constraints_become_specifiers(constraint, expected):
    assert specifier(constraint) == expected


def test_tables_carry_extras_and_markers():
    table = {"version": "^1.0", "extras": ["fast"], "python": ">=3.8", "markers": "sys_platform == 'linux'"}
    found = requirements("pkg", table, source="x")
    assert [item.text for item in found] == [
        "pkg[fast]>=1.0,<2; (python_version >= '3.8') and (sys_platform == 'linux')"
    ]


def test_several_constraints_give_several_requirements_and_urls_stay():
    found = requirements("pkg", [{"version": "1", "python": "<3.8"}, {"version": "2", "python": ">=3.8"}], source="x")
    assert len(found) == 2
    assert requirements("pkg", {"git": "https://x/y"}, source="x")[0].text == "pkg @ https://x/y"
