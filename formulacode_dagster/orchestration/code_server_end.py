"""Ends the runs of a code server that is to stop, as *Terminate* in the UI does: `ExecStop=` of its service.

Dagster's server itself sends its runs no signal, and waits for them without a limit.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from .code_server_launcher import runs_below
from .dagster_internals import DagsterGrpcClient, DagsterUserCodeUnreachableError

PATIENCE_SECONDS = 120.0
"""Any stage ends within ten seconds; a machine may be under load."""
_LOOK_SECONDS = 0.5


def end_code_server(
    client: DagsterGrpcClient, terminate: Callable[[str], object], patience: float = PATIENCE_SECONDS
) -> tuple[str, ...]:
    """Have the server take no more runs, and end the running ones, each by *terminate*; return the survivors."""
    deadline = time.monotonic() + patience
    told: set[str] = set()
    left: frozenset[str] = frozenset()
    try:
        client.shutdown_server()
        while left := runs_below(client):
            for run_id in left - told:
                terminate(run_id)
            told |= left
            if time.monotonic() > deadline:
                break
            time.sleep(_LOOK_SECONDS)
    except DagsterUserCodeUnreachableError:
        # once its last run has ended, so does the server
        return ()
    return tuple(sorted(left))


def main() -> None:
    """End the code server at the port of this machine that the command line names."""
    import dagster as dg

    parser = argparse.ArgumentParser(prog="code_server_end", description=__doc__)
    parser.add_argument("port", type=int)
    client = DagsterGrpcClient(host="127.0.0.1", port=parser.parse_args().port)
    with dg.DagsterInstance.get() as instance:
        left = end_code_server(client, instance.run_launcher.terminate)
    if left:
        parser.exit(1, f"still at work after {PATIENCE_SECONDS:.0f} s, and killed now: {', '.join(left)}\n")


if __name__ == "__main__":
    main()
