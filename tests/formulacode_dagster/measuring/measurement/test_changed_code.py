import pytest

from formulacode_dagster.measuring.measurement.changed_code import changed_code, changes_build
from formulacode_dagster.measuring.measurement.changed_lines import Source
from formulacode_dagster.measuring.measurement.patch import changed_files
from formulacode_dagster.models.measurement import Arm

CORE = '''"""Docs."""
import os
LIMIT = 10
__version__ = "1"


def alpha(x):
    """Doc."""
    return x + 1


def beta(x):
    def inner(y):
        return y * 2
    return inner(x) + LIMIT


class Thing:
    size = 1

    @property
    def area(self):
        return self.size ** 2

    def other(self):
        return 0
'''


@pytest.fixture
def changed(tmp_path, git_patch):
    def find(before, after, benchmark_dir="benchmarks", **options):
        patch = git_patch(tmp_path, before, after)
        return changed_code(
            changed_files(patch),
            base={path: text.encode() for path, text in before.items()},
            oracle={path: text.encode() for path, text in after.items() if text is not None},
            benchmark_dir=benchmark_dir,
            **options,
        )

    return find


@pytest.mark.parametrize(
    ("old", "new", "base", "oracle"),
    [
        ("return x + 1", "return 1 + x", {9}, {9}),
        ("return y * 2", "return y + y", {14}, {14}),
        ("return inner(x) + LIMIT", "return LIMIT + inner(x)", {15}, {15}),
        ("return self.size ** 2", "return self.size * self.size", {23}, {23}),
        # what changed outside functions runs where it is read
        ("LIMIT = 10", "LIMIT = 11", {3, 15}, {3, 15}),
        ("    size = 1\n", "    size = 2\n", {19, 23}, {19, 23}),
        ("    size = 1\n", "    __slots__ = ()\n", {19, 23}, {19, 23, 26}),
        # what changed before a body, runs with all of it
        ("class Thing:", "class Thing(dict):", {23, 26}, {23, 26}),
        ("    def other", "    @staticmethod\n    def other", set(), {27}),
        ("def beta(x):", "def beta(x, y=0):", {13, 14, 15}, {13, 14, 15}),
        ("    def other(self):\n        return 0\n", "", {26}, set()),
        ('"""Docs."""\n', '"""Docs."""\n\n\ndef new():\n    return 1\n', set(), {5}),
        # a statement runs as a whole, whichever of its lines changed, and `else:` with what follows
        ("return x + 1", "return sum(\n        (x, 2)\n    )", {9}, {9, 10, 11}),
        ("return x + 1", "try:\n        return 2\n    finally:\n        x += 1", {9}, {9, 10, 12}),
        # an import runs where the module is imported
        ("import os", "import os\nimport sys", set(), {3}),
    ],
)
def test_the_lines_that_change_in_meaning_are_found_on_both_sides(changed, old, new, base, oracle):
    found = changed({"pkg/core.py": CORE}, {"pkg/core.py": CORE.replace(old, new)})
    assert found.base.get("pkg/core.py", set()) == base
    assert found.oracle.get("pkg/core.py", set()) == oracle
    assert found.untraceable == ()


@pytest.mark.parametrize(
    ("old", "new", "entries"),
    [
        ("return x + 1", "x += 1\n    return x", {8, 9}),
        ("return y * 2", "return y + y", {14}),
        ("def alpha(x):", "@functools.cache\ndef alpha(x):", {8, 9}),
        ("import os\n", "import os\nimport sys\n", set()),
        ("    return x + 1", "    return os.x", {8, 9}),
    ],
)
def test_changed_functions_have_entries_on_the_base(changed, old, new, entries):
    found = changed({"pkg/core.py": CORE}, {"pkg/core.py": CORE.replace(old, new)})
    assert found.entries == ({"pkg/core.py": entries} if entries else {})
    assert found.watched == {path: found.base.get(path, set()) | lines for path, lines in found.entries.items()}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("LIMIT = 10", "LIMIT = 11", id="constant"),
        pytest.param("def beta(x):", "def new(x):\n    return 1\n\n\ndef beta(x):", id="function"),
        pytest.param(
            "        return y * 2\n", "        return (lambda: y)()\n\n    def more(z):\n        z()\n", id="closure"
        ),
        pytest.param("    def other", "    def total(self):\n        return 0\n\n    def other", id="method"),
        pytest.param("class Thing:", "class Thing(dict):", id="bases"),
        pytest.param("import os", "from pkg.fast import alpha", id="import-of-a-name-of-the-base"),
        pytest.param("import os", "from pkg.fast import *", id="import-of-all"),
        pytest.param("LIMIT = 10", "LIMIT = 10\nif os:\n    LIMIT = 11", id="condition"),
    ],
)
def test_without_entries_other_code_of_the_base_may_reach_the_change(changed, old, new):
    after = CORE.replace(old, new).replace("return x + 1", "return 1 + x")
    assert changed({"pkg/core.py": CORE}, {"pkg/core.py": after}).entries is None


def test_tests_take_no_entries_away_and_compiled_code_does(changed):
    before = {"pkg/core.py": CORE, "tests/test_it.py": "class TestIt:\n    x = 1\n"}
    after = {
        "pkg/core.py": CORE.replace("return x + 1", "return 1 + x"),
        "tests/test_it.py": "class TestIt:\n    x = 2\n\n    def test_it(self):\n        assert self.x\n",
    }
    assert changed(before, after).entries == {"pkg/core.py": {8, 9}}
    assert changed({**before, "pkg/c.pyx": "a\n"}, {**after, "pkg/c.pyx": "b\n"}).entries is None
    assert changed(before, {**after, "pkg/fast.py": "def fast():\n    return 1\n"}).entries is None


FIRST = [
    ("x: int\n    global y\n    y = 1\n    z = 2", {2, 3, 4}),
    ("try:\n        x = 1\n    finally:\n        y = 1", {2, 3}),
    ("while True:\n        pass\n        x = 1\n        y = 1", {2, 3, 4}),
    ("for x in (\n        1,\n    ):\n        y = 1", {2, 3, 4}),
    ("return sum(\n        [1]\n    )", {2, 3, 4}),
    ('"""Doc."""', {2}),
]


@pytest.mark.parametrize(("body", "lines"), FIRST)
def test_one_of_the_entry_lines_runs_whenever_a_function_is_called(body, lines):
    source = f"def f():\n    {body}\n"
    assert Source(source.encode()).entry_lines("f") == lines


def test_a_comment_in_a_function_that_changed_elsewhere_is_no_line_of_it(changed):
    new = "# more\n    x += 1\n    # less\n    return x + 1"
    found = changed({"pkg/core.py": CORE}, {"pkg/core.py": CORE.replace("return x + 1", new)})
    assert (found.base, found.oracle) == ({}, {"pkg/core.py": {10}})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return x + 1", "return x + 1  # one more"),
        ('"""Doc."""', '"""Document."""'),
        ("return x + 1", "return (x + 1)"),
        ('__version__ = "1"', '__version__ = "2"'),
        ("def alpha(x):", "def alpha(x: int) -> int:"),
    ],
)
def test_comments_docstrings_formatting_and_versions_are_no_change(changed, old, new):
    found = changed({"pkg/core.py": CORE}, {"pkg/core.py": CORE.replace(old, new)})
    assert (found.base, found.oracle, found.untraceable) == ({}, {}, ())


def test_a_changed_name_that_nothing_in_the_file_reads_cannot_be_traced(changed):
    found = changed({"a.py": "X = 1\n"}, {"a.py": "X = 2\n"})
    assert found.untraceable == ("a.py: module level",)
    # importing executes it, which tests are seen to do
    assert found.hidden == ()


@pytest.mark.parametrize("path", ["src/fast.c", "pkg/_core.pyx", "pkg/_core.pyx.in", "lib.rs", "a.f90", "x.CPP"])
def test_compiled_sources_cannot_be_traced(changed, path):
    assert changed({path: "a\n"}, {path: "b\n"}).untraceable == (path,)


@pytest.mark.parametrize("path", ["MANIFEST.in", "README.md", "benchmarks/bench.py", "benchmarks/x.c", "pkg/data.json"])
def test_the_suite_and_what_is_no_code_do_not_count(changed, path):
    found = changed({path: "a = 1\n"}, {path: "a = 2\n"})
    assert not {**found.base, **found.oracle}
    assert found.untraceable == ()


@pytest.mark.parametrize("path", ["tests/conftest.py", "pkg/tests/helpers.py", "doc/conf.py", "test_all.py"])
def test_what_a_test_or_the_documentation_does_at_import_hides_nothing(changed, path):
    found = changed({"core.py": CORE, path: "A = 1\n"}, {"core.py": CORE.replace("x + 1", "1 + x"), path: "A = 2\n"})
    assert (found.untraceable, set(found.base)) == ((), {"core.py", path})


def test_a_build_file_counts_only_when_nothing_else_changed(changed):
    assert changed({"setup.py": "f = 1\n"}, {"setup.py": "f = 2\n"}).untraceable == ("setup.py",)


def test_a_build_file_beside_a_changed_function_does_not_count(changed):
    before = {"setup.py": "f = 1\n", "pkg/core.py": CORE}
    found = changed(before, {"setup.py": "f = 2\n", "pkg/core.py": CORE.replace("x + 1", "x + 2")})
    assert found.untraceable == ()
    assert found.base == {"pkg/core.py": {9}}


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("setup.py", True),
        ("pkg/pyproject.toml", True),
        ("meson.options", True),
        ("cmake/flags.cmake", True),
        ("pkg/core.py", False),
        ("README.md", False),
    ],
)
def test_a_build_file_may_have_the_same_sources_compiled_otherwise(tmp_path, git_patch, path, may):
    patch = git_patch(tmp_path, {path: "f = 1\n", "pkg/a.py": ""}, {path: "f = 2\n", "pkg/a.py": "x = 1\n"})
    assert changes_build(changed_files(patch)) is may


@pytest.mark.parametrize("path", ["pyproject.toml", "setup.cfg", "meson.options"])
def test_what_mostly_declares_something_else_is_no_change_of_code(changed, path):
    assert changed({path: "f = 1\n"}, {path: "f = 2\n"}).untraceable == ()


def test_python_that_was_compiled_into_an_extension_cannot_be_traced(changed):
    after = {"src/pkg/core.py": CORE.replace("x + 1", "x + 2")}
    found = changed({"src/pkg/core.py": CORE}, after, extensions=("pkg.core", "numpy.core"))
    assert found.untraceable == found.hidden == ("src/pkg/core.py",)


def test_a_function_that_a_decorator_compiles_cannot_be_traced(changed):
    before = "import numba\n\n@numba.njit(cache=True)\ndef f(x):\n    return x\n"
    found = changed({"a.py": before}, {"a.py": before.replace("return x", "return x + x")})
    assert found.untraceable == found.hidden == ("a.py:f",)


def test_python_that_this_interpreter_cannot_read_is_not_traced(changed):
    assert changed({"a.py": "print 1\n"}, {"a.py": "print 2\n"}).untraceable == ("a.py",)


def test_a_sum_too_long_for_the_parser_costs_its_file_the_trace(changed):
    long = "TOTAL = " + " + ".join(["a"] * 5000) + "\n"
    found = changed({"a.py": long, "b.py": CORE}, {"a.py": f"{long}b = 1\n", "b.py": CORE.replace("x + 1", "x + 2")})
    assert found.untraceable == ("a.py",)
    assert set(found.oracle) == {"b.py"}


def test_a_renamed_file_is_compared_with_what_it_was(changed):
    old, new = "pkg/old/core.py", "pkg/new/core.py"
    found = changed({old: CORE}, {old: None, new: CORE.replace("x + 1", "x + 2")})
    assert found.base == {old: {9}}
    assert found.oracle == {new: {9}}


def test_a_function_that_only_moves_to_another_file_is_no_change(changed):
    kept, moved = "def kept(x):\n    return x\n", "def moved(x):\n    return [x]\n"
    after = {"a.py": kept, "b.py": f"import math\n\n\n{moved}\n\ndef new(x):\n    return {{x}}\n"}
    found = changed({"a.py": f"{kept}\n\n{moved}", "b.py": "import math\n"}, after)
    assert (found.base, found.oracle) == ({}, {"b.py": {9}})


def test_a_copy_of_the_old_code_among_the_tests_is_no_move(changed):
    old = "def total(x):\n    return x\n"
    found = changed({"a.py": old}, {"a.py": old.replace("return x", "return [x]"), "tests/test_a.py": old})
    assert (found.base["a.py"], found.oracle["a.py"]) == ({2}, {2})


@pytest.mark.parametrize("build_file", ["setup.py", "pyproject.toml"])
def test_code_that_a_changed_build_may_compile_elsewhere_is_no_move(changed, build_file):
    moved = "def total(x):\n    return x\n"
    before = {"pkg/utils.py": moved, build_file: "modules = []\n"}
    found = changed(before, {"pkg/utils.py": "", "pkg/_fast.py": moved, build_file: "modules = [1]\n"})
    assert (found.base["pkg/utils.py"], found.oracle["pkg/_fast.py"]) == ({2}, {2})


def test_code_that_goes_into_a_compiled_file_is_no_move(changed):
    moved = "def total(x):\n    return x\n"
    before, after = {"pkg/utils.py": moved, "pkg/_fast.py": ""}, {"pkg/utils.py": "", "pkg/_fast.py": moved}
    found = changed(before, after, extensions=("pkg._fast",))
    assert (found.base, found.untraceable) == ({"pkg/utils.py": {2}}, ("pkg/_fast.py",))


def test_a_copy_of_the_old_code_outside_of_the_package_is_no_move(changed):
    old = "def total(x):\n    return x\n"
    found = changed({"pkg/a.py": old}, {"pkg/a.py": old.replace("return x", "return [x]"), "scripts/compare.py": old})
    assert (found.base["pkg/a.py"], found.oracle["pkg/a.py"]) == ({2}, {2})


def test_a_package_that_moves_below_a_folder_of_sources_is_no_change(changed):
    found = changed({"pkg/core.py": CORE}, {"pkg/core.py": None, "src/pkg/kernel.py": CORE})
    assert (found.base, found.oracle) == ({}, {})


def test_functions_of_a_new_file_are_found_on_the_oracle_side(changed):
    found = changed({"a.py": ""}, {"b.py": "def f():\n    return 1\n"})
    assert found.base == {}
    assert found.oracle == {"b.py": {2}}


def test_a_benchmark_of_the_change_would_use_a_public_name_of_its_file(changed):
    before = {"pkg/core.py": "def _hidden(x):\n    return x\n\n\ndef run():\n    pass\n\n\nclass Solver:\n    pass\n"}
    pyx = "cpdef double fast_norm(double[:] x):\n    return 1\n"
    tests = {"pkg/tests/test_core.py": "def helper_of_tests():\n    pass\n"}
    after = {**before, "pkg/core.py": before["pkg/core.py"].replace("return x", "return 2 * x")}
    found = changed(
        {**before, **tests, "pkg/_c.pyx": pyx},
        {**after, **{k: v + "\n" for k, v in tests.items()}, "pkg/_c.pyx": pyx.replace("1", "2")},
    )
    assert found.names == {"Solver", "fast_norm"}


def test_changed_functions_have_their_lines_and_spans_on_either_side(changed):
    after = CORE.replace("return self.size ** 2", "return pow(self.size, 2)").replace(
        "def alpha(x):", "def gamma(x):\n    return x\n\n\ndef alpha(x):"
    )
    found = changed({"pkg/core.py": CORE, "tests/test_it.py": CORE}, {"pkg/core.py": after, "tests/test_it.py": after})
    assert sorted(function.name for function in found.functions) == ["pkg/core.py:Thing.area", "pkg/core.py:gamma"]
    assert found.spans(Arm.BASE) == {"pkg/core.py": [(21, 23)]}
    assert sorted(found.spans(Arm.ORACLE)["pkg/core.py"]) == [(7, 8), (25, 27)]
    (area,) = (function for function in found.functions if "area" in function.name)
    assert area.lines == {Arm.BASE: {"pkg/core.py": frozenset({23})}, Arm.ORACLE: {"pkg/core.py": frozenset({27})}}


@pytest.mark.parametrize("benchmark_dir", ["benchmarks", "."])
def test_of_a_suite_in_the_root_tests_and_files_named_for_benchmarks_are_left_out(changed, benchmark_dir):
    before, after = ("def changed_name(n):\n    return n + 1\n", "def changed_name(n):\n    return 1 + n\n")
    own = ["pkg/core.py", "pkg/workbench.py"]
    others = ["benchmarks/suite.py", *(["bench_core.py", "tests/test_core.py"] if benchmark_dir == "." else [])]
    found = changed(
        dict.fromkeys([*own, *others], before), dict.fromkeys([*own, *others], after), benchmark_dir=benchmark_dir
    )
    assert set(found.base) == set(found.oracle) == set(own)
    assert found.names == {"changed_name"}
