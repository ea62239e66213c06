"""The first process of a session's container, run here as an ordinary process: requests in, frames out."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from formulacode_dagster.building.engines.docker.commands import command_that_serves


class Server:
    """A command server on this machine."""

    def __init__(self) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command_that_serves(sys.executable, 60), **pipes)

    def read(self, size: int) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.read(size)

    def ask(self, *argv: str, stdin: bytes | None = None, most: int = 1000, **asked: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        length = None if stdin is None else len(stdin)
        request = {"argv": argv, "cwd": "/", "environment": {}, "most": most, "stdin": length} | asked
        header = json.dumps(request).encode()
        self.process.stdin.write(struct.pack("!I", len(header)) + header + (stdin or b""))
        self.process.stdin.flush()
        streams = {b"o": b"", b"e": b""}
        while True:
            kind, size = struct.unpack("!cI", self.read(5))
            if kind == b"x":
                return json.loads(self.read(size)) | {"out": streams[b"o"], "err": streams[b"e"]}
            streams[kind] += self.read(size)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.process.wait(10) == 0
    assert server.process.stdout is not None
    server.process.stdout.close()


def test_commands_run_one_after_the_other(server: Server) -> None:
    answer = server.ask(
        "sh", "-c", "echo $GREETING; pwd; echo no >&2; exit 3", environment={"GREETING": "yes"}, cwd="/tmp"
    )
    assert answer == {"rc": 3, "survivors": False, "out": b"yes\n/tmp\n", "err": b"no\n"}
    assert server.ask("sh", "-c", "kill -TERM $$")["rc"] == 143
    assert server.ask("true") == {"rc": 0, "survivors": False, "out": b"", "err": b""}


def test_standard_input_is_passed_whole_and_may_be_left_unread(server: Server) -> None:
    much = os.urandom(3_000_000)
    assert server.ask("cat", stdin=much, most=4_000_000)["out"] == much
    assert server.ask("true", stdin=much)["rc"] == 0
    assert server.ask("cat", stdin=b"")["out"] == b""
    assert server.ask("cat")["out"] == b"", "without one it is empty"


def test_of_each_stream_only_the_first_bytes_are_kept(server: Server) -> None:
    answer = server.ask("sh", "-c", "head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2", most=70_000)
    assert (answer["rc"], len(answer["out"]), len(answer["err"])) == (0, 70_000, 70_000)


def test_what_cannot_be_started_has_the_status_of_a_shell(server: Server) -> None:
    missing = server.ask("/no/such/program")
    assert (missing["rc"], missing["survivors"]) == (127, False)
    assert b"/no/such/program" in missing["err"]
    assert server.ask("/etc/passwd")["rc"] == 126
    assert server.ask("true")["rc"] == 0


@pytest.mark.parametrize("left", ["sleep 5 &", "setsid sleep 5 > /dev/null 2>&1 &", "(setsid sh -c 'sleep 5; :' &);"])
def test_processes_that_are_left_are_reported(server: Server, left: str) -> None:
    began = time.monotonic()
    answer = server.ask("bash", "-c", f"{left} echo done")
    assert (answer["rc"], answer["survivors"], answer["out"]) == (0, True, b"done\n")
    assert time.monotonic() - began < 4, "it does not wait for their output"


def test_it_ends_with_its_standard_input_in_the_middle_of_a_command(server: Server) -> None:
    assert server.process.stdin is not None
    header = json.dumps({"argv": ["sleep", "60"], "cwd": "/", "environment": {}, "most": 1, "stdin": None}).encode()
    server.process.stdin.write(struct.pack("!I", len(header)) + header)


def test_it_ends_when_its_time_is_over() -> None:
    command = command_that_serves(sys.executable, seconds=1)
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait(10) == 0
    assert time.monotonic() - began >= 1
