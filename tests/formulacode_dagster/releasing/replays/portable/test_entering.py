"""Command lines of the ways into a root file system."""

from __future__ import annotations

import resource

import pytest

from formulacode_dagster.releasing.replays.portable.entering import WAYS, Bind, PlacedCommand

COMMAND = PlacedCommand(
    ["python", "-V"],
    "/home/formulacode",
    {"A": "b"},
    5.0,
    "/work/root",
    [Bind("/work/1", "/workspace", writable=True), Bind("/work/passwd", "/etc/passwd", writable=False)],
    {"memory_mb": 1024, "processes": 64},
)


def line_of(name: str) -> list[str]:
    (way,) = (way for way in WAYS if way.name == name)
    return way.start(COMMAND, "/work/tools", 0)


@pytest.mark.parametrize(
    ("name", "no_network", "read_only", "writable"),
    [
        ("bubblewrap", ["--unshare-all"], ["--ro-bind", "/work/root", "/"], ["--bind", "/work/1", "/workspace"]),
        ("podman", ["--network=none"], ["--read-only"], ["--volume=/work/1:/workspace:rw"]),
        ("apptainer", ["--net", "--network=none"], ["--containall"], ["--bind", "/work/1:/workspace:rw"]),
    ],
)
def test_a_command_has_no_network_and_writes_only_to_its_own_folders(
    name: str, no_network: list[str], read_only: list[str], writable: list[str]
) -> None:
    line = line_of(name)
    assert line[-2:] == ["python", "-V"]
    for options in (no_network, read_only, writable):
        assert any(line[place : place + len(options)] == options for place in range(len(line))), options
    assert not any("/etc/passwd:rw" in part for part in line)


def test_podman_is_asked_for_no_more_than_this_process_may_have() -> None:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    line = line_of("podman")
    assert f"--ulimit=nofile={files}:{files}" in line
    assert {"--ulimit=nproc=64:64", "--pids-limit=64"} <= set(line)


def test_root_starts_namespaces_and_podman_as_the_user_of_the_image() -> None:
    assert [way.name for way in WAYS if way.is_by_user] == ["namespaces", "podman"]
