from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from formulacode_dagster.building.engines.image_store import Inventory, Layer, StoredImage
from formulacode_dagster.building.housekeeping.retention import RemovalReason, plan_removals
from formulacode_dagster.models.image import ImageNeed

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def image(name: str, *layers: tuple[str, int], days: float = 10, named: bool = True) -> StoredImage:
    made_at = NOW - timedelta(days=days)
    names = (f"formulacode/{name}",) if named else ()
    return StoredImage(f"sha256:{name}", names, made_at, tuple(Layer(*layer) for layer in layers))


def need(name: str, *, days: float = 0, unfinished: bool = False, only_copy: bool = False) -> dict[str, ImageNeed]:
    return {
        f"sha256:{name}": ImageNeed(
            item="a/b#1",
            month="2026-01",
            digest=f"sha256:{name}",
            last=NOW - timedelta(days=days),
            unfinished=unfinished,
            only_copy=only_copy,
        )
    }


BASE, REPO = ("base", 500), ("repo", 100)
TIERS = (
    image("base", BASE, days=90),
    image("repo", BASE, REPO, days=60),
    image("old", BASE, REPO, ("old", 30), days=50),
    image("new", BASE, REPO, ("new", 40), days=5),
)


def test_within_the_budget_everything_stays() -> None:
    plan = plan_removals(Inventory(TIERS), {}, budget=670, now=NOW)
    assert (plan.removals, plan.bytes_before) == ((), 670)
    assert plan_removals(Inventory(TIERS), {}, budget=None, now=NOW).removals == ()


def test_the_least_recently_needed_go_first_and_no_more_than_necessary() -> None:
    plan = plan_removals(Inventory(TIERS), {}, budget=650, now=NOW)
    assert [(str(removal.image), removal.reason, removal.bytes) for removal in plan.removals] == [
        ("formulacode/old", RemovalReason.BUDGET, 30)
    ]
    used = plan_removals(Inventory(TIERS), need("old", days=1), budget=650, now=NOW)
    assert [str(removal.image) for removal in used.removals] == ["formulacode/new"], (
        "a stage needed the old one yesterday"
    )


def test_a_tier_goes_after_all_that_lies_on_it() -> None:
    plan = plan_removals(Inventory(TIERS), {}, budget=0, now=NOW)
    assert [str(removal.image) for removal in plan.removals] == [
        f"formulacode/{name}" for name in ("old", "new", "repo", "base")
    ]
    assert [removal.bytes for removal in plan.removals] == [30, 40, 100, 500]


def test_an_unfinished_months_images_stay_with_their_layers() -> None:
    plan = plan_removals(Inventory(TIERS), need("old", days=50, unfinished=True), budget=0, now=NOW)
    assert [str(removal.image) for removal in plan.removals] == ["formulacode/new"]
    assert plan.needed_bytes == 630


def test_a_task_that_is_in_no_registry_goes_last() -> None:
    plan = plan_removals(Inventory(TIERS), need("old", days=50, only_copy=True), budget=640, now=NOW)
    assert [str(removal.image) for removal in plan.removals] == ["formulacode/new"]


def test_an_image_that_may_be_in_the_making_stays() -> None:
    fresh = image("fresh", BASE, ("fresh", 10), days=0.01)
    assert plan_removals(Inventory((fresh,)), {}, budget=0, now=NOW).removals == ()


def test_layers_below_foreign_images_are_neither_counted_nor_freed() -> None:
    plan = plan_removals(Inventory(TIERS, frozenset({"base"})), {}, budget=0, now=NOW)
    assert plan.bytes_before == 170
    assert [removal.bytes for removal in plan.removals] == [30, 40, 100], "the base stays: it would free nothing"


def test_a_dangling_image_goes_after_a_day_unless_a_month_needs_it() -> None:
    dangling = (image("lost", ("lost", 7), days=2, named=False), image("just", ("just", 8), days=0.5, named=False))
    plan = plan_removals(Inventory(dangling), {}, budget=None, now=NOW)
    assert [(str(removal.image), removal.reason) for removal in plan.removals] == [
        ("sha256:lost", RemovalReason.DANGLING)
    ]
    kept = plan_removals(Inventory(dangling), need("lost", unfinished=True), budget=None, now=NOW)
    assert kept.removals == ()


def test_a_second_build_that_a_killed_rebuild_left_goes_after_a_day() -> None:
    left = (image("task-again", ("again", 7), days=2), image("new-again", ("fresh", 8), days=0.5))
    plan = plan_removals(Inventory(left), {}, budget=None, now=NOW)
    assert [(str(removal.image), removal.reason) for removal in plan.removals] == [
        ("formulacode/task-again", RemovalReason.REBUILD)
    ]


def test_two_images_of_the_same_layers_free_their_bytes_with_the_second() -> None:
    twins = (image("one", ("same", 9), days=3), image("two", ("same", 9), days=2))
    plan = plan_removals(Inventory(twins), {}, budget=0, now=NOW)
    assert [removal.bytes for removal in plan.removals] == [0, 9]


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=4), st.integers(0, 9), st.booleans()), max_size=9
    ),
    st.integers(0, 300),
)
def test_for_any_stock_the_books_balance_and_no_needed_layer_is_lost(
    drawn: list[tuple[list[int], int, bool]], budget: int
) -> None:
    stocked: list[StoredImage] = []
    needs: dict[str, ImageNeed] = {}
    for index, (path, days, unfinished) in enumerate(drawn):
        # a layer's id names all below it, as Docker's chain ids do
        layers = tuple((".".join(map(str, path[: end + 1])), 10 + path[end]) for end in range(len(path)))
        stocked.append(image(str(index), *layers, days=days))
        needs |= need(str(index), days=days / 2, unfinished=unfinished)
    plan = plan_removals(Inventory(tuple(stocked)), needs, budget=budget, now=NOW)
    gone = {removal.image for removal in plan.removals}
    left = {layer for image in stocked if image not in gone for layer in image.layers}
    bytes_after = plan.bytes_before - sum(removal.bytes for removal in plan.removals)
    assert bytes_after == sum(layer.bytes for layer in left)
    assert not [image for image in gone if needs[image.digest].unfinished]
    if bytes_after > budget:
        ours = {
            layer
            for image in stocked
            if needs[image.digest].unfinished or NOW - image.made_at < timedelta(hours=2)
            for layer in image.layers
        }
        assert left == ours, "over the budget, only what must stay is left"
