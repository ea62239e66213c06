"""Which of many slow combinations one run takes: by a seed that CI varies and prints, so that all have their turn."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

SEED = int(os.environ.get("FC_TEST_SEED", "0"))
TAKES_ALL = os.environ.get("FC_TEST_ALL", "") not in ("", "0")


def pytest_report_header() -> str:
    """Say how a failure is met again."""
    if TAKES_ALL:
        return "FC_TEST_ALL: every slow combination"
    return f"FC_TEST_SEED={SEED}: slow combinations are sampled, FC_TEST_ALL=1 takes them all"


def sampled(
    cases: Iterable[T], *, most: int, of: object = "", seed: int = SEED, takes_all: bool = TAKES_ALL
) -> list[T]:
    """At most *most* of *cases*, in their order, or all of them; what is *of* something else is drawn anew."""
    known = list(cases)
    if takes_all or len(known) <= most:
        return known
    draw = random.Random(f"{seed} {of}")  # noqa: S311 - a choice, not a secret
    return [known[place] for place in sorted(draw.sample(range(len(known)), most))]
