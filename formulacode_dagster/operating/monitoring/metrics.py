"""The state of the platform for Prometheus; requires the extra `telemetry`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from formulacode_dagster.models.errors import ConfigurationError

from .operations import Operations

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """A scrape is no news."""


class Figures:
    """Collects the figures at each scrape."""

    def __init__(self, look: Callable[[], Operations]) -> None:
        self._look = look

    def collect(self) -> Iterable[Metric]:
        """Every figure, as prometheus_client asks for them."""
        from prometheus_client.core import GaugeMetricFamily

        now = self._look()

        def gauge(name: str, meaning: str, labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"formulacode_{name}", meaning, labels=labels)

        runs = gauge("runs", "runs of Dagster; failed: within a day", ("state",))
        for state, count in now.runs:
            runs.add_metric([state], count)
        items = gauge("items", "items of all months and stages, as their last try ended", ("state",))
        for state, count in now.items.items():
            items.add_metric([state], count)
        free = gauge("items_free", "free items of shared stages", ("stage", "month"))
        for queue in now.queues:
            free.add_metric([queue.stage.value, queue.month], queue.free)
        used = gauge("used", "usage of a resource", ("what", "unit"))
        limit = gauge("limit", "how much of it may be used", ("what", "unit"))
        for use in (*now.budgets, *now.disks):
            used.add_metric([use.what, use.unit], use.used)
            if use.limit is not None:
                limit.add_metric([use.what, use.unit], use.limit)
        yield from (runs, items, free, used, limit)
        for name, meaning, value in (
            ("mirrors", "mirrors on this machine", now.mirrors),
            ("mirrors_unused_days", "since the mirror longest unused was used", now.mirrors_unused_days),
            ("backup_hours", "since the newest backup", now.backup_hours),
        ):
            if value is not None:
                only = gauge(name, meaning)
                only.add_metric([], value)
                yield only


def metrics_server(host: str, port: int, look: Callable[[], Operations]) -> WSGIServer:
    """Return a server that answers with the result of *look*; raises ConfigurationError if it cannot start."""
    try:
        from prometheus_client import CollectorRegistry, make_wsgi_app
    except ImportError as error:
        raise ConfigurationError(
            "prometheus_client is not installed", remedy="Install formulacode-dagster[telemetry]"
        ) from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures(look))
    application: Any = make_wsgi_app(registry)
    try:
        return make_server(host, port, application, handler_class=_Quiet)
    except (OSError, OverflowError) as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}",
            why=str(error),
            remedy="Use another --port, or stop the process that has it",
        ) from error
