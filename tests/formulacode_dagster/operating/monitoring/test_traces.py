"""Spans of stages and items, as a collector gets them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.monitoring.traces import traces
from formulacode_dagster.operating.runner.progress import ProgressListener
from resources.watching import traced

STAGE = Stage.IMAGES


class Collector:
    """Requests to a collector on localhost."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.headers: list[str | None] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                import gzip

                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers["content-encoding"] == "gzip":
                    body = gzip.decompress(body)
                assert self.path == "/v1/traces"
                collector.headers.append(self.headers["authorization"])
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    collector.spans += [span for scope in resource.scope_spans for span in scope.spans]
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    with collector.server as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield collector
        server.shutdown()
        thread.join()


def attributes(span: Span) -> dict[str, object]:
    return {it.key: it.value.string_value or it.value.int_value for it in span.attributes}


def test_a_stage_is_a_span_and_each_item_one_below_it(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t0ken")
    heard: list[str] = []

    class Listening(ProgressListener):
        def item_finished(self, stage: Stage, item: str, state: ItemState, reason: str, seconds: float) -> None:
            heard.append(item)

    with traced(Listening(), "run-1") as to:
        to.stage_started(STAGE, "2026-02", 2, 0)
        to.item_finished(STAGE, "a/b#1", ItemState.DONE, "", 1.5)
        to.item_finished(STAGE, "a/b#2", ItemState.FAILED, "build", 0.5)
        to.stage_finished(STAGE)
    assert heard == ["a/b#1", "a/b#2"]
    assert set(collector.headers) == {"Bearer t0ken"}
    one, two, stage = sorted(collector.spans, key=lambda span: (span.name == "images", span.end_time_unix_nano))
    assert (stage.name, attributes(stage)) == (
        "images",
        {"formulacode.run": "run-1", "formulacode.month": "2026-02", "formulacode.pending": 2},
    )
    assert one.parent_span_id == two.parent_span_id == stage.span_id
    assert one.end_time_unix_nano - one.start_time_unix_nano == 1_500_000_000
    assert (attributes(two)["formulacode.item"], attributes(two)["formulacode.reason"]) == ("a/b#2", "build")
    assert (one.status.code, two.status.code, two.status.message) == (0, 2, "build")


# the exporter reports the dead collector in a separate log
def test_a_dead_collector_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formulacode_dagster.operating.monitoring.traces.FLUSH_MS", 50)
    with traces(ProgressListener(), "run-1", "http://127.0.0.1:9") as to:
        to.stage_started(STAGE, "2026-02", 1, 0)
        to.item_finished(STAGE, "a/b#1", ItemState.DONE, "", 1.0)
        to.stage_finished(STAGE)


def test_without_a_collector_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    listener = ProgressListener()
    with traced(listener, "run-1") as to:
        assert to is listener


def test_a_collector_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with (
        pytest.raises(ConfigurationError, match=r"Install formulacode-dagster\[telemetry\]"),
        traced(ProgressListener(), "run-1"),
    ):
        pass
