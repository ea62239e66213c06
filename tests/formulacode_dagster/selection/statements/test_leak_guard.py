import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulacode_dagster.selection.statements.leak_guard import Solution, without_references
from formulacode_dagster.selection.statements.solution import leaks

REPOSITORY = "acme/wheels"
HEAD = "abcdef1234567890abcdef1234567890abcdef12"
MERGE = "1234567890abcdef1234567890abcdef12345678"


def cut(text: str) -> str:
    return without_references(text, repository=REPOSITORY, number=77, shas=(MERGE, HEAD))


def test_a_line_of_a_code_block_is_withheld_and_its_neighbours_stay(patch: bytes) -> None:
    text = "Slow:\n\n```python\nrows = load()\nreturn [row for row in rows if row.key in keys]\nsave(rows)\n```\nbad\n"
    guarded = Solution(patch).withhold(text)
    assert guarded == "Slow:\n\n```python\nrows = load()\n[withheld]\nsave(rows)\n```\nbad\n"


def test_a_line_wrapped_over_several_is_withheld_with_all_of_them(patch: bytes) -> None:
    text = "```\nwanted = frozenset(\n    keys\n)\nend()\n```"
    guarded = Solution(patch).withhold(text)
    assert "frozenset" not in guarded
    assert "keys" not in guarded
    assert "end()" in guarded
    assert guarded.count("[withheld]") == 1


def test_plain_lines_of_the_patch_go_with_the_distinctive_ones_beside_them(patch: bytes) -> None:
    text = "```python\n@lru_cache\ndef total(values):\n    result = np.dot(values, self.weight[values])\n```"
    assert Solution(patch).withhold(text) == "```python\n[withheld]\ndef total(values):\n[withheld]\n```"


@pytest.mark.parametrize(
    "text",
    [
        "```diff\n+wanted = frozenset(keys)\n+@lru_cache\n context\n```",
        "```\n@@ -1,2 +1,2 @@\n-a\n+b\n```",
        "```suggestion\n@lru_cache\n```",
        "~~~\ndiff --git a/x b/x\n+@lru_cache\n~~~",
        "```diff\n+wanted = frozenset(keys)\nnever closed",
    ],
)
def test_a_diff_goes_whole(patch: bytes, text: str) -> None:
    guarded = Solution(patch).withhold(text)
    assert guarded.split("\n")[1] == "[withheld]"
    assert "lru_cache" not in guarded
    assert "context" not in guarded


def test_a_diff_of_timings_stays(patch: bytes) -> None:
    text = "```diff\n-  12.3ms  4.1ms  0.33  bench_core.Merge.time_merge\n```"
    assert Solution(patch).withhold(text) == text


def test_in_prose_only_the_place_is_withheld(patch: bytes) -> None:
    text = "I replaced the list by `wanted = frozenset(keys)`, and it is 3x faster."
    guarded = Solution(patch).withhold(text)
    assert guarded == "I replaced the list by [withheld] and it is 3x faster."


def test_text_without_lines_of_the_solution_is_left_alone(patch: bytes) -> None:
    text = "Merging is slow.\n\n```python\nimport wheels\ntable = wheels.Table(rows=10_000, columns=3)\n```\n"
    guarded = Solution(patch).withhold(text)
    assert guarded == text


LINES = [
    "wanted = frozenset(keys)",
    "return [row for row in rows if row.key in wanted]",
    "result = np.dot(values, self.weight[values])",
    "from functools import lru_cache",
    "an ordinary sentence",
    "rows = load()",
    "",
]
FRAMES = [
    "{}",
    "    {}",
    "> {}",
    "- {}",
    "+ {}",
    "see `{}` there",
    "**{}**",
    "```python\n{}\n```",
    "1. {}.",
    "| {} | x |",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(FRAMES)), max_size=12), st.booleans())
def test_what_the_guard_lets_through_never_leaks(parts: list[tuple[str, str]], unclosed: bool) -> None:
    patch = (
        b"diff --git a/w.py b/w.py\n--- a/w.py\n+++ b/w.py\n@@ -0,0 +1,4 @@\n"
        + "".join(f"+{line}\n" for line in LINES[:4]).encode()
    )
    text = "\n".join(frame.format(line) for line, frame in parts) + ("\n```\n" + LINES[0] if unclosed else "")
    assert leaks(Solution(patch).withhold(text), patch) == ()


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("See https://github.com/acme/wheels/pull/77.", "See [link withheld]"),
        ("See https://github.com/acme/wheels/pull/77/files#diff-1 and on", "See [link withheld] and on"),
        ("See [the change](https://github.com/ACME/Wheels/pull/77 'x') there", "See the change there"),
        ("at https://github.com/acme/wheels/pull/778 now", "at [link withheld] now"),
        ("at https://github.com/acme/wheels/commit/99999999 now", "at [link withheld] now"),
        ("at https://github.com/acme/wheels/compare/main...fast now", "at [link withheld] now"),
        ("at https://github.com/wile-e/wheels/tree/fast now", "at [link withheld] now"),
        (f"at https://example.org/build/{MERGE[:12]} now", "at https://example.org/build/[commit withheld] now"),
        ("at https://patch-diff.githubusercontent.com/raw/acme/wheels/pull/77.patch now", "at [link withheld] now"),
        ("at https://api.github.com/repos/acme/wheels/pulls/77 now", "at [link withheld] now"),
        ("at git@github.com:wile-e/wheels.git now", "at [link withheld] now"),
        ("at https://github.com/acme/wheels/blob/main/a.py#L3 now", "at [link withheld] now"),
        ("issue https://github.com/acme/wheels/issues/12 stays", None),
        (f"in {HEAD[:8]} it is", "in [commit withheld] it is"),
        ("the hash 0123abc9 goes", "the hash [commit withheld] goes"),
        ("follow-up of acme/wheels#77 here", "follow-up of [link withheld] here"),
        ("follow-up of #77, here", "follow-up of [link withheld], here"),
        ("#770 and #7 stay", None),
        ("Faster merge (#77)", "Faster merge [link withheld]"),
        ("Fixes #12\n\nFaster", "Faster"),
        ("- closes: #12, #13 and acme/other#14.\n\nFaster", "Faster"),
        ("Resolves https://github.com/acme/wheels/issues/12 by caching", "by caching"),
        ("It closes the file at once", None),
        ("`fixes #12` is code", None),
    ],
)
def test_what_leads_to_the_change_is_removed(text: str, rest: str | None) -> None:
    assert cut(text).strip() == (text if rest is None else rest)
