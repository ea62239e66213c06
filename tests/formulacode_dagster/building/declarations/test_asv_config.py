import re
from functools import partial

import pytest

from formulacode_dagster.building.declarations import asv_config
from formulacode_dagster.building.declarations.asv_config import (
    AsvConfig,
    Matrix,
    MatrixRule,
    MatrixRules,
    find_config,
    read_config,
)
from formulacode_dagster.building.declarations.matrix import choose, pythons_of
from formulacode_dagster.models.errors import ItemFailure


def test_the_top_configuration_wins_then_the_shallowest_then_by_name(tree_of):
    assert (
        find_config(tree_of({"z/asv.conf.json": "", "asv.conf.jsonc": "", "a/asv.conf.json": ""})) == "asv.conf.jsonc"
    )
    assert (
        find_config(tree_of({"b/c/asv.conf.json": "", "z/asv.conf.json": "", "y/asv.conf.json": ""}))
        == "y/asv.conf.json"
    )
    assert find_config(tree_of({"my-asv.conf.json": "", "setup.py": ""})) is None


def test_comments_and_trailing_commas_are_read_as_asv_reads_them(tree_of):
    text = """{
        // the version
        "version": 1,
        "repo": "..", /* a block */
        "pythons": ["3.11", "3.12",],
        "matrix": {"numpy": ["1.26", null], "scipy": [], "pip+tables": "",},
        "build_command": "python -m build",
        "conda_channels": ["conda-forge"],
        "environment_type": "rattler",
    }"""
    config = read_config(tree_of({"bench/asv.conf.json": text}), "bench/asv.conf.json")
    assert config.pythons == ("3.11", "3.12")
    assert config.matrix.req == {"numpy": ("1.26", None), "scipy": ("",), "pip+tables": ("",)}
    assert config.build_command == ("python -m build",)
    assert config.install_command is None
    assert config.benchmark_dir == "bench/benchmarks"


def test_the_new_form_of_the_matrix_keeps_packages_and_variables_apart(tree_of):
    text = '{"matrix": {"req": {"numpy": ["2"]}, "env": {"FLAG": ["1", null]}, "env_nobuild": {"THREADS": ["1"]}}}'
    matrix = read_config(tree_of({"asv.conf.json": text}), "asv.conf.json").matrix
    assert matrix.req == {"numpy": ("2",)}
    assert matrix.env == {"FLAG": ("1", None)}
    assert matrix.env_nobuild == {"THREADS": ("1",)}


@pytest.mark.parametrize(
    "text",
    [
        "{not json",
        "[]",
        '{"matrix": [1]}',
        '{"pythons": [{"a": 1}]}',
        '{"benchmark_dir": "../../elsewhere"}',
        '{"matrix": {"req": {}, "numpy": []}}',
        '{"exclude": ["numpy"]}',
    ],
)
def test_a_malformed_configuration_fails_the_item(tree_of, text):
    with pytest.raises(ItemFailure) as caught:
        read_config(tree_of({"asv.conf.json": text}), "asv.conf.json")
    assert caught.value.kind == "asv_config"
    assert "asv.conf.json" in str(caught.value)


def test_exclude_rules_are_regular_expressions_over_the_whole_value(tree_of):
    text = '{"matrix": {"numpy": ["1.20", "2.0"]}, "exclude": [{"python": "3\\\\.1[12]", "numpy": "1.*"}]}'
    config = read_config(tree_of({"asv.conf.json": text}), "asv.conf.json")
    assert MatrixRules(config).exclude("3.12", {("req", "numpy"): "1.20"})
    assert not MatrixRules(config).exclude("3.12", {("req", "numpy"): "2.0"})
    assert not MatrixRules(config).exclude("3.10", {("req", "numpy"): "1.20"})
    assert not MatrixRules(config).exclude("3.12", {})


def test_a_pattern_of_exclude_that_never_comes_to_an_end_is_given_up(tree_of, monkeypatch):
    monkeypatch.setattr(asv_config, "MATCH_SECONDS", 0.1)
    version = "1" * 60 + "x"
    text = f'{{"matrix": {{"numpy": ["{version}"]}}, "exclude": [{{"numpy": "(1|11)+$"}}]}}'
    config = read_config(tree_of({"asv.conf.json": text}), "asv.conf.json")
    with pytest.raises(
        ItemFailure, match=r"the pattern '\(1\|11\)\+\$' of an `exclude` or `include` cannot be matched"
    ):
        MatrixRules(config).exclude("3.12", {("req", "numpy"): version})


@pytest.mark.parametrize("search", [pythons_of, partial(choose, python="3.1")])
def test_all_patterns_of_a_configuration_have_one_limit_of_time(monkeypatch, search):
    """Each match here takes nearly as long as all may take: of 4096 combinations, two are tried."""
    now, matched = [0], []
    monkeypatch.setattr(asv_config, "MATCH_SECONDS", 10)

    def match(pattern, actual, *, timeout):
        now[0] += min(9, timeout)
        matched.append(actual)
        return re.match(pattern, actual)

    monkeypatch.setattr(asv_config.time, "thread_time", lambda: now[0])
    monkeypatch.setattr(asv_config.regex, "match", match)
    matrix = Matrix(req={f"x{number}": ("1", "2") for number in range(12)})
    rules = {"exclude": (MatrixRule(req={"x0": "."}),), "include": (MatrixRule(python="3.1", environment_type="x"),)}
    config = AsvConfig(path="asv.conf.json", benchmark_dir="b", pythons=("3.1", "3.2"), matrix=matrix, **rules)
    with pytest.raises(ItemFailure, match="all of them together"):
        search(config)
    assert len(matched) == 2


def test_a_pattern_of_exclude_that_is_no_regular_expression_is_refused(tree_of):
    tree = tree_of({"asv.conf.json": '{"exclude": [{"req": {"numpy": "1.[2"}}]}'})
    with pytest.raises(ItemFailure, match="not a regular expression"):
        read_config(tree, "asv.conf.json")


def test_a_pattern_counts_only_when_its_first_match_reaches_the_end():
    config = AsvConfig(path="asv.conf.json", benchmark_dir="b", exclude=(MatrixRule(python="3.1|3.12"),))
    assert MatrixRules(config).exclude("3.1", {})
    assert not MatrixRules(config).exclude("3.12", {})


def test_the_file_that_names_a_conda_environment_is_kept_as_written(tree_of):
    text = '{"conda_environment_file": "../ci/environment.yml"}'
    assert read_config(tree_of({"b/asv.conf.json": text}), "b/asv.conf.json").conda_environment_file == (
        "../ci/environment.yml"
    )
