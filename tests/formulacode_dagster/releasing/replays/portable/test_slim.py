"""Slim archives ask this machine for an interpreter, programs and a compiler, and refuse by name without them."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.releasing.replays.portable.contents import ArchiveRefusedError
from formulacode_dagster.releasing.replays.portable.slim import (
    PROGRAMS,
    FoundInterpreter,
    find_interpreter,
    lay_machine,
    require_machine,
)


def task(*, python: str = platform.python_version(), is_compiled: bool = False) -> dict[str, Any]:
    return {"item": "a/b#1", "slim": {"digest": "sha256:1", "python": python, "is_compiled": is_compiled}}


def programs(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).touch(mode=0o755)
    return str(folder)


def test_an_interpreter_of_the_very_version_is_found() -> None:
    found = find_interpreter(platform.python_version())
    assert (found.version, found.prefix) == (platform.python_version(), sys.base_prefix)
    with pytest.raises(ArchiveRefusedError, match=rf"CPython 3\.99\.1 is not here, only .*{found.version}"):
        find_interpreter("3.99.1")
    with pytest.raises(ArchiveRefusedError, match="is not here, only none; name it with --python"):
        find_interpreter(platform.python_version(), "/nonexistent/python")


def test_all_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path, *PROGRAMS[1:]))
    with pytest.raises(ArchiveRefusedError) as refused:
        require_machine([task(), task(python="3.99.1", is_compiled=True)], "")
    assert str(refused.value).startswith("bash is not on PATH; CPython 3.99.1 is not here, only ")
    assert "no compiler (cc) is on PATH, and a/b#1 cannot be built without one. An archive that" in str(refused.value)


def test_a_task_of_python_takes_no_compiler_and_one_with_its_system_takes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path, *PROGRAMS))
    require_machine([task()], "")
    monkeypatch.setenv("PATH", "")
    require_machine([{"item": "a/b#1", "slim": None}], "")


def test_system_and_interpreter_are_laid_over_the_environment(tmp_path: Path) -> None:
    root, prefix = tmp_path / "root", tmp_path / "python"
    (root / "opt" / "venv" / "bin").mkdir(parents=True)
    (root / "opt" / "venv" / "bin" / "python").symlink_to("/usr/local/bin/python3")
    (root / "opt" / "venv" / "pyvenv.cfg").write_text("home = /usr/local/bin\nversion_info = 3.12.1\n")
    (prefix / "bin").mkdir(parents=True)
    binds = lay_machine(str(root), FoundInterpreter("3.12.1", f"{prefix}/bin/python3.12", str(prefix)))
    assert not any(bind.writable for bind in binds)
    inside = {bind.inside: bind.source for bind in binds}
    assert (inside["/usr"], inside[str(prefix)]) == ("/usr", str(prefix))
    # nothing that is laid over a link or a missing place would be mounted
    places = [Path(f"{root}{place}") for place in inside]
    assert all(place.exists() and not place.is_symlink() for place in places)
    assert not {"/etc", "/etc/shadow", "/root", "/home"} & set(inside)
    assert str((root / "opt" / "venv" / "bin" / "python").readlink()) == f"{prefix}/bin/python3.12"
    assert (root / "opt" / "venv" / "pyvenv.cfg").read_text() == f"home = {prefix}/bin\nversion_info = 3.12.1\n"
    assert (root / "etc" / "passwd").is_file()
