import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulacode_dagster.sources.markdown import blocks, map_prose, without_boilerplate


@given(st.text(alphabet="`~ab \n>-<!", max_size=80))
def test_blocks_together_are_the_text(text: str) -> None:
    assert "".join(block.text for block in blocks(text)) == text
    assert map_prose(text, lambda part: part) == text


def test_prose_is_what_is_neither_fenced_nor_inline_code() -> None:
    text = "one `two` three\n```\nfour\n```\nfive ``si`x`` seven\n~~~py\neight"
    assert map_prose(text, str.upper) == "ONE `two` THREE\n```\nfour\n```\nFIVE ``si`x`` SEVEN\n~~~py\neight"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a <!-- hint --> b", "a  b"),
        ("a\r\n<!-- one\r\ntwo -->\r\nb", "a\n\nb"),
        ("a <!-- never closed\nb", "a"),
        ("<!--\n```python\nexample()\n```\n-->\nreal", "real"),
        ("```html\n<!-- code -->\n```", "```html\n<!-- code -->\n```"),
        ("`<!--` opens a comment", "`<!--` opens a comment"),
        ("Why\n\n- [x] ran `pytest`\n- [ ] added docs\n", "Why"),
        ("## What\nFaster\n\n## Checklist\n- [ ] tests\n\n## Notes\n\n### Deeper\n", "## What\nFaster"),
        ("## Outer\n### Inner\ntext", "## Outer\n### Inner\ntext"),
        ("## Code\n```\n# no heading\n```", "## Code\n```\n# no heading\n```"),
        ("Fast\n\nCo-authored-by: Jane Doe <jane@example.org>\n", "Fast"),
        ("<details><summary>Timings</summary>\n\n1 ms\n</details>", "Timings\n\n1 ms"),
        ("", ""),
    ],
)
def test_boilerplate_is_removed_and_code_is_not(text: str, rest: str) -> None:
    assert without_boilerplate(text) == rest
