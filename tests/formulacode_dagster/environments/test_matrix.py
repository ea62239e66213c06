from formulacode_dagster.environments.asv_config import AsvConfig, Matrix, Rule
from formulacode_dagster.environments.matrix import choose


def config(**matrix):
    rest = {key: matrix.pop(key) for key in ("environment_type", "exclude") if key in matrix}
    return AsvConfig(path="asv.conf.json", benchmark_dir="benchmarks", matrix=Matrix(**matrix), **rest)


def texts(choice):
    return [item.text for item in choice.declarations]


def test_any_version_comes_before_the_newest_named_one():
    assert texts(choose(config(req={"numpy": ("1.20", "1.9"), "scipy": ("1.5", "")}), "3.11")) == [
        "numpy==1.20",
        "scipy",
    ]


def test_the_choice_among_several_versions_is_noted():
    assert "took 1.20" in choose(config(req={"numpy": ("1.20", "1.9")}), "3.11").notes[0]


def test_null_means_that_the_package_is_absent():
    assert texts(choose(config(req={"numpy": (None,)}), "3.11")) == []


def test_condas_version_is_a_prefix_and_pips_is_exact():
    conda = config(req={"numpy": ("1.21",), "pip+tables": ("3.7",)}, environment_type="conda")
    assert texts(choose(conda, "3.11")) == ["numpy==1.21.*", "tables==3.7"]
    assert texts(choose(config(req={"numpy": ("1.21",), "pandas": (">=2",)}), "3.11")) == ["numpy==1.21", "pandas>=2"]


def test_geos_the_library_never_becomes_geos_the_web_framework():
    choice = choose(config(req={"geos": ("3.12",), "pytables": ("",), "python": ("",)}), "3.11")
    assert texts(choice) == ["tables"]
    assert choice.system_packages == ("libgeos-dev",)
    assert [drop.requirement for drop in choice.dropped] == ["geos 3.12", "python"]
    assert "libgeos-dev" in choice.dropped[0].reason


def test_excluded_combinations_are_passed_over():
    rules = (Rule(req={"numpy": "2.*"}),)
    assert texts(choose(config(req={"numpy": ("1.26", "2.1")}, exclude=rules), "3.11")) == ["numpy==1.26"]
    nothing = choose(config(req={"numpy": ("2.1",)}, exclude=rules), "3.11")
    assert texts(nothing) == []
    assert "excluded" in nothing.notes[0]


def test_variables_of_the_build_are_kept():
    assert choose(config(env={"FLAG": ("1", "0"), "OTHER": (None,)}), "3.11").environment == {"FLAG": "1"}
