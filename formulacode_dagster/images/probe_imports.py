"""Runs inside a session: imports modules one by one, and prints what happened after a line that only the host knows.

A script for Python 3.7 and later: `python probe_imports.py NONCE MODULE...`.
"""

import importlib
import json
import sys
import traceback


def main() -> None:
    """Import every module named on the command line."""
    nonce, modules = sys.argv[1], sys.argv[2:]
    errors = {}
    for name in modules:
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: BLE001 - code under test may raise anything, SystemExit included
            errors[name] = traceback.format_exc().strip().splitlines()[-1][:500]
    sys.stdout.flush()
    sys.__stdout__.write("\n" + nonce + json.dumps({"errors": errors}) + "\n")  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
