"""Every rule of the table against the end of a real log; `logs.toml` says where each log comes from."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.building.declarations.providers import DependencyKind, provider_of, requirement_for_module
from formulacode_dagster.building.images.repairs.propose import FailureLog, RepairContext, propose
from formulacode_dagster.building.images.repairs.rules import RepairRule, rules
from formulacode_dagster.building.specs.fixes import with_fixes
from formulacode_dagster.models.recipe import Fix
from tests.support.repairs import make_spec

CASES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("logs.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_a_real_log_makes_its_rule_propose_its_fix_once(case: dict[str, Any]) -> None:
    context = RepairContext(
        make_spec(python=case["python"], locked=case.get("locked", ()), apt_packages=case.get("apt_packages", ())),
        older_pythons=("3.7",),
        has_submodules=case["rule"] == "submodules",
    )
    failure = FailureLog(case["stage"], case["log"])
    fix = propose(failure, context)
    assert fix is not None
    assert fix.rule == case["rule"]
    assert fix.evidence in case["log"]
    assert fix == Fix.model_validate({"rule": fix.rule, "evidence": fix.evidence, **case["fix"]})

    repaired = with_fixes(context.spec, (fix,)).model_copy(update={"fixes": (fix,)})
    again = propose(failure, RepairContext(repaired, has_submodules=context.has_submodules))
    assert again is None or changes(again) != changes(fix)


def changes(fix: Fix) -> dict[str, Any]:
    return fix.model_dump(exclude={"rule", "evidence"})


def test_every_rule_has_a_real_log() -> None:
    assert {rule.name for rule in rules()} == {case["rule"] for case in CASES}
    assert len({rule.name for rule in rules()}) == len(rules())


def test_a_rule_either_looks_up_or_proposes() -> None:
    with pytest.raises(ValueError, match="needs either"):
        RepairRule.model_validate({"name": "x", "why": "", "at": ["task"], "patterns": ["x"]})


def test_a_header_is_found_by_its_folder_and_unknown_ones_are_not() -> None:
    found = provider_of(DependencyKind.HEADERS, "gsl/gsl_sf.h")
    assert found is not None
    assert found.apt_packages == ("libgsl-dev",)
    assert provider_of(DependencyKind.HEADERS, "own/thing.h") is None
    eigen = provider_of(DependencyKind.HEADERS, "Eigen/Dense")
    assert eigen is not None
    assert eigen.environment == {"CPATH": "/usr/include/eigen3"}


def test_a_module_is_no_project_unless_it_is_well_known_or_declared() -> None:
    assert requirement_for_module("yaml.loader", {}) == "pyyaml"
    assert requirement_for_module("sklearn", {"scikit-learn": "scikit-learn<1.2"}) == "scikit-learn<1.2"
    assert requirement_for_module("plex", {}) is None
    assert requirement_for_module("rare_thing.sub", {"rare-thing": "rare-thing>=2; python_version>'3'"}) is not None
    assert requirement_for_module("google.protobuf.message", {}) == "protobuf"
