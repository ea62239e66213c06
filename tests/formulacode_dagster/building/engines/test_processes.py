from __future__ import annotations

import marshal
import os
import py_compile
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from formulacode_dagster.building.engines import confine, view_mounts
from formulacode_dagster.building.engines.processes import Bounds, can_confine, run_bounded
from formulacode_dagster.building.engines.view import CommandView
from formulacode_dagster.models.image import ResourceLimits

ENVIRONMENT = {"PATH": os.defpath}


def alive_with(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if command.startswith(b"sleep\0") and mark.encode() in command:
                found.append(int(folder.name))
    return found


def wait_until_gone(mark: str) -> bool:
    for _ in range(100):
        if not alive_with(mark):
            return True
        time.sleep(0.05)
    return False


def test_a_timeout_kills_grandchildren_that_left_their_session(tmp_path: Path) -> None:
    mark = f"9{os.getpid()}1"
    script = f"(setsid sleep {mark} &) ; setsid sleep {mark} & sleep {mark}"
    done = run_bounded(["sh", "-c", script], timeout=0.7, bounds=Bounds(), environment=ENVIRONMENT, cwd=tmp_path)
    assert done.timed_out
    assert not done.ok
    assert done.seconds < 60
    assert not alive_with(mark)


def test_what_a_command_leaves_running_is_killed_when_it_ends(tmp_path: Path) -> None:
    mark = f"9{os.getpid()}2"
    argv = ["sh", "-c", f"setsid sleep {mark} >/dev/null 2>&1 & echo done"]
    done = run_bounded(argv, timeout=20, bounds=Bounds(), environment=ENVIRONMENT, cwd=tmp_path)
    assert done.ok
    assert done.stdout == b"done\n"
    assert not alive_with(mark)


def test_a_killed_caller_takes_the_command_with_it(tmp_path: Path) -> None:
    mark = f"9{os.getpid()}3"
    program = f"""
    from pathlib import Path
    from formulacode_dagster.building.engines.processes import Bounds, run_bounded
    run_bounded(["sh", "-c", "echo up > up; setsid sleep {mark}"], timeout=60, bounds=Bounds(),
                environment={ENVIRONMENT!r}, cwd=Path({str(tmp_path)!r}))
    """
    caller = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)])
    while not alive_with(mark):
        assert caller.poll() is None
        time.sleep(0.05)
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    assert wait_until_gone(mark)


def test_status_output_and_standard_input_are_passed_through(tmp_path: Path) -> None:
    argv = ["sh", "-c", "cat; echo no >&2; exit 7"]
    done = run_bounded(argv, timeout=20, bounds=Bounds(), environment=ENVIRONMENT, cwd=tmp_path, stdin=b"x" * 200_000)
    assert (done.rc, len(done.stdout), done.stderr) == (7, 200_000, b"no\n")


def test_progress_gets_both_streams_line_by_line(tmp_path: Path) -> None:
    lines: list[str] = []
    argv = ["sh", "-c", "echo one; echo two >&2"]
    done = run_bounded(argv, timeout=20, bounds=Bounds(), environment=ENVIRONMENT, cwd=tmp_path, progress=lines.append)
    assert lines == ["one", "two"]
    assert done.stdout == b"one\ntwo\n"


def test_memory_is_limited(tmp_path: Path) -> None:
    bounds = Bounds(ResourceLimits(memory_mb=200))
    argv = [sys.executable, "-S", "-c", "len(bytearray(400 * 1024 * 1024))"]
    done = run_bounded(argv, timeout=20, bounds=bounds, environment=ENVIRONMENT, cwd=tmp_path)
    assert not done.ok
    assert b"MemoryError" in done.stderr


FORK = """
import os, signal
started = 0
try:
    while started < 200:
        if os.fork() == 0:
            signal.pause()
        started += 1
except BlockingIOError:
    print(started)
"""


def view_of(folder: Path) -> dict[str, object]:
    """A view of the user nobody with *folder*."""
    number = 65534 if os.getuid() == 0 else os.getuid()
    user = {"user": number, "group": number, "home": str(folder), "cores": 1, "memory_bytes": 1 << 20}
    return {**user, "readonly": [], "writable": [str(folder)]}


@pytest.mark.parametrize("viewing", [False, True])
@pytest.mark.parametrize(
    ("code", "output"), [(FORK, b"15\n"), ("import os; print(os.getuid() != 0, os.path.exists('/var'))", b"True {}\n")]
)
def test_a_user_is_limited_to_processes_and_files(viewing: bool, code: str, output: bytes) -> None:
    if viewing and not can_confine():
        pytest.skip("this kernel allows no namespaces")
    limits = {"nice": 0, "cpus": 1, "memory_bytes": 1 << 30, "processes": 16, "cpu_seconds": 20, "file_bytes": 1 << 20}
    # root is not limited, and an interpreter of root's need not be anybody's
    is_root = os.getuid() == 0
    python = "/usr/bin/python3" if is_root else sys.executable
    task = {"argv": [python, "-c", code], "cwd": "/", "apart": True, "isolate_network": False, "limits": limits}
    reading, writing = os.pipe()
    # root's checkout need not be anybody's, either
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for module in (confine, view_mounts):
            shutil.copy(module.__file__, folder)
        view = view_of(folder) if viewing else None
        done = subprocess.run(
            [
                python,
                "-I",
                "-S",
                str(folder / "confine.py"),
                marshal.dumps({**task, "lifeline": reading, "modules": name, "view": view}).hex(),
            ],
            **({"user": 65534, "group": 65534, "extra_groups": ()} if is_root else {}),
            pass_fds=(reading,),
            capture_output=True,
            check=False,
            timeout=60,
        )
    os.close(reading)
    os.close(writing)
    assert (done.stdout, done.stderr) == (output.replace(b"{}", str(not viewing).encode()), b"")


def test_a_command_that_does_not_exist_says_so(tmp_path: Path) -> None:
    done = run_bounded(["/no/such"], timeout=20, bounds=Bounds(), environment=ENVIRONMENT, cwd=tmp_path)
    assert done.rc == 127
    assert b"/no/such" in done.stderr


LOOK = """
import os
from pathlib import Path

# the parent has none of it; whoever started the parent has
pid, found = os.getpid(), []
for folder in Path("/proc").iterdir():
    if folder.name.isdigit():
        for name in ("environ", "mem"):
            try:
                with (folder / name).open("rb") as file:
                    found += [f"{name} of {folder.name}"] if name == "mem" or b"a-very-secret" in file.read() else []
            except OSError:
                continue
print([line for line in found if not line.endswith(f" {pid}")])
"""
"""Whose memory can be opened, and in whose environment the token is; one's own aside."""

HOLDER = """
import sys
from pathlib import Path
from formulacode_dagster.building.engines.processes import Bounds, run_bounded
from formulacode_dagster.models.image import ResourceLimits

for bounds in (Bounds(ResourceLimits()), Bounds(ResourceLimits(), isolate_network=True), Bounds(apart=True)):
    done = run_bounded([sys.executable, "-c", sys.argv[1]], timeout=60, bounds=bounds, environment={}, cwd=Path("/"))
    assert done.ok, done
    print(done.stdout.decode().strip())
"""


# without namespaces root gives up its capabilities; another user has none to give up
@pytest.mark.slow
@pytest.mark.parametrize("forbidden", [False, True] if os.getuid() == 0 else [False])
def test_foreign_code_cannot_read_the_tokens_of_its_parent(tmp_path: Path, forbidden: bool) -> None:
    # a platform that holds a token, in a process of its own
    environment = {**os.environ, "GH_TOKENS": "a-very-secret-token"}
    command = [sys.executable, "-c", HOLDER, LOOK]
    if forbidden:
        # a limit of none forbids them even to root
        command = ["unshare", "--user", "--map-root-user", "sh", "-c", FORBIDDING, "sh", *command]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]"] * 3


FORBIDDING = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
NOBODY = """
echo 1 > /proc/sys/user/max_user_namespaces && exec unshare --user --map-user=1000 --map-group=1000 "$@"
"""
"""The one user namespace that is left makes a user who is not root, and may open no other."""
PLAIN_HOLDER = HOLDER.replace("Bounds(ResourceLimits(), isolate_network=True), ", "")


@pytest.mark.slow
def test_foreign_code_cannot_read_tokens_without_user_namespaces(tmp_path: Path) -> None:
    environment = {**os.environ, "GH_TOKENS": "a-very-secret-token"}
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", NOBODY, "sh", sys.executable, "-c"]
    outside = subprocess.run(
        [*command, "from formulacode_dagster.building.engines.processes import is_set_apart; print(is_set_apart())"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert outside.stdout == "False\n", outside.stderr
    done = subprocess.run(
        [*command, PLAIN_HOLDER, LOOK], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]"] * 2


def test_a_process_with_more_files_than_select_supports_can_wait(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2048), before[1]))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        assert run_bounded(["true"], timeout=20, bounds=Bounds(), environment=ENVIRONMENT, cwd=tmp_path).rc == 0
    finally:
        for number in files:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_view_is_entered_by_the_script_and_by_its_bytecode(
    compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", not compiled)
    if compiled:
        py_compile.compile(confine.__file__, doraise=True)
    bounds = Bounds(ResourceLimits(), view=CommandView((tmp_path,)))
    done = run_bounded(["/bin/true"], timeout=20, bounds=bounds, environment={}, cwd=tmp_path)
    assert done.ok, done.stderr
