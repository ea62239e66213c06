"""Folders in which benchmarks find what their `setup_cache` made."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from .child import Answer, in_child

if TYPE_CHECKING:
    from . import suite


class CacheFolders:
    """Folders of `setup_cache`, each filled once for all benchmarks that share it."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[str, Answer]] = {}

    def fill(self, benchmark: suite.RunnableBenchmark, limit: float) -> tuple[str, Answer]:
        """Folder and outcome of the benchmark's `setup_cache`, which may take *limit* seconds; `` without one."""
        key = benchmark.setup_cache_key
        if key is None:
            return "", {"outcome": "ran"}
        if key not in self._made:
            folder = tempfile.mkdtemp(prefix="fc-cache-")

            def fill() -> Answer:
                _fill(benchmark, folder)
                return {"outcome": "ran"}

            self._made[key] = folder, in_child(fill, limit)
        return self._made[key]


def _fill(benchmark: suite.RunnableBenchmark, folder: str) -> None:
    """Run `setup_cache` in *folder* and pickle its result there."""
    os.chdir(folder)
    import pickle

    cache = benchmark.do_setup_cache()
    with open("cache.pickle", "wb") as file:
        pickle.dump(cache, file)
