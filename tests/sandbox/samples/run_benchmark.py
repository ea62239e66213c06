"""Prints the seconds of one call of one benchmark, the best of several: `run_benchmark.py SUITE_FOLDER NAME`.

A program of its own, so that base and oracle never share a process. Parameters and caches are used as asv uses them.
"""

import importlib
import itertools
import sys
import time
from pathlib import Path

REPEATS = 7


def main(suite: Path, name: str) -> None:
    module, owner, method = name.rsplit(".", 2)
    sys.path.insert(0, str(suite.parent))
    kind = getattr(importlib.import_module(f"{suite.name}.{module}"), owner)
    values = getattr(kind, "params", [])
    combinations = list(itertools.product(*(values if values and isinstance(values[0], list) else [values])))
    total = 0.0
    for combination in combinations if values else [()]:
        instance = kind()
        cache = (instance.setup_cache(),) if hasattr(instance, "setup_cache") else ()
        if hasattr(instance, "setup"):
            instance.setup(*cache, *combination)
        seconds = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            getattr(instance, method)(*cache, *combination)
            seconds.append(time.perf_counter() - start)
        if hasattr(instance, "teardown"):
            instance.teardown(*cache, *combination)
        total += min(seconds)
    sys.stdout.write(f"{total}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
