"""Describes benchmarks as asv does next to its results: parameters, source, version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import suite
from .survey import import_all

if TYPE_CHECKING:
    from .answers import Emit


def describe(request: dict[str, Any], emit: Emit) -> None:
    """Describe every benchmark; modules of `skip` are not imported, nothing is run."""
    for module in import_all(request["root"], frozenset(request["skip"]), float(request["import_limit"]), emit):
        for _, _, benchmark in suite.benchmarks_of(module, lambda _name, _message: None):
            emit(
                event="description",
                name=benchmark.name,
                metric=suite.metric_of(benchmark),
                unit=str(benchmark.unit),
                parameters=[list(values) for values in benchmark.params],
                parameter_names=[str(name) for name in benchmark.param_names],
                code=benchmark.code,
                version=benchmark.version,
                timeout=float(benchmark.timeout or 0),
            )
