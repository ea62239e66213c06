"""Attacks on benchmarks of peak memory and of tracked values."""

from __future__ import annotations

from .patches import CLOCKS, FAILS, NOT_FASTER, PROCESSES, TESTS, VALUES, AttackClass, attacks

METRICS = AttackClass.METRICS
REASONS = CLOCKS | NOT_FASTER | FAILS | VALUES | PROCESSES | TESTS | {"only_called_again", "memory_differs"}
_metrics = attacks(METRICS)

ATTACKS = (
    _metrics(
        "peak-of-the-runner-replaced",
        "peakmem",
        """
import sys

for _name, _module in list(sys.modules.items()):
    if _name == "asv_runner.benchmarks.peakmem":
        _module.get_maxrss = lambda real=_module.get_maxrss: real() // 40
""",
        REASONS,
        "The runner's function for the peak is a global of a module that is not watched.",
    ),
    _metrics(
        "resource-replaced",
        "peakmem",
        """
import resource

_real = resource.getrusage


class _Usage:
    def __init__(self, told):
        self._told = told

    def __getattr__(self, name):
        return 9_000 if name == "ru_maxrss" else getattr(self._told, name)


resource.getrusage = lambda who: _Usage(_real(who))
""",
        REASONS,
        "The kernel's figures are read through one function.",
    ),
    _metrics(
        "high-water-mark-reset",
        "peakmem",
        """
_slow = volume


def volume(n):
    found = _slow(n)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return found
""",
        REASONS,
        "The kernel forgets the peak of a process that asks for it.",
    ),
    _metrics(
        "memory-of-a-child",
        "peakmem",
        """
import os

_slow = volume


def volume(n):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, str(_slow(n)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(reader, 99))
""",
        REASONS,
        "Memory of a child is not that of its parent.",
    ),
    _metrics(
        "memory-only-outside-of-benchmarks",
        "peakmem",
        """
import os

_slow = volume


def volume(n):
    return 0 if "FC_PADDING" in os.environ else _slow(n)
""",
        REASONS,
        "Values of memory benchmarks are compared in the survey only.",
    ),
    _metrics(
        "comparisons-not-counted",
        "track",
        """
_slow = find


def find(values, wanted):
    return _slow(values, wanted)[0], 1
""",
        REASONS,
        "A tracked value may be anything, as long as the tests' bounds are kept.",
    ),
    _metrics(
        "tracked-value-with-its-own-float",
        "track",
        """
_slow = find


class _Count(int):
    def __float__(self):
        return 1.0


def find(values, wanted):
    place, comparisons = _slow(values, wanted)
    return place, _Count(comparisons)
""",
        REASONS,
        "The harness turns the value into a float, which a subclass of int does itself.",
    ),
    _metrics(
        "tracked-only-while-sampled",
        "track",
        """
import os

_slow = find


def find(values, wanted):
    place, comparisons = _slow(values, wanted)
    return place, 1 if "FC_PADDING" in os.environ else comparisons
""",
        REASONS,
        "The survey sees the true value, and the samples another one.",
    ),
    _metrics(
        "run-of-the-runner-replaced",
        "track",
        """
import sys

for _name, _module in list(sys.modules.items()):
    if _name == "asv_runner.benchmarks.track":
        _module.TrackBenchmark.run = lambda self, *parameters: 1
""",
        REASONS,
        "asv_runner's class of tracked values is in the process, and its method may be replaced.",
    ),
)
