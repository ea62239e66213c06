"""Import filter: a module shared by two suites, with everything that it mentions, runs only once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from .relevance import BenchmarkCandidate

_WORD = re.compile(rb"\w+")


def still_ruled_out(
    candidates: Sequence[BenchmarkCandidate],
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    *,
    benchmark_dir: str,
) -> frozenset[str]:
    """Names of those *candidates*, surveyed in the files *before*, that need not run in the files *after*.

    These are benchmarks that did not execute the change then, in a module equal in both suites.
    """
    same = same_modules(before, after, benchmark_dir=benchmark_dir)
    return frozenset(
        candidate.name
        for candidate in candidates
        if candidate.executes_change is False and all(each.module in same for each in candidate.by_arm.values())
    )


def same_modules(before: Mapping[str, bytes], after: Mapping[str, bytes], *, benchmark_dir: str) -> frozenset[str]:
    """Names, below *benchmark_dir*, of the modules that do the same in the files *before* and *after*.

    A module of equal content counts as different if it mentions a file that differs, directly or indirectly; imports
    are not analysed. If an `__init__.py` differs, all do.
    """
    differing = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    if any(PurePosixPath(path).name == "__init__.py" for path in differing):
        return frozenset()
    same = {path: set(_WORD.findall(content)) for path, content in after.items() if path not in differing}
    new = differing
    while new:
        names = {word for path in new for word in _WORD.findall(os.fsencode(PurePosixPath(path).stem))}
        new = {path for path, words in same.items() if words & names}
        for path in new:
            del same[path]
    folder = PurePosixPath(benchmark_dir.strip("/"))
    return frozenset(
        ".".join(place.relative_to(folder).with_suffix("").parts)
        for place in map(PurePosixPath, same)
        if place.suffix == ".py" and place.is_relative_to(folder)
    )
