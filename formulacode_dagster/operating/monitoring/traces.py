"""Spans of stages and items for OpenTelemetry, by the extra `telemetry`. Nothing of it is imported unless it is set."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.runner.progress import ProgressListener

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

NAME = "formulacode"
FLUSH_MS = 5_000
_NANOSECONDS = 1_000_000_000


class Traces(ProgressListener):
    """Forwards everything to *listener*, and exports a span for each stage, with child spans for its items."""

    def __init__(self, listener: ProgressListener, tracer: Tracer, run_id: str) -> None:
        self._listener, self._tracer, self._run_id = listener, tracer, run_id
        self._stage: Span | None = None

    def stage_started(self, stage: Stage, month: str, pending: int, already_done: int) -> None:
        """Hand on, and begin the stage's span."""
        self._listener.stage_started(stage, month, pending, already_done)
        attributes: dict[str, str | int] = {
            "formulacode.run": self._run_id,
            "formulacode.month": month,
            "formulacode.pending": pending,
        }
        self._stage = self._tracer.start_span(stage.value, attributes=attributes)

    def item_finished(self, stage: Stage, item: str, state: ItemState, reason: str, seconds: float) -> None:
        """Forward, and export the item's span."""
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        self._listener.item_finished(stage, item, state, reason, seconds)
        now = time.time_ns()
        span = self._tracer.start_span(
            f"{stage.value} item",
            context=set_span_in_context(self._stage) if self._stage is not None else None,
            attributes={
                "formulacode.run": self._run_id,
                "formulacode.item": item,
                "formulacode.state": state.value,
                "formulacode.reason": reason,
            },
            start_time=now - round(seconds * _NANOSECONDS),
        )
        if state is ItemState.FAILED:
            span.set_status(Status(StatusCode.ERROR, reason))
        span.end(now)

    def note(self, stage: Stage, text: str) -> None:
        """Hand on."""
        self._listener.note(stage, text)

    def waiting(self, stage: Stage, reason: str, seconds: float) -> None:
        """Hand on."""
        self._listener.waiting(stage, reason, seconds)

    def warn(self, stage: Stage, text: str) -> None:
        """Hand on."""
        self._listener.warn(stage, text)

    def stage_finished(self, stage: Stage) -> None:
        """Hand on, and end the stage's span."""
        self._listener.stage_finished(stage)
        if self._stage is not None:
            self._stage.end()
            self._stage = None


@contextmanager
def traces(
    listener: ProgressListener, run_id: str, endpoint: str, exporter: SpanExporter | None = None
) -> Iterator[ProgressListener]:
    """*listener*, with spans sent to *endpoint* (OTLP over HTTP); a collector that is dead costs spans, nothing else.

    Raises ConfigurationError if the extra is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigurationError(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed",
            remedy="Install formulacode-dagster[telemetry], or leave the setting empty",
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": NAME}), shutdown_on_exit=False)
    exporter = exporter or OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=FLUSH_MS / 1000)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        yield Traces(listener, provider.get_tracer(NAME), run_id)
    finally:
        provider.force_flush(FLUSH_MS)
        provider.shutdown()
