from __future__ import annotations

from formulacode_dagster.building.images.repairs.propose import RepairContext, is_new
from formulacode_dagster.building.images.repairs.rules import Phase
from formulacode_dagster.building.specs.fixes import with_fixes
from formulacode_dagster.models.recipe import Command, Fix, InstallMode, Isolation, OnFailure
from tests.support.repairs import make_spec

CLEAN = Command(argv=("make", "clean"), on_failure=OnFailure.STOP, source="test")


def make_fix(**more: object) -> Fix:
    return Fix.model_validate({"rule": "r", "evidence": "e", **more})


def test_everything_of_a_fix_reaches_the_build_once() -> None:
    fix = make_fix(
        apt_packages=["libgsl-dev"],
        environment={"CFLAGS": "-fcommon", "CPATH": "/a", "MAX_JOBS": "1"},
        commands=[CLEAN],
        isolation="apart",
        install_mode="setup_py",
        build_arguments=("setup-args=-Dx=y",),
    )
    spec = make_spec(apt_packages=("libx",), build_environment={"CFLAGS": "-O2", "CPATH": "/b", "MAX_JOBS": "4"})
    once = with_fixes(spec, (fix,))
    assert once.apt_packages == ("libx", "libgsl-dev")
    assert once.build_environment == {"CFLAGS": "-O2 -fcommon", "CPATH": "/b:/a", "MAX_JOBS": "1"}
    assert once.commands == (CLEAN,)
    assert (once.isolation, once.install_mode) == (Isolation.APART, InstallMode.SETUP_PY)
    assert once.build_arguments == ("setup-args=-Dx=y",)
    assert with_fixes(once, (fix,)) == once


def test_a_package_that_the_release_lacks_is_left_out_and_others_stay() -> None:
    spec = make_spec(apt_packages=("libgfortran3", "libgsl-dev"))
    gone = make_fix(without_apt_packages=["libgfortran3"])
    left = with_fixes(spec, (gone,))
    assert left.apt_packages == ("libgsl-dev",)
    assert is_new(gone, RepairContext(spec), Phase.BASE)
    assert not is_new(gone, RepairContext(left), Phase.BASE)


def test_a_fix_that_changes_nothing_is_not_new() -> None:
    context = RepairContext(make_spec(locked=["setuptools==65.5.0", "numpy==1.26.4"], apt_packages=("gfortran",)))
    assert not is_new(make_fix(apt_packages=["gfortran"]), context)
    assert not is_new(make_fix(requirements=["setuptools"], constraints=["setuptools<81"]), context)
    assert not is_new(make_fix(constraints=["cython<3"]), context), "cython is not in the lock"
    assert not is_new(make_fix(step_down=True), context), "no interpreter is left"
    assert not is_new(make_fix(python=context.spec.python), context)
    assert is_new(make_fix(python="3.8"), context)
    assert is_new(make_fix(constraints=["numpy<1.24"]), context)
    assert is_new(make_fix(requirements=["cython"]), context)
    assert is_new(make_fix(step_down=True), RepairContext(context.spec, older_pythons=("3.8",)))


def test_what_builds_apart_is_judged_by_its_own_lock() -> None:
    build_lock = f"setuptools==65.5.0 --hash=sha256:{'0' * 64}\n"
    context = RepairContext(make_spec(build_lock=build_lock))
    assert not is_new(make_fix(requirements=["setuptools"]), context, Phase.TASK)
    assert is_new(make_fix(requirements=["setuptools"]), context, Phase.RUN)
