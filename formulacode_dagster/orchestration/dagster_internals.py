"""Every name of Dagster's that is not public, in one place: the only module that may import `dagster._…`.

* Launchers: `RunLauncher` and `CheckRunHealthResult` are what a custom launcher needs, and no public module exports
  them (https://github.com/dagster-io/dagster/issues/5652).
* Code servers: only their gRPC service knows the runs that a server has.
* `InstanceConcurrencyContext`: `pool_waiting` changes how a run waits for a pool, which upstream would do without a
  pause (https://github.com/dagster-io/dagster/pull/20367, closed without a merge).
* `PARTITION_NAME_TAG`: a tag that Dagster sets on runs.
* `dagster dev`: it starts the web server, and has no option for another program.

`tests/formulacode_dagster/orchestration/test_dagster_internals.py` imports each of them from the newest release.
"""

from typing import Any

from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus
from dagster._core.storage.tags import PARTITION_NAME_TAG
from dagster._grpc.client import DagsterGrpcClient
from dagster._grpc.types import GetCurrentRunsResult
from dagster._serdes import deserialize_value

__all__ = [
    "PARTITION_NAME_TAG",
    "CheckRunHealthResult",
    "DagsterGrpcClient",
    "DagsterUserCodeUnreachableError",
    "GetCurrentRunsResult",
    "InstanceConcurrencyContext",
    "LaunchRunContext",
    "RunLauncher",
    "WorkerStatus",
    "dagster_dev",
    "deserialize_value",
]


def dagster_dev() -> Any:
    """Return the module of the command `dagster dev`, which imports all of Dagster's command line."""
    from dagster._cli import dev

    return dev
