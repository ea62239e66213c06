from __future__ import annotations

from formulacode_dagster.building.suites.reading import read_suite
from formulacode_dagster.building.suites.scopes import MOST_VALUES, Binding, Function, PlainValue, Unknown, read_scope

PLAIN, ANY = Binding(PlainValue(), certain=False), Binding(Unknown(), certain=False)


def test_values_under_a_condition_are_kept_once_and_in_order() -> None:
    scope = read_scope("t = 1\nif x:\n    def t(): pass\n" + "    t = 1\n" * 1000 + "u = 1\n")
    assert scope.names == {"t": [Binding(Function("t"), certain=False), PLAIN], "u": [Binding(PlainValue())]}


def test_a_name_with_too_many_values_may_be_anything() -> None:
    classes = "".join(f"    class T:\n        a{number} = 1\n" for number in range(MOST_VALUES + 1))
    assert len(read_scope(f"if x:\n{classes[: classes.rindex('    class')]}").names["T"]) == MOST_VALUES
    assert read_scope(f"if x:\n{classes}").names["T"] == [ANY]


def test_names_that_stand_for_others_twice_do_not_double(tree_of) -> None:
    aliases = "".join(
        f"    a{n + 1} = a{n}\n    a{n + 1} = b{n}\n    b{n + 1} = b{n}\n    b{n + 1} = a{n}\n" for n in range(40)
    )
    text = f"def time_x(): pass\ndef a0(): pass\ndef b0(): pass\nif x:\n{aliases}    time_y = a40\n"
    suite = read_suite(tree_of({"benchmarks/__init__.py": "", "benchmarks/one.py": text}), "benchmarks")
    assert suite.certain == {"one.time_x"}
    assert suite.mentions("one.time_y")
