import ast

import pytest

from formulacode_dagster.building.suites.harness.mutations import KINDS, mutated, mutations
from formulacode_dagster.models.correctness import MutationKind

EVERY_LINE = frozenset(range(1, 100))


def altered(source, kind):
    """*source* with each mistake of a kind."""
    places = [place for place in mutations(source.encode(), EVERY_LINE) if place["kind"] == kind]
    return [ast.unparse(mutated(source.encode(), place)) for place in places]


def test_the_kinds_are_those_that_are_stored():
    assert list(KINDS) == [kind.value for kind in MutationKind]


@pytest.mark.parametrize(
    ("kind", "source", "mistakes"),
    [
        ("returned", "def f():\n    return g()", ["def f():\n    return None"]),
        ("returned", "def f():\n    return\ndef g():\n    return None", []),
        ("compared", "x = a < b", ["x = a >= b"]),
        ("compared", "x = a is not b", ["x = a is b"]),
        ("compared", "x = a < b < c", []),
        ("computed", "x = a + b * c", ["x = a - b * c", "x = a + (b + c)"]),
        ("computed", "x //= 2", ["x *= 2"]),
        ("computed", "x = 'a %s' % b\ny = a @ b", []),
        ("constant", "x = f(3, True)", ["x = f(4, True)", "x = f(3, False)"]),
        ("constant", "x = 'text', None, b'bytes', ...", []),
        ("deleted", "self.x = 1\nf()", ["pass\nf()", "self.x = 1\npass"]),
        ("deleted", "x += 1", ["pass"]),
        ("deleted", "x = 1\n'documentation'\nawait_ = x", []),
        # of these, older interpreters tell other places
        ("constant", "x = f'{a + 1}'", []),
    ],
)  # fmt: skip
def test_mistakes_of_each_kind(kind, source, mistakes):
    assert altered(source, kind) == mistakes


def test_only_requested_lines_are_mutated_most_noticeable_first():
    source = b"def f(x):\n    if x < 1:\n        x += 1\n    return x\n"
    assert {place["line"] for place in mutations(source, frozenset({3}))} == {3}
    assert [place["kind"] for place in mutations(source, EVERY_LINE)] == [
        "returned", "compared", "computed", "constant", "constant", "deleted",
    ]  # fmt: skip


def test_what_cannot_be_read_has_none():
    assert mutations(b"def f(:", EVERY_LINE) == []
    assert mutations(b"f(" * 3000 + b")" * 3000, EVERY_LINE) == []


def test_a_place_that_is_not_there_alters_nothing():
    assert mutated(b"x = 1\n", {"line": 1, "column": 0, "kind": "returned"}) is None
    assert mutated(b"x = 1\n", {"line": 7, "column": 4, "kind": "constant"}) is None
