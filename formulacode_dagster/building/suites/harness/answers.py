"""Reads a request and answers it on a stream that no benchmark's output can reach."""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import TYPE_CHECKING

from . import runner

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # came with CPython 3.8


WITHOUT_RUNNER = frozenset(
    {"read", "write", "restore", "vary", "keep", "relink", "idlest", "cores", "test", "instrument"}
)


class Emit(Protocol):
    """Sends one answer to the host."""

    def __call__(self, **fields: object) -> None:
        """Send *fields* as one JSON object."""


def main() -> None:
    """Read the request from standard input and answer it on the original standard output, behind its nonce."""
    request = json.load(sys.stdin)
    answers = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    nonce = str(request["nonce"])
    # as they are now, before any code of a package runs
    write, as_json = os.write, json.dumps

    def emit(**fields: object) -> None:
        data = f"{nonce} {as_json(fields)}\n".encode()
        while data:
            data = data[write(answers, data) :]

    module, function = {
        "imports": ("imports", "import_all"),
        "survey": ("survey", "survey"),
        "describe": ("describing", "describe"),
        "collect": ("collect", "collect"),
        "test": ("testing", "run_tests"),
        "time": ("timing", "time_all"),
        "profile": ("profiles", "profile_all"),
        "stacks": ("stacks", "sample_stacks"),
        "count": ("profiles", "count_all"),
        "idlest": ("conditions", "idlest"),
        "cores": ("conditions", "count_cores"),
        "vary": ("builds", "vary"),
        "keep": ("builds", "keep"),
        "relink": ("builds", "relink"),
        "read": ("files", "read"),
        "write": ("files", "write"),
        "restore": ("files", "restore"),
        "instrument": ("compiled.native", "instrument"),
    }[request["command"]]
    answer = getattr(importlib.import_module(f"{__package__}.{module}"), function)
    # From here on the archive must not be importable: a suite may have a module of the same name.
    sys.path.pop(0)
    if request["command"] not in WITHOUT_RUNNER:
        # plug-ins measure no time: only a survey names them
        runner.load(plugins=request["command"] == "survey")
    if "root" in request:
        importlib.import_module("asv_runner._aux").update_sys_path(request["root"])
        reach = importlib.import_module(f"{__package__}.uninstalled").reach_uninstalled
        request["uninstalled"] = reach(request["root"], [request["checkout"], request["tests"]])
    answer(request, emit)
    emit(event="end")
    # a thread or process that code of the package left would hold up the end of the interpreter for ever
    sys.stderr.flush()
    os._exit(0)
