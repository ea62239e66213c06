"""Ends the processes of `fc-data dev` after it was killed, as it would have done itself.

A process of its own, in a separate session, which the signal that kills `fc-data dev` does not reach. Its input is a
pipe with a single writer: one line gives the process that leads Dagster's services, another one reports an orderly end.
If the pipe closes without the latter, the writer was killed.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STOP_SECONDS = 30
"""Time Dagster is given to end its services before they are killed."""
_IN_ORDER = "in order"


@contextmanager
def ending_orphans() -> Iterator[Callable[[int], None]]:
    """Everything started in the block is ended, even after `kill -9` of this process.

    Yields a function to report the pid of the leader of Dagster's services, which is also the id of their process
    group.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, text=True, start_new_session=True
    )

    def tell(line: object) -> None:
        # it may have been ended by hand
        with suppress(BrokenPipeError):
            print(line, file=process.stdin, flush=True)

    try:
        yield tell
    finally:
        tell(_IN_ORDER)
        process.communicate()


def end_runs(group: int) -> None:
    """Kill the runs that outlive `dagster dev`, end them in Dagster too, and free their pools: no other process would.

    Runs of other code servers over the same storage, perhaps on other machines, continue.
    """
    from formulacode_dagster.orchestration.orphans import SERVED_BY, end_served
    from formulacode_dagster.orchestration.runs import dagster_instance

    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    with dagster_instance() as instance:
        if server := os.environ.get(SERVED_BY):
            end_served(instance, server)


def _wait() -> None:
    """Wait for the word, or for the end of whoever was to say it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # sent to all of a service, or of a terminal, they are for others: these end, and then so do we
        signal.signal(number, signal.SIG_IGN)
    leader, handle = 0, -1
    for line in sys.stdin:
        if line.strip() == _IN_ORDER:
            return
        leader = int(line)
        with suppress(ProcessLookupError):
            # numbers are given out again, a handle means this process for ever
            handle = os.pidfd_open(leader)
    if leader:
        _end_leader(handle)
        end_runs(leader)
    _stop_database()


def _end_leader(handle: int) -> None:
    """Have the leader end its services in order, or kill it when that takes too long."""
    if handle < 0:
        return
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        if not select.select([handle], [], [], STOP_SECONDS)[0]:
            signal.pidfd_send_signal(handle, signal.SIGKILL)


def _stop_database() -> None:
    """Stop the embedded Postgres unless another process uses it, as its last user does."""
    from formulacode_dagster.operating.store.embedded import start_embedded
    from resources.settings import read_settings

    folder = read_settings().home / "postgres"
    if (folder / "postmaster.pid").exists():
        # joined, so that this process ends after its last child
        start_embedded(folder)


if __name__ == "__main__":
    _wait()
