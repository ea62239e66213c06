"""Samples the slow combinations of one run: by a seed that CI varies and prints, so that all have their turn."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")

SEED = int(os.environ.get("FC_TEST_SEED", "0"))
TAKES_ALL = os.environ.get("FC_TEST_ALL", "") not in ("", "0")


TAKES_MINUTES = pytest.mark.variant("what takes minutes", most=1)
"""A complete deployment, and each foreign harness that grades tasks; a month or a UI in a separate home, mostly ended
in the middle; versions other than this machine's.
"""

ENDED_IN_A_DAEMON = pytest.mark.variant("work in a daemon that is ended", most=1)
BUILT_ONCE_MORE = pytest.mark.variant("image that Docker builds once more", most=1)


def run_whole(bench: str) -> pytest.MarkDecorator:
    """Mark a test that runs *bench* from its start to its line of JSON: one of them is run."""
    return pytest.mark.variant("bench that is run whole", most=1, case=bench)


def pytest_report_header() -> str:
    """Say how a failure is met again."""
    if TAKES_ALL:
        return "FC_TEST_ALL: every slow combination"
    return f"FC_TEST_SEED={SEED}: slow combinations are sampled, FC_TEST_ALL=1 takes them all"


@pytest.hookimpl(trylast=True)  # of those that `-k` has left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are marked as variants of one another and were not drawn."""
    undrawn = undrawn_variants(items)
    items[:] = [item for item in items if item not in undrawn]
    config.hook.pytest_deselected(items=undrawn)


def undrawn_variants(
    items: Iterable[pytest.Item], *, seed: int = SEED, takes_all: bool = TAKES_ALL
) -> list[pytest.Item]:
    """Those of *items* beyond the `most` drawn ones of their variants: `@pytest.mark.variant("what of", most=1)`.

    Tests that are marked with the same `case` are drawn together, as those of a module that build on one another. One
    that is a variant of several things is left out by any of them.
    """
    variants: dict[tuple[str, int], dict[object, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        for marker in item.iter_markers("variant"):
            case = marker.kwargs.get("case", id(item))
            variants[marker.args[0], marker.kwargs["most"]][case].append(item)
    undrawn = []
    for (name, most), cases in variants.items():
        drawn = sampled(cases, most=most, of=name, seed=seed, takes_all=takes_all)
        undrawn += [item for case, tests in cases.items() if case not in drawn for item in tests]
    return undrawn


def sampled(
    cases: Iterable[T], *, most: int, of: object = "", seed: int = SEED, takes_all: bool = TAKES_ALL
) -> list[T]:
    """At most *most* of *cases*, in their order, or all of them; another *of* draws separately.

    Seeds that follow one another take turns: as many as that takes draw each case, the next as many in another order.
    """
    known = list(cases)
    if takes_all or len(known) <= most:
        return known
    turns = -(-len(known) // most)
    round_, turn = divmod(seed, turns)
    order = random.Random(f"{round_} {of}")  # noqa: S311 - a choice, not a secret
    places = 2 * order.sample(range(len(known)), len(known))
    return [known[place] for place in sorted(places[turn * most : (turn + 1) * most])]
