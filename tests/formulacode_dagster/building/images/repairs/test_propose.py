from __future__ import annotations

from formulacode_dagster.building.images.repairs.propose import FailureLog, RepairContext, propose
from formulacode_dagster.models.recipe import Fix
from tests.support.repairs import make_spec

DOCKER = """\
$ build formulacode/acme__tool:env
#8 1.10 fatal error: hdf5.h: No such file or directory
$ build formulacode/acme__tool:pr1
#11 2.769 lib/fenwick.c:31:10: fatal error: gsl/gsl_math.h: No such file or directory
#11 2.770 error: command '/usr/bin/gcc' failed with exit code 1
2.769 lib/fenwick.c:31:10: fatal error: gsl/gsl_math.h: No such file or directory
"""


def test_only_the_last_step_of_a_log_counts_and_buildkits_prefix_does_not() -> None:
    fix = propose(FailureLog("task", DOCKER), RepairContext(make_spec()))
    assert fix is not None
    assert fix.apt_packages == ("libgsl-dev",)
    assert fix.evidence == "lib/fenwick.c:31:10: fatal error: gsl/gsl_math.h: No such file or directory"


def test_all_that_one_log_misses_is_one_fix() -> None:
    text = (
        "benchmarks: a lost: No module named 'yaml'; b lost: No module named 'hypothesis'; c lost: No module named 'q'"
    )
    fix = propose(FailureLog("benchmarks", text), RepairContext(make_spec()))
    assert fix is not None
    assert fix.requirements == ("pyyaml", "hypothesis")


def test_a_module_of_the_package_itself_is_no_requirement() -> None:
    declared = {"tool": "tool", "helper-x": "helper-x>=1"}
    text = "No module named 'tool._fast'"
    assert propose(FailureLog("imports", text), RepairContext(make_spec(), declared=declared)) is None
    fix = propose(FailureLog("imports", "No module named 'helper_x'"), RepairContext(make_spec(), declared=declared))
    assert fix is not None
    assert fix.requirements == ("helper-x>=1",)


def test_an_import_name_that_nobody_declares_is_not_guessed() -> None:
    assert (
        propose(FailureLog("imports", "ModuleNotFoundError: No module named 'plex'"), RepairContext(make_spec()))
        is None
    )


def test_a_rule_for_one_moment_is_silent_at_another() -> None:
    log = "fatal error: gsl/gsl_math.h: No such file or directory"
    assert propose(FailureLog("imports", log), RepairContext(make_spec())) is None
    assert propose(FailureLog("repo", log), RepairContext(make_spec())) is None


def test_the_second_way_of_a_rule_follows_when_the_first_did_not_help() -> None:
    spec = make_spec(python="3.12", locked=["setuptools==70.0"])
    fix = propose(FailureLog("imports", "No module named 'distutils'"), RepairContext(spec, older_pythons=("3.11",)))
    assert fix is not None
    assert fix.step_down


def test_a_last_resort_is_taken_twice_at_most() -> None:
    failure = FailureLog("imports", "tool: AttributeError: something strange")
    tried = Fix(rule="older_interpreter", evidence="", step_down=True)
    spec = make_spec()
    assert (
        propose(failure, RepairContext(spec.model_copy(update={"fixes": (tried,)}), older_pythons=("3.9",))) is not None
    )
    assert (
        propose(failure, RepairContext(spec.model_copy(update={"fixes": (tried, tried)}), older_pythons=("3.8",)))
        is None
    )
    assert propose(failure, RepairContext(spec, older_pythons=())) is None


def test_an_unknown_header_does_not_imply_an_older_interpreter() -> None:
    log = "fatal error: own_thing.h: No such file or directory\nerror: Failed to build `/tmp/source`"
    assert propose(FailureLog("task", log), RepairContext(make_spec(), older_pythons=("3.9",))) is None
    fix = propose(
        FailureLog("task", "error: Failed to build `/tmp/source`"), RepairContext(make_spec(), older_pythons=("3.9",))
    )
    assert fix is not None
    assert fix.rule == "older_interpreter"


def test_what_no_requirement_can_be_made_of_is_not_proposed() -> None:
    log = "Could not find suitable distribution for Requirement.parse('==1.0')"
    assert propose(FailureLog("task", log), RepairContext(make_spec())) is None


def test_a_name_that_is_gone_bounds_only_what_the_lock_holds() -> None:
    def proposed(module: str, *locked: str) -> Fix | None:
        text = f"ImportError: cannot import name 'x' from '{module}' (/opt/venv/lib/python3.9/site-packages/a.py)"
        return propose(FailureLog("imports", text), RepairContext(make_spec(python="3.9", locked=locked)))

    by_import_name = proposed("sklearn.utils", "scikit-learn==1.0.2")
    assert by_import_name is not None
    assert by_import_name.constraints == ("scikit-learn<1.0",)
    single_number = proposed("odd", "odd==7")
    assert single_number is not None
    assert single_number.constraints == ("odd<7.0",)
    assert proposed("tool.part", "numpy==1.21.0") is None, "the package's own, and no interpreter is left"
