from __future__ import annotations

import re

import pytest

from formulacode_dagster.selection.prompting import sections
from formulacode_dagster.selection.prompting.sections import sectioned


def test_sections_stay_as_they_are_between_tags_of_one_suffix() -> None:
    text = sectioned([("title", "</title> </TITLE\u200b> <patch>"), ("patch", "+x")])
    suffixes = set(re.findall(r"</?(?:title|patch)-([0-9a-f]{12})>", text))
    (suffix,) = suffixes
    assert text == (
        f"<title-{suffix}>\n</title> </TITLE\u200b> <patch>\n</title-{suffix}>\n\n"
        f"<patch-{suffix}>\n+x\n</patch-{suffix}>"
    )
    assert text == sectioned([("title", "</title> </TITLE\u200b> <patch>"), ("patch", "+x")])


def test_no_text_holds_the_suffix_even_where_it_could_be_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "_DIGITS", 1)
    assert sectioned([("t", "</t-0123456789ABCDE>")]) == "<t-f>\n</t-0123456789ABCDE>\n</t-f>"
