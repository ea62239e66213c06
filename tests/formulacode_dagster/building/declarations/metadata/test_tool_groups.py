import tomllib

from formulacode_dagster.building.declarations.metadata.tool_groups import tool_groups
from formulacode_dagster.building.declarations.requirements import read_metadata

TABLES = """
[tool.poetry.dev-dependencies]
pytest = "^7"
[tool.poetry.group.bench.dependencies]
numba = {version = "^0.57", optional = true}
[tool.pdm.dev-dependencies]
test = ["hypothesis", "-e file:///x"]
[tool.hatch.envs.bench]
dependencies = ["scipy"]
extra-dependencies = ["pandas"]
[tool.uv]
dev-dependencies = ["mypy"]
"""


def test_each_tools_own_groups_are_read():
    groups = tool_groups(tomllib.loads(TABLES)["tool"], "pyproject.toml")
    assert {name: [item.text for item in items] for name, items in groups.items()} == {
        "bench": ["numba>=0.57,<0.58", "scipy", "pandas"],
        "dev": ["pytest>=7,<8", "mypy"],
        "test": ["hypothesis", "-e file:///x"],
    }
    assert groups["bench"][1].source == "pyproject.toml:tool.hatch.envs.bench.dependencies"


def test_pep_735_has_the_word_over_the_tools(tree_of):
    text = '[dependency-groups]\ndev = ["ruff"]\n' + TABLES
    assert [item.text for item in read_metadata(tree_of({"pyproject.toml": text}), ".").groups["dev"]] == ["ruff"]


def test_tables_of_another_form_are_passed_over():
    assert tool_groups({"poetry": 3, "pdm": {"dev-dependencies": []}, "hatch": {"envs": {"a": 1}}, "uv": []}, "x") == {}
