"""Tests that do the same before and after a change of their file."""

from __future__ import annotations

import pytest

from formulacode_dagster.measuring.workloads.unchanged_tests import unchanged_tests

BEFORE = """
import os
from pkg import core

SIZE = 3


def made(n):
    return [n] * SIZE


def test_a():
    assert core.total(made(3))


async def test_b():
    core.other()


class TestIt(Base):
    size = 4

    def test_c(self):
        core.total(self.size)

    def test_d(self):
        core.total(5)
"""
ALL = frozenset({"test_a", "test_b", "TestIt::test_c", "TestIt::test_d"})
NEW = "\n\ndef test_new():\n    core.total(1)\n\n\nclass TestNew:\n    def test_it(self):\n        pass\n"


@pytest.mark.parametrize(
    ("after", "unchanged"),
    [
        pytest.param(BEFORE + NEW, ALL, id="tests are added"),
        pytest.param(f"from pkg import fast as quick\n{BEFORE}", ALL, id="and imports"),
        pytest.param(BEFORE + "\n\nOTHER = 4\n\n\ndef _checked(n):\n    return n\n", ALL, id="and helpers"),
        pytest.param(BEFORE.replace("import core", "import core, fast"), ALL, id="and names to an import"),
        pytest.param(BEFORE.replace("made(3)", "made(4)"), ALL - {"test_a"}, id="one is another"),
        pytest.param(BEFORE.replace("core.total(5)", "core.total(6)"), ALL - {"TestIt::test_d"}, id="a method is"),
        pytest.param(
            BEFORE.replace("    def test_d", "    def test_new(self):\n        pass\n\n    def test_d"),
            ALL,
            id="one is added",
        ),
        pytest.param(BEFORE.replace("size = 4", "size = 5"), {"test_a", "test_b"}, id="what a class's tests share"),
        pytest.param(BEFORE.replace("Base", "Other"), {"test_a", "test_b"}, id="its base"),
        pytest.param(BEFORE.replace("\n\n\nasync", "\n\n\n\n# said\nasync"), ALL, id="only lines and comments"),
        pytest.param(BEFORE.replace("async def test_b", "def test_b"), ALL - {"test_b"}, id="no longer a coroutine"),
        pytest.param(BEFORE.replace("async def test_b", "@slow\nasync def test_b"), ALL - {"test_b"}, id="a decorator"),
        pytest.param(BEFORE + "\n\ndef test_a():\n    pass\n", ALL - {"test_a"}, id="hidden by another of its name"),
    ],
)
def test_equal_tests_are_unchanged_if_what_they_share_is(after, unchanged):
    assert unchanged_tests(BEFORE.encode(), after.encode()) == unchanged


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("SIZE = 3", "SIZE = 4"),
        BEFORE.replace("[n] * SIZE", "[n]"),
        BEFORE.replace("import os\n", ""),
        BEFORE.replace("from pkg import core", "from pkg import fast as core"),
        f"{BEFORE}\nfrom pkg.fast import core\n",
        f"{BEFORE}\nfrom pkg.fast import *\n",
        f"{BEFORE}\nimport core.fast\n",
        f"{BEFORE}\npytestmark = 1\n",
        f"{BEFORE}\ncore.total = None\n",
        f"{BEFORE}\n\ndef made(n):\n    return n\n",
        f"{BEFORE}\n\ndef core(n):\n    return n\n",
        f"{BEFORE}\n\n@pytest.fixture(autouse=True)\ndef prepared():\n    pass\n",
        f"{BEFORE}\n\n@pytest.fixture(autouse=True)\ndef test_data():\n    pass\n",
        f"{BEFORE}\n\ndef setup_module():\n    pass\n",
        f"{BEFORE}\n\ndef tearDownModule():\n    pass\n",
        f"{BEFORE}\n\ndef pytest_generate_tests(metafunc):\n    pass\n",
        BEFORE.replace("\nSIZE = 3\n", "")
        .replace("class TestIt", "SIZE = 3\n\n\nclass TestIt")
        .replace("made(n)", "m(n)"),
        "def broken(:",
        "",
    ],
)
def test_no_test_is_unchanged_if_something_else_is_changed(after):
    assert unchanged_tests(BEFORE.encode(), after.encode()) == frozenset()


USING = """
from pkg import core

def test_a():
    core.total(1)

def test_b():
    test_a()

class TestA:
    def test_c(self):
        core.total(2)

class TestB(TestA):
    size = 3

class TestC(TestB):
    def test_d(self):
        core.total(3)

class TestD:
    def test_f(self):
        core.total(5)

    def test_g(self):
        self.test_f()

    def test_h(self):
        core.total(6)

def test_e():
    core.total(4)
"""
ALL_USING = frozenset(
    {"test_a", "test_b", "test_e", "TestA::test_c", "TestC::test_d", "TestD::test_f", "TestD::test_g", "TestD::test_h"}
)


@pytest.mark.parametrize(
    ("what", "unchanged"),
    [
        ("core.total(1)", ALL_USING - {"test_a", "test_b"}),
        ("core.total(2)", ALL_USING - {"TestA::test_c", "TestC::test_d"}),
        ("size = 3", ALL_USING - {"TestC::test_d"}),
        ("core.total(5)", ALL_USING - {"TestD::test_f", "TestD::test_g"}),
    ],
)
def test_tests_that_use_a_changed_one_are_changed_too(what, unchanged):
    assert unchanged_tests(USING.encode(), USING.encode()) == ALL_USING
    assert unchanged_tests(USING.encode(), USING.replace(what, f"{what}, 7").encode()) == unchanged


def test_a_fixture_is_no_test_by_its_name():
    fixture = "\n\n@pytest.fixture\ndef test_data():\n    return 1\n\n\ndef test_of_it(test_data):\n    pass\n"
    before = BEFORE + fixture
    assert unchanged_tests(before.encode(), before.encode()) == ALL | {"test_of_it"}
    assert unchanged_tests(before.encode(), before.replace("return 1", "return 2").encode()) == frozenset()


def test_files_that_are_no_python_have_none():
    assert unchanged_tests(b"\xff", BEFORE.encode()) == frozenset()
