from __future__ import annotations

import pytest

from formulacode_dagster.selection.classification.evidence import changed_lines, objection_to
from formulacode_dagster.selection.classification.excerpt import excerpt_of_patch

DIFF = """\
diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -1,4 +1,4 @@ def unchanged_heading():
 def total(values):
-    return sum([value for value in values])
+    return sum(values)
+
+++counter
diff --git a/pkg/other.py b/pkg/other.py
--- a/pkg/other.py
+++ b/pkg/other.py
@@ -1 +1 @@
-x = 1
+x = 2
"""


def test_changed_lines_are_those_of_hunks_not_of_headers() -> None:
    assert changed_lines(DIFF) == (
        "return sum([value for value in values])",
        "return sum(values)",
        "++counter",
        "x = 1",
        "x = 2",
    )


@pytest.mark.parametrize(
    "span",
    [
        "return sum(values)",
        "    return sum(values)",
        "+    return sum(values)",
        "value for value in values",
        "x = 2",
        "-x = 1",
        "++counter",
    ],
)
def test_what_stands_in_a_changed_line_is_evidence(span: str) -> None:
    assert objection_to([span], DIFF) == ""


@pytest.mark.parametrize(
    "span",
    [
        "return sum(v)",
        "RETURN SUM(VALUES)",
        "def total(values):",
        "def unchanged_heading():",
        "a/pkg/core.py",
        "return sum(values)\nx = 2",
        "sum",
        "",
        "+",
    ],
)
def test_what_does_not_is_objected_to_by_name(span: str) -> None:
    assert repr(span) in objection_to(["return sum(values)", span], DIFF)


def test_the_mark_of_a_cut_is_no_evidence() -> None:
    whole = DIFF.replace("return sum(values)", f"return sum({'x' * 3_000})")
    shown = excerpt_of_patch(whole.encode(), 6_000).text
    (mark,) = (line for line in shown.splitlines() if "characters left out" in line)
    assert objection_to(["x" * 500], shown) == ""
    assert objection_to([mark], shown) != ""


def test_none_is_objected_to_unless_the_diff_has_no_changed_line() -> None:
    assert "empty" in objection_to([], DIFF)
    renamed = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"
    assert objection_to([], renamed) == ""
    assert objection_to(["made up"], renamed) == ""
