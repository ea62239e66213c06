"""The GitHub of `bench/intake.py`, in a separate process, until its input ends."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from sandbox.github import Fault, Faults, Limits, app
from sandbox.github.served_folder import ServedFolder
from sandbox.server import serving

BROKEN = (
    Fault.BAD_GATEWAY, Fault.UNAVAILABLE, Fault.TIMED_OUT, Fault.TRUNCATED, Fault.DROPPED,
    Fault.RESET, Fault.HALF_PAGE, Fault.NULL_NODE, Fault.FIELD, Fault.SLOW,
)  # fmt: skip
"""Random faults. Refusals for limits are not among them: those are real."""


def main() -> None:
    """Serve, print the address in one line, and end with the input."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--broken", type=float, required=True, help="share of answers")
    parser.add_argument("--latency", type=float, required=True, help="seconds that every answer takes at least")
    parser.add_argument("--since", required=True)
    parser.add_argument("--until", required=True)
    options = parser.parse_args()
    # The server complains of every answer that is broken off on purpose.
    logging.disable(logging.ERROR)
    folder = ServedFolder(options.folder)
    warm(folder, options.since, options.until)
    faults = Faults(
        chances=dict.fromkeys(BROKEN, options.broken / len(BROKEN)),
        seed=7,
        slow_seconds=1.0,
        latency_seconds=options.latency,
    )
    with serving(app(folder, limits=Limits(), faults=faults)) as url:
        print(url, flush=True)
        sys.stdin.read()


def warm(folder: ServedFolder, since: str, until: str) -> None:
    """Read every history and measure the diffs of the month, as GitHub has long done."""
    for served in folder.repositories():
        month = [
            pull_request
            for pull_request in served.tracker().by_merge
            if pull_request.merged_at and since <= pull_request.merged_at.isoformat() < until
        ]
        for pull_request in month[:1]:
            served.size(pull_request, month)


if __name__ == "__main__":
    main()
