"""Python files are parsed in threads."""

from __future__ import annotations

import ast
import contextlib
import gc
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from formulacode_dagster.building.declarations import python_source
from formulacode_dagster.building.declarations.python_source import TRIES, parse_python, parse_requirement

SOURCE = "x = " + "+".join(["a(b, c[d])"] * 50) + "\n" + "def f(a):\n    return [i for i in a if i]\n" * 30


class Lingering:
    """An object in a circle, whose end gives the interpreter to another thread."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(0)


@pytest.fixture
def eager_collection() -> Iterator[None]:
    """Collect garbage often, and let threads take turns often."""
    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    yield
    gc.set_threshold(*before)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_collection")
@pytest.mark.parametrize("is_locked", [True, False], ids=["with the lock", "with a library that does not take it"])
def test_threads_parse_at_once(is_locked: bool) -> None:
    """CPython 3.11.7 raises SystemError after some hundred trees made by two threads without a lock."""
    failed: list[BaseException] = []

    def parse() -> None:
        try:
            for _ in range(40):
                Lingering()
                parse_python(SOURCE)
        except SystemError as error:
            failed.append(error)

    def parse_without_lock() -> None:
        for _ in range(400):
            Lingering()
            with contextlib.suppress(SystemError):
                ast.parse("a == 'b'")

    threads = [threading.Thread(target=parse) for _ in range(4)]
    if not is_locked:
        threads.append(threading.Thread(target=parse_without_lock))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_bytes_are_read_by_their_own_encoding() -> None:
    assert len(parse_python("# coding: latin-1\nx = 'ä'\n".encode("latin-1")).body) == 1


def test_a_requirement_is_parsed_again_where_another_thread_spoiled_its_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended a pull request of napari as `unexpected` twice."""
    left = [TRIES - 1]

    def parse(text: str) -> Requirement:
        left[0] -= 1
        if left[0] >= 0:
            raise SystemError("AST constructor recursion depth mismatch (before=84, after=80)")
        return Requirement(text)

    monkeypatch.setattr(python_source, "Requirement", parse)
    assert parse_requirement("attrs; python_version < '3.12'").name == "attrs"
    left[0] = TRIES
    with pytest.raises(SystemError):
        parse_requirement("attrs")


def test_requirements_are_parsed_here_only() -> None:
    package = Path(python_source.__file__).parents[2]
    imported = re.compile(r"from packaging.requirements import .*\bRequirement\b")
    users = {path.stem: path.read_text() for path in package.rglob("*.py") if imported.search(path.read_text())}
    assert "python_source" in users
    assert [name for name, text in users.items() if re.search(r"\bRequirement\(", text)] == ["python_source"]
