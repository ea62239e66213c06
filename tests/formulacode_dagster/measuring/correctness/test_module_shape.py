from __future__ import annotations

import pytest

from formulacode_dagster.measuring.correctness.module_shape import ModuleShape, shapes_of

CORE = b'''"""Docs."""
import os
from numpy import unique

LIMIT = 1


class Core:
    size = 1

    @property
    def area(self):
        return 2 * self.size


if LIMIT:
    def total(numbers, start=0):
        """Doc."""
        return sum(numbers, start)
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return 2 * self.size", "return self.size + self.size"),
        ("return sum(numbers, start)", "import math\n\n        return math.fsum(numbers)"),
        ('"""Doc."""', '"""Document."""'),
        ('"""Docs."""', "# nothing"),
        ("import os", "import os, sys"),
        ("import unique", "import (\n    sort, unique\n)"),
        ("LIMIT = 1", "LIMIT = 1\n_CACHE: dict = {}\n_half = LIMIT / 2"),
        ("class Core", "def _fast(x):\n    return x\n\n\nclass Core"),
        ("    size = 1\n", "    size = 1\n\n    def _fast(self):\n        return 1\n"),
    ],
)
def test_bodies_and_new_names_leave_what_an_import_does(old: str, new: str) -> None:
    assert ModuleShape.of(CORE).is_part_of(ModuleShape.of(CORE.replace(old.encode(), new.encode())))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 1", "LIMIT = 2"),
        ("    size = 1", "    size = 2"),
        ("import os\n", ""),
        ("start=0", "start=1"),
        ("if LIMIT", "if not LIMIT"),
        ("total", "sum_of"),
        ("    @property", "    @cached\n    @property"),
        ("    @property\n", ""),
        ("import os\nfrom numpy import unique\n", "from numpy import unique\nimport os\n"),
        # names that are bound before, or used by Python itself
        ("LIMIT = 1", "LIMIT = 1\nunique = sorted"),
        ("LIMIT = 1", "LIMIT = 1\nfrom ._fast import total"),
        ("    size = 1\n", "    size = 1\n\n    def __eq__(self, other):\n        return True\n"),
        ("    size = 1", "    size = 1\n    total = sum"),
        ("LIMIT = 1", "LIMIT = 1\nfrom ._fast import *"),
        ("import os", "from __future__ import annotations\nimport os"),
        # it may do anything
        ("LIMIT = 1", "LIMIT = 1\nos.environ.clear()"),
        ("LIMIT = 1", "LIMIT = 1\nos.sep = 1"),
        ("LIMIT = 1", "LIMIT = 1\n\n\n@cache\ndef new():\n    return 1"),
        ("LIMIT = 1", "LIMIT = 1\n\n\nclass New:\n    pass"),
    ],
)
def test_other_changes_may_alter_what_an_import_does(old: str, new: str) -> None:
    changed = CORE.replace(old.encode(), new.encode())
    assert changed != CORE
    assert not ModuleShape.of(CORE).is_part_of(ModuleShape.of(changed))


def test_a_name_may_be_known_before_where_others_are_provided() -> None:
    for provides in (b"from .core import *\n", b"def __getattr__(name):\n    pass\n"):
        assert not ModuleShape.of(provides).is_part_of(ModuleShape.of(provides + b"from numpy import unique\n"))


def test_lines_inside_functions_are_known_of_what_is_python() -> None:
    shapes = shapes_of({"core.py": CORE, "old.py": b"print 1\n"})
    assert {path: shape.bodies for path, shape in shapes.items()} == {"core.py": {13, 18, 19}}
