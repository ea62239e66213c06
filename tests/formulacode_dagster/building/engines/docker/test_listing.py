"""A daemon that cannot list processes: no code is at fault."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import docker.errors
import pytest

from formulacode_dagster.building.engines.docker.session import DockerSession
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from tests.support.images import LIMITS


@pytest.mark.parametrize(
    ("said", "error", "match"),
    [
        ('exec: "ps": executable file not found in $PATH', OutsideSystemError, r"Install ps \(procps\)"),
        ("container 1 is not running", ItemFailure, "the container ended under make"),
    ],
)
def test_a_daemon_without_ps_stops_the_stage_an_ended_container_its_item(
    said: str, error: type[Exception], match: str
) -> None:
    def top() -> dict[str, object]:
        raise docker.errors.APIError("500 Server Error", explanation=said)

    daemon = SimpleNamespace(watched=lambda _: nullcontext())
    session = DockerSession(daemon, SimpleNamespace(top=top), LIMITS)  # type: ignore[arg-type]  # only listed
    with pytest.raises(error, match=match):
        session._settle(["make"], Completed(0, b"", b"", 0.1))
