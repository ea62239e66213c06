"""Ctrl-C, even twice, and SIGTERM in every kind of stage: it ends at once, in order, and the next run finishes."""

from __future__ import annotations

import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from formulacode_dagster.models.items import ItemState, Stage
from tests.end_to_end.failures.test_kill import (
    HALF_MAY_FAIL,
    MONTH,
    building,
    expected,
    finished,
    in_stage,
    measuring,
    processes_of,
)
from tests.support.sampling import TAKES_MINUTES, sampled

REPOSITORY = "signal-kit/rollwin"
ENDED_SECONDS = 10.0
CTRL_C, POLITE = [signal.SIGINT, signal.SIGINT], [signal.SIGTERM]

pytestmark = [
    pytest.mark.slow,
    TAKES_MINUTES,
    pytest.mark.timeout(900),
]


@dataclass(frozen=True)
class Stop:
    """Where a month is stopped: in what stage, when that has begun, and what hangs meanwhile."""

    stage: Stage
    signals: list[signal.Signals]
    hold: tuple[str, int] | None = None
    silent: tuple[str, ...] = ()
    begun: Callable[[Any], bool] | None = None
    settings: dict[str, str] = field(default_factory=dict)


STOPS = sampled(
    (
        Stop(Stage.REPOSITORIES, CTRL_C, hold=("github", 0)),
        Stop(Stage.PULL_REQUESTS, POLITE, silent=("GITHUB_CLONE_URL",)),
        Stop(Stage.CLASSIFICATIONS, CTRL_C, hold=("model", 2)),
        Stop(Stage.ENVIRONMENTS, POLITE, silent=("UV_DEFAULT_INDEX",)),
        Stop(Stage.IMAGES, CTRL_C, begun=building),
        Stop(Stage.MEASUREMENTS, POLITE, begun=measuring, settings={"FC_SAMPLE_SECONDS": "5"}),
    ),
    most=1,
    of=__name__,
)


@contextmanager
def silent_server() -> Iterator[tuple[str, Callable[[], bool]]]:
    """The address of a server that takes connections and never says a word, and whether anybody came."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        server.settimeout(0.05)
        taken: list[socket.socket] = []

        def visited() -> bool:
            try:
                taken.append(server.accept()[0])
            except TimeoutError:
                return bool(taken)
            return True

        yield f"http://127.0.0.1:{server.getsockname()[1]}", visited
        for connection in taken:
            connection.close()


def test_a_month_stopped_in_every_stage_ends_at_once_and_continues(own_platform) -> None:
    platform = own_platform
    platform.settings |= HALF_MAY_FAIL
    platform.database.migrate()
    before: dict[tuple[Stage, str], object] = {}
    folder = platform.folder_of(REPOSITORY)
    for stop in STOPS:
        asked_at = stop_in(platform, folder, stop)
        assert not processes_of(platform.home)
        now = finished(platform.ledger())
        assert before.items() <= now.items(), f"what was finished is kept in {stop.stage}"
        failed = [entry for entry in platform.ledger().values() if entry.state is ItemState.FAILED]
        assert not [entry for entry in failed if entry.finished_at >= asked_at], f"nothing fails by {stop.stage}'s end"
        assert {(entry.item, (entry.stage, entry.state, entry.reason)) for entry in failed} <= expected().items()
        before = now
    with platform.serve(folder=folder):
        said = platform.fc_data("run", "--month", MONTH)
    assert said.succeeded, said.text
    assert before.items() <= finished(platform.ledger()).items()
    for part in ("building", "sessions"):
        assert list((platform.home / "builds" / part).iterdir()) == []
    with dg.DagsterInstance.from_config(str(platform.home / "dagster")) as instance:
        ends = Counter(run.status for run in instance.get_runs())
    assert ends == {dg.DagsterRunStatus.CANCELED: len(STOPS), dg.DagsterRunStatus.SUCCESS: 1}


def stop_in(platform, folder, stop: Stop) -> datetime:
    """Run the month, and stop it in the middle of the stage; returns when it was asked to."""
    with silent_server() as (url, visited), platform.serve(folder=folder, hold=stop.hold) as served:
        settings = stop.settings | dict.fromkeys(stop.silent, url)
        with platform.started("run", "--month", MONTH, **settings) as process:

            def begun() -> bool:
                assert process.poll() is None, process.communicate()[0]
                if served.turnstile is not None:
                    return served.turnstile.reached.is_set()
                return in_stage(platform, stop.stage) and (stop.begun(platform) if stop.begun else visited())

            platform.wait_for(begun, f"{stop.stage} to begin", seconds=300)
            started, asked_at = time.monotonic(), datetime.now(tz=UTC)
            for number in stop.signals:
                process.send_signal(number)
            said = platform.ended(process)
            seconds = time.monotonic() - started
    assert process.returncode == 128 + stop.signals[0], said.text
    said.tells("interrupted; run the same command again")
    assert seconds < ENDED_SECONDS, f"{stop.stage} took {seconds:.1f} s to end"
    return asked_at
