from __future__ import annotations

import hashlib
import json

import pytest

from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.measurement.recipe import Recipe
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Source, Unit
from formulacode_dagster.suites.overlays import BASE_SUITE, SuiteFiles
from tests.records import make_image

PLAN = SamplingPlan(max_seconds=240)
LAID = SuiteFiles(
    "2 of its own tests", {"benchmarks/b.py": b"\xff\r\n", "tests/a.py": b""}, Source.OWN_TESTS, "c" * 40, ("a: b",)
)


def recipe_of(suite: SuiteFiles) -> Recipe:
    return Recipe.of(
        make_image(),
        patch=b"diff",
        suite=suite,
        benchmarks=("bench.time_a(1)",),
        plan=PLAN,
        rule=PLAN.rule(Unit.BUILD),
        limits=ResourceLimits(benchmark_seconds=5),
    )


@pytest.mark.parametrize("suite", [BASE_SUITE, LAID], ids=["the checkout's own", "laid"])
def test_a_recipe_gives_back_all_that_measuring_took(suite: SuiteFiles) -> None:
    recipe = Recipe.parse(recipe_of(suite).to_json(), "a__b-1")
    assert recipe.suite_files == suite
    assert recipe.provenance == suite.provenance
    assert (recipe.plan, recipe.rule, recipe.limits.benchmark_seconds) == (PLAN, PLAN.rule(Unit.BUILD), 5)
    assert (recipe.spec, recipe.image_digest) == (make_image().spec, make_image().digest)
    assert recipe.patch_sha256 == hashlib.sha256(b"diff").hexdigest()
    assert recipe.benchmarks == ("bench.time_a(1)",)


def test_equal_recipes_are_equal_texts_however_their_files_came() -> None:
    turned = SuiteFiles(LAID.name, dict(reversed((LAID.files or {}).items())), LAID.source, LAID.commit, LAID.adapted)
    assert recipe_of(turned).to_json() == recipe_of(LAID).to_json()


@pytest.mark.parametrize("change", [{"version": 2}, {"benchmarks": []}, {"a_later_field": 1}])
def test_a_recipe_of_another_platform_is_unreadable_and_says_whose_it_is(change: dict[str, object]) -> None:
    text = json.dumps({**json.loads(recipe_of(LAID).to_json()), **change})
    with pytest.raises(ItemFailure, match="the recipe of a__b-1 cannot be read") as caught:
        Recipe.parse(text, "a__b-1")
    assert caught.value.kind == "unreadable"
