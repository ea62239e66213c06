from formulacode_dagster.building.declarations.asv_config import AsvConfig, Matrix, MatrixRule
from formulacode_dagster.building.declarations.matrix import choose, pythons_of


def config(**matrix):
    rest = {key: matrix.pop(key) for key in ("environment_type", "exclude", "include", "pythons") if key in matrix}
    return AsvConfig(path="asv.conf.json", benchmark_dir="benchmarks", matrix=Matrix(**matrix), **rest)


def texts(choice):
    return [item.text for item in choice.requirements]


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
    rules = (MatrixRule(req={"numpy": "2.*"}),)
    assert texts(choose(config(req={"numpy": ("1.26", "2.1")}, exclude=rules), "3.11")) == ["numpy==1.26"]
    nothing = choose(config(req={"numpy": ("2.1",)}, exclude=rules), "3.11")
    assert texts(nothing) == []
    assert "excluded" in nothing.notes[0]


def test_variables_of_the_build_are_kept():
    assert choose(config(env={"FLAG": ("1", "0"), "OTHER": (None,)}), "3.11").environment == {"FLAG": "1"}


def test_variables_of_benchmark_runs_alone_are_told_apart():
    choice = choose(config(env={"FLAG": ("1",)}, env_nobuild={"OMP_NUM_THREADS": ("1", "4"), "DEBUG": (None,)}), "3.11")
    assert (choice.environment, choice.run_environment) == ({"FLAG": "1"}, {"OMP_NUM_THREADS": "4"})


def test_exclude_sees_variables_of_benchmark_runs():
    rules = (MatrixRule(env_nobuild={"OMP_NUM_THREADS": "4"}),)
    choice = choose(config(env_nobuild={"OMP_NUM_THREADS": ("1", "4")}, exclude=rules), "3.11")
    assert choice.run_environment == {"OMP_NUM_THREADS": "1"}


OLDEST = MatrixRule(python="3.8", req={"numpy": "1.16.0", "numba": None})
NEWEST = MatrixRule(python="3.8", req={"numpy": "", "numba": ""})
LATER = MatrixRule(python="3.12", req={"numpy": "", "ephem": ""})
DUMMY = {"pythons": ("dummy",), "exclude": (MatrixRule(python="dummy"),)}


def test_environments_may_stand_in_include_alone():
    only = config(**DUMMY, include=(OLDEST, NEWEST, LATER), environment_type="conda")
    assert pythons_of(only) == ("3.8", "3.12")
    choice = choose(only, "3.8")
    assert texts(choice) == ["numpy", "numba"]
    assert choice.notes == ("took the environment that asv.conf.json:include adds for Python 3.8",)
    assert choice.requirements[0].source == "asv.conf.json:include"


def test_an_interpreter_missing_in_include_takes_the_nearest_environment():
    everything = (MatrixRule(python=r".*"),)
    only = config(pythons=("3.8",), exclude=everything, include=(OLDEST, LATER))
    assert texts(choose(only, "3.9")) == ["numpy==1.16.0"]
    assert texts(choose(only, "3.11")) == ["numpy", "ephem"]
    assert "excluded for Python 3.11" in choose(only, "3.11").notes[0]


def test_a_matrix_with_requirements_goes_before_what_include_adds():
    both = config(req={"numpy": ("1.26",)}, pythons=("3.12",), include=(LATER,))
    assert texts(choose(both, "3.12")) == ["numpy==1.26"]


def test_an_entry_of_include_for_another_platform_or_tool_is_passed_over():
    windows = LATER.model_copy(update={"sys_platform": "win32"})
    conda = LATER.model_copy(update={"environment_type": "conda"})
    assert pythons_of(config(pythons=("3.9",), include=(windows, conda))) == ("3.9",)
    assert pythons_of(config(pythons=("3.9",), include=(conda,), environment_type="conda")) == ("3.9", "3.12")


def test_a_configuration_without_pythons_names_none():
    assert pythons_of(config(include=(LATER,))) == ()
