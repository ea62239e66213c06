"""Other inputs for the benchmarks of a task, drawn while grading: results for the published ones are then useless.

Integers of the benchmarks' modules become a little larger, equal ones alike, and seeds become others. Modules that do
not run with that are tried with a smaller change.
"""

from __future__ import annotations

import io
import math
import re
import tokenize
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import random

LEAST, MOST = 16, 10**9
"""Integers between these bounds are sizes and lengths, more often than not."""
LEAST_GROWTH, MOST_GROWTH = 0.015, 0.06
SEEDED = {"seed", "RandomState", "default_rng", "Random", "manual_seed", "PRNGKey", "random_state"}
"""Functions and arguments that take a seed."""
OPTIONS = {
    "max_time",
    "min_run_count",
    "number",
    "pretty_name",
    "processes",
    "repeat",
    "rounds",
    "sample_time",
    "timeout",
    "unit",
    "version",
    "warmup_time",
}
"""Attributes by which asv is told how to time. https://asv.readthedocs.io/en/stable/benchmarks.html#attributes"""


ODD, INTEGERS, SEEDS = "odd", "integers", "seeds"
CHANGES = (ODD, INTEGERS, SEEDS)
"""Kinds of changes, the greatest first: integers get the other parity; no bounds of other units change; seeds only."""
BOUNDS = {100, 127, 128, 180, 255, 256, 360}
"""Integers that are often percentages, bounds of bytes or degrees: code may not run with more."""


ROUNDS = 2
"""Rounds with other inputs."""
LEAST_SHARE = 0.5
"""Least share of the gain that they must show."""
NOISE, NOISE_OF_ONE = math.log(1.15), math.log(1.5)
"""Differences of gains, of all benchmarks and of one, that chance makes in so few rounds."""


class Found(NamedTuple):
    """Speed-ups of the agent and of the author with the published inputs, and the logarithms of those with others."""

    speedup: float
    oracle_speedup: float
    gain: float
    oracle_gain: float
    control_gain: float

    def missed(self, name: str, noise: float) -> str:
        """Return how much less than expected is gained with other inputs, in *name*; empty if it is enough.

        Where these show less of the author's gain, they may show less of the agent's.
        """
        share = min(1.0, max(0.0, self.oracle_gain / math.log(self.oracle_speedup))) if self.oracle_speedup > 1 else 0.0
        expected = share * math.log(self.speedup)
        if self.gain >= LEAST_SHARE * expected or expected - self.gain <= noise + abs(self.control_gain):
            return ""
        return f"{name}: {self.speedup:.3g} times as fast, and {math.exp(self.gain):.3g} times with other inputs"


class OtherInputs(NamedTuple):
    """A suite with other inputs."""

    files: dict[str, bytes]
    """Changed modules, by path below the checkout."""
    names: dict[str, str]
    """Name of each benchmark with its new parameters, by its old one."""

    def of(self, task: dict[str, Any]) -> dict[str, Any]:
        """Return *task* with the new names."""
        rule = task["rule"]
        metrics = {self.names[name]: metric for name, metric in rule["benchmark_metrics"].items()}
        rates = [self.names[name] for name in rule["rates"]]
        renamed = {**rule, "benchmark_metrics": metrics, "rates": rates}
        return {**task, "benchmarks": [self.names[name] for name in task["benchmarks"]], "rule": renamed}


class _Drawn:
    """The numbers that replace others, the same for equal ones."""

    def __init__(self, generator: random.Random, change: str) -> None:
        self._generator, self._change = generator, change
        self.sizes: dict[int, int] = {}
        self._seeds: dict[int, int] = {}

    def changes(self, value: int) -> bool:
        """Return True if an integer that is no seed becomes another."""
        if self._change == SEEDS or not LEAST <= value <= MOST:
            return False
        return self._change == ODD or value not in BOUNDS

    def size(self, value: int) -> int:
        if value not in self.sizes:
            grown = max(1, round(value * self._generator.uniform(LEAST_GROWTH, MOST_GROWTH)))
            self.sizes[value] = value + (grown | 1 if self._change == ODD else grown)
        return self.sizes[value]

    def seed(self, value: int) -> int:
        if value not in self._seeds:
            self._seeds[value] = self._generator.randrange(1, 2**31 - 1)
        return self._seeds[value]


def draw(modules: dict[str, bytes], names: list[str], generator: random.Random, change: str) -> OtherInputs | None:
    """Return the *modules* of the benchmarks *names* with other inputs; None if there is nothing to change in them."""
    drawn, files = _Drawn(generator, change), {}
    for path, content in modules.items():
        try:
            changed = _altered(content.decode(), drawn)
        except (UnicodeDecodeError, tokenize.TokenError, SyntaxError):
            continue
        if changed.encode() != content:
            files[path] = changed.encode()
    return OtherInputs(files, {name: _renamed(name, drawn.sizes) for name in names}) if files else None


def _renamed(name: str, sizes: dict[int, int]) -> str:
    """Return *name* with its parameters as they are called after the change."""
    start, bracket, labels = name.partition("(")
    number = r"(?<![\w.'\"])\d+(?![\w.'\"])"
    return start + bracket + re.sub(number, lambda found: str(sizes.get(int(found[0]), int(found[0]))), labels)


def _altered(text: str, drawn: _Drawn) -> str:
    """Return the source *text* with other integers."""
    lines = text.splitlines(keepends=True)
    replaced = []
    line: list[str] = []
    """The tokens of the statement so far."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        digits = token.string.replace("_", "")
        if token.type == tokenize.NUMBER and digits.isdigit():
            value, is_option = int(digits), len(line) > 1 and line[0] in OPTIONS and line[1] == "="
            if len(line) > 1 and line[-2] in SEEDED and line[-1] in ("(", "="):
                replaced.append((token.start, token.end, drawn.seed(value)))
            elif not is_option and drawn.changes(value):
                replaced.append((token.start, token.end, drawn.size(value)))
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            line = []
        elif token.type not in (tokenize.NL, tokenize.COMMENT):
            line.append(token.string)
    for (row, start), (_, end), value in reversed(replaced):
        lines[row - 1] = f"{lines[row - 1][:start]}{value}{lines[row - 1][end:]}"
    return "".join(lines)
