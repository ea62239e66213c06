from __future__ import annotations

from datetime import UTC, datetime, timedelta

from formulacode_dagster.building.images.recipes import Declared, context_of, declared_by, provenance_of, recipes_for
from formulacode_dagster.models.attempt import Rung
from formulacode_dagster.models.recipe import ContextOrigin, Fix, StoredContext
from tests.formulacode_dagster.building.images.repairs.failing import make_environment, make_task
from tests.records import make_image, make_merged, make_pull_request, make_spec

MOMENT = datetime(2026, 2, 3, tzinfo=UTC)
GSL = Fix(rule="missing_header", evidence="gsl/gsl_math.h", apt_packages=("libgsl-dev",))
FFI = Fix(rule="missing_header", evidence="ffi.h", apt_packages=("libffi-dev",))
HERE = Declared(MOMENT, ("cython", "numpy"), {"setup.py": "1"})


def make_context(sha: str, *fixes: Fix, days: float = 0, held: bool = True, **fields: object) -> StoredContext:
    moment = MOMENT + timedelta(days=days)
    given = {
        "repository": "a/b",
        "number": 5,
        "merged_at": moment,
        "provenance": ContextOrigin.RULES,
        "created_at": moment,
        "held_at": moment if held else None,
        "requirements": HERE.requirements,
        "build_files": HERE.build_files,
        **fields,
    }
    return StoredContext.of(repository_id=7, base_sha=sha * 40, fixes=fixes, **given)


def test_the_recipe_of_this_commit_comes_first_and_the_newest_of_them() -> None:
    contexts = [make_context("a", GSL, days=-9), make_context("a", FFI, days=-2), make_context("b", GSL, days=-1)]
    recipes = recipes_for(contexts, "a" * 40, HERE)
    assert [(recipe.rung, recipe.fixes) for recipe in recipes] == [(Rung.STORED, (FFI,)), (Rung.NEAREST, (GSL,))]


def test_neighbours_are_near_by_what_they_declare_and_then_by_date() -> None:
    other_files = make_context("b", FFI, days=1, build_files={"setup.py": "2"})
    later = make_context("c", GSL, days=30)
    assert [recipe.fixes for recipe in recipes_for([other_files, later], "a" * 40, HERE)] == [(GSL,), (FFI,)]
    other_needs = make_context("c", GSL, days=0, requirements=("numpy", "scipy"))
    assert [recipe.fixes for recipe in recipes_for([other_files, other_needs], "a" * 40, HERE)] == [(FFI,), (GSL,)]
    nearer = make_context("d", FFI, days=-3)
    assert [recipe.fixes for recipe in recipes_for([later, nearer], "a" * 40, HERE)] == [(FFI,), (GSL,)]


def test_what_a_neighbour_was_built_without_is_first_tried_without() -> None:
    assert recipes_for([make_context("b", days=1), make_context("c", GSL, days=2)], "a" * 40, HERE) == ()
    recipes = recipes_for([make_context("b", GSL, days=1), make_context("c", days=2)], "a" * 40, HERE)
    assert [recipe.fixes for recipe in recipes] == [(GSL,)]


def test_a_failed_neighbour_is_no_recipe_and_an_imported_one_is() -> None:
    assert recipes_for([make_context("b", GSL, held=False)], "a" * 40, HERE) == ()
    (recipe,) = recipes_for([make_context("a", GSL, held=False)], "a" * 40, HERE)
    assert recipe.rung is Rung.STORED


def test_the_same_recipe_is_tried_once_and_there_are_three_at_most() -> None:
    seen_elsewhere = GSL.model_copy(update={"evidence": "another line"})
    contexts = [make_context("b", GSL, days=1), make_context("c", seen_elsewhere, days=2)]
    assert len(recipes_for(contexts, "a" * 40, HERE)) == 1
    packages = [Fix(rule="r", evidence="", apt_packages=(f"lib{number}",)) for number in range(5)]
    many = [make_context("bcdef"[number], fix, days=number) for number, fix in enumerate(packages)]
    assert [recipe.fixes for recipe in recipes_for(many, "a" * 40, HERE)] == [(fix,) for fix in packages[:3]]


class OneProject:
    """A repository with two build files, one of them in a folder that is no package."""

    def list(self, commit: str, folder: str = "") -> list[str]:
        return ["doc/setup.py", "package/a.py", "setup.py"]

    def read(self, commit: str, path: str) -> bytes | None:
        return path.encode()

    def later(self, commit: str, *patterns: str) -> tuple[str, ...]:
        return ()


def test_an_image_leaves_a_context_with_declarations_and_origin() -> None:
    pr = make_pull_request(make_merged(month="2026-02", repository_id=7, repository="a/b", number=5))
    declared = declared_by(OneProject(), pr, make_environment())
    assert set(declared.build_files) == {"setup.py", "asv.conf.json"}
    agents = Fix(rule="agent:codex", evidence="", requirements=("setuptools<81",))
    image = make_image(repository_id=7, number=5, spec=make_spec(fixes=(GSL, agents)))
    context = context_of(image, make_task(), declared)
    assert (context.provenance, context.made_by) == (ContextOrigin.AGENT, "missing_header, agent:codex")
    assert (context.fixes, context.digest) == ((GSL, agents), image.digest)
    assert context.base_sha == pr.change.base_sha
    assert provenance_of((GSL,)) is ContextOrigin.RULES
    assert provenance_of(()) is ContextOrigin.DECLARED
    assert declared.distance(context)[:2] == (0, 0.0)


def test_an_id_follows_from_what_is_built_and_not_from_what_a_log_said() -> None:
    seen_elsewhere = GSL.model_copy(update={"evidence": "another line"})
    assert make_context("a", GSL).context_id == make_context("a", seen_elsewhere, days=4).context_id
    assert (
        len({make_context("a", GSL).context_id, make_context("b", GSL).context_id, make_context("a").context_id}) == 3
    )
