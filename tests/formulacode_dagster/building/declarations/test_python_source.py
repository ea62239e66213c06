"""Python files are parsed in threads."""

from __future__ import annotations

import ast
import contextlib
import gc
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from formulacode_dagster.building.declarations.python_source import parse_python

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
