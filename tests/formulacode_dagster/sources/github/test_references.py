"""References of a text, and text that only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulacode_dagster.sources.github.references import LARGEST_NUMBER, ThreadReference, references_in
from tests.support.clock import at_most_cpu

HOME = "acme/wheels"


def found(text: str, **more: int) -> list[str]:
    return [str(reference) for reference in references_in(text, HOME, **more)]


@pytest.mark.parametrize(
    "text",
    [
        "#12",
        "see (#12).",
        "[#12] and gh-12",
        "GH-12,",
        "Fixes: #12!",
        "#12's author",
        "> #12",
        "acme/wheels#12 and ACME/Wheels#12",
        "https://github.com/acme/wheels/issues/12",
        "https://www.github.com/acme/wheels/pull/12/files#diff-3",
        "<https://github.com/acme/wheels/issues/12#issuecomment-998>",
        "github.com/acme/wheels/issues/12?q=1#99",
        "[the issue](https://github.com/acme/wheels/issues/12 'a title')",
        '<a href="https://github.com/acme/wheels/pull/12">x</a>',
        "\r\n```\r\n#9\r\n```\r\n#12",
    ],
)
def test_what_github_links_is_found(text):
    assert [reference.lower() for reference in found(text)] == ["acme/wheels#12"]


@pytest.mark.parametrize(
    "text",
    [
        "`#12`",
        "``a ` #12``",
        "```\n#12\n```",
        "~~~text\nacme/wheels#12",
        "> ```\n> #12\n> ```",
        "<!-- Fixes #12 -->",
        "<!-- never closed #12",
        "<pre>\n#12 </pre>",
        "<code>#12</code>",
        '<img alt="#12" title="#13">',
        "me#12@example.org",
        "a/b#12@example.org",
        "gh-12@example.org",
        "colour #123456",
        "x#12",
        "&#12;",
        "\\#12",
        "/#12",
        "#012",
        "#0",
        "#1.2",
        "#12a",
        "##12",
        "https://example.org/a/b#12",
        "https://gitlab.com/acme/wheels/issues/12",
        "[#12](https://gitlab.com/acme/wheels/issues/12)",
        "[back](#12)",
        "https://github.com/acme/wheels/commit/12",
        "https://github.com/acme/wheels/issues/new",
        "and/or#12",
        "docs/install.md#12",
        "src/wheels/core#12",
        "tests/core.py#12",
        "1/2#3",
        "a-/b#12",
        "a/..#12",
        f"#{LARGEST_NUMBER + 1}",
        "GH-12-x",
    ],
)
def test_what_only_looks_like_a_reference_is_not(text):
    assert found(text) == []


def test_they_come_in_order_each_once():
    assert found("b/c#2 #1 acme/wheels#1 B/C#2 plotly/plotly.py#7 #3") == [
        "b/c#2",
        "acme/wheels#1",
        "plotly/plotly.py#7",
        "acme/wheels#3",
    ]


def test_six_digits_are_a_colour_only_where_numbers_have_not_come_that_far():
    assert found("#123456", reached=99_999) == []
    assert found("#123456", reached=100_000) == ["acme/wheels#123456"]
    assert found("acme/wheels#123456") == ["acme/wheels#123456"]


OWNERS = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("src", "lib", "doc", "docs", "test", "tests", "tools", "bin", "and", "on", "yes")
)
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}[0-9]", fullmatch=True)
NUMBERS = st.integers(1, 99_999)
REFERENCES = st.builds(lambda owner, name, n: ThreadReference(f"{owner}/{name}", n), OWNERS, NAMES, NUMBERS)
FORMS = st.sampled_from(
    ["{0}", "({0})", "https://github.com/{1}/issues/{2}", "https://github.com/{1}/pull/{2}#issuecomment-1", "[{0}]"]
)
PROSE = st.text(st.sampled_from("ab ,.!\n*_"), max_size=20)


@pytest.mark.slow
@given(st.lists(st.tuples(REFERENCES, FORMS, PROSE), max_size=8))
def test_what_is_written_is_read(parts):
    text = "".join(f"{words} {form.format(part, part.repository, part.number)} " for part, form, words in parts)
    assert references_in(text, HOME) == tuple(dict.fromkeys(part for part, _, _ in parts))


@given(
    st.text(st.sampled_from("#12 /abGH-.@"), max_size=60),
    st.sampled_from(["``{}``", "\n\n```\n{}\n```\n", "\n~~~py\n{}\n~~~\n", "<!--{}-->", "<pre>{}</pre>"]),
)
def test_nothing_in_code_or_comments_is_a_reference(inside, form):
    text = f"a {form.format(inside.replace('--', '') or '#1')} b"
    assert references_in(text, HOME) == ()


@given(st.text(max_size=300))
def test_any_text_gives_names_that_can_be_asked_for(text):
    for reference in references_in(text, HOME):
        assert 1 <= reference.number <= LARGEST_NUMBER
        assert reference.repository.count("/") == 1


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"#{number}" for number in range(1, 10_001)),
        "#" * 65_536,
        "a/" * 32_768,
        "a@" * 32_768,
        "[](" * 20_000,
        "<a " * 20_000,
        "<pre>" * 13_000,
        "https://github.com/" * 3_000,
        "`" * 65_536,
        "<!--" * 16_000,
    ],
)
def test_reading_takes_a_bounded_time(text):
    with at_most_cpu(2):
        references_in(text, HOME)
