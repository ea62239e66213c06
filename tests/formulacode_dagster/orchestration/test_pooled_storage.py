"""Dagster's storage over connections that a process keeps, on a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from sqlalchemy import create_engine, make_url, text

from formulacode_dagster.orchestration.pooled_storage import PooledPostgresStorage
from tests.support.waiting import until

POOLED = {"module": PooledPostgresStorage.__module__, "class": PooledPostgresStorage.__name__}
CONNECTIONS = text(
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)
STATEMENTS = 20


@pytest.fixture
def dagsters_url(empty_database_url: str) -> str:
    return make_url(empty_database_url).set(drivername="postgresql+psycopg2").render_as_string(hide_password=False)


@pytest.fixture
def connections(empty_database_url: str) -> Iterator[Any]:
    """Says which processes of the server serve others than this one."""
    engine = create_engine(empty_database_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield lambda: sorted(connection.execute(CONNECTIONS).scalars())
    engine.dispose()


def instance_over(folder: Path, storage: Mapping[str, object]) -> dg.DagsterInstance:
    folder.mkdir(exist_ok=True)
    (folder / "dagster.yaml").write_text(yaml.safe_dump({"storage": storage, "telemetry": {"enabled": False}}))
    return dg.DagsterInstance.from_config(str(folder))


@pytest.mark.slow
def test_instances_of_a_process_share_connections(dagsters_url: str, connections: Any, tmp_path: Path) -> None:
    pooled = {"custom": {**POOLED, "config": {"postgres_url": dagsters_url}}}
    with instance_over(tmp_path / "pooled", pooled) as instance:
        run = instance.create_run_for_job(_job())
        kept = until(lambda: only(connections()))
        assert all(instance.has_run(run.run_id) for _ in range(STATEMENTS))
    with instance_over(tmp_path / "pooled", pooled) as instance:
        assert instance.all_logs(run.run_id) == []
        assert until(lambda: only(connections())) == kept
    with instance_over(tmp_path / "own", {"postgres": {"postgres_url": dagsters_url}}) as instance:
        assert instance.has_run(run.run_id)
        assert until(lambda: only(connections())) == kept, "what Dagster opens by itself, it closes"


def test_a_connection_that_the_server_ended_costs_nothing(dagsters_url: str, connections: Any, tmp_path: Path) -> None:
    with instance_over(tmp_path, {"custom": {**POOLED, "config": {"postgres_url": dagsters_url}}}) as instance:
        run = instance.create_run_for_job(_job())
        ended = until(lambda: only(connections()))
        engine = create_engine(dagsters_url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            assert connection.execute(text(f"SELECT pg_terminate_backend({ended}, 5000)")).scalar()
        engine.dispose()
        assert instance.report_engine_event("still here", run)
        assert [entry.message for entry in instance.all_logs(run.run_id)] == ["still here"]
        assert ended not in connections()


def only(processes: Sequence[int]) -> int:
    """The one that there is; 0 while those that were left are not gone yet."""
    return processes[0] if len(processes) == 1 else 0


def _job() -> dg.JobDefinition:
    @dg.op
    def nothing() -> None: ...

    @dg.job
    def empty() -> None:
        nothing()

    return empty
