"""A code server that executes nothing, and reports its given runs: queried by Dagster's own client."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
from dagster._grpc.__generated__ import dagster_api_pb2 as api
from dagster._grpc.__generated__.dagster_api_pb2_grpc import DagsterApiServicer, add_DagsterApiServicer_to_server
from dagster._grpc.types import GetCurrentRunsResult, ShutdownServerResult
from dagster._serdes import serialize_value


class CodeServer(DagsterApiServicer):
    """Its current runs, and whether it was asked to take no more."""

    def __init__(self, *runs: str) -> None:
        self.runs = set(runs)
        self.is_shut = False

    def GetCurrentRuns(self, request: Any, context: Any) -> Any:
        """Called as gRPC calls it; one that is shut ends once it has no runs."""
        if self.is_shut and not self.runs:
            context.abort(grpc.StatusCode.UNAVAILABLE, "it has ended")
        told = GetCurrentRunsResult(current_runs=sorted(self.runs), serializable_error_info=None)
        return api.GetCurrentRunsReply(serialized_current_runs=serialize_value(told))

    def ShutdownServer(self, request: Any, context: Any) -> Any:
        """Called as gRPC calls it."""
        self.is_shut = True
        told = ShutdownServerResult(success=True, serializable_error_info=None)
        return api.ShutdownServerReply(serialized_shutdown_server_result=serialize_value(told))


@contextmanager
def serving(servicer: CodeServer, socket: Path) -> Iterator[None]:
    """At *socket* for the length of a `with` block."""
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        add: Any = add_DagsterApiServicer_to_server
        add(servicer, server)
        assert server.add_insecure_port(f"unix:{socket}") == 1
        server.start()
        try:
            yield
        finally:
            server.stop(None).wait()
