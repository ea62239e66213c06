"""Statements and patches of strangers as HTML."""

from __future__ import annotations

import re

import pytest

from formulacode_dagster.library.site.markup import MOST_CHARACTERS, markdown, patch_lines
from tests.support.site import HOSTILE

TAGS = re.compile(r"<([a-z0-9]+)")


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "<img src=x onerror=alert(1)>",
        "<div onclick=x>\n\nraw\n\n</div>",
        "![picture](https://evil.example/x.png)",
        "[click](javascript:alert(1))",
        "[click](JaVaScRiPt&colon;alert(1))",
        "[click](data:text/html;base64,PHNjcmlwdD4=)",
        "[click](//evil.example)",
        "[a][b]\n\n[b]: javascript:alert(1)",
        '[x](https://ok.example/ "onmouseover=alert(1)")',
        "<javascript:alert(1)>",
        "```html\n<script>alert(1)</script>\n```",
        '```"onload=x\n<script>\n```',
        "    <script>alert(1)</script>",
        "`<script>`",
        "# <script>",
    ],
)
def test_no_markup_of_a_stranger_is_kept(text: str) -> None:
    html = str(markdown(text))
    assert set(TAGS.findall(html)) <= {"p", "a", "pre", "code", "h3", "em", "strong"}
    assert not re.search(r"<[^>]*\son\w+=", html)
    assert all(href.startswith(("https://", "http://")) for href in re.findall(r'href="([^"]*)"', html))


def test_markdown_is_rendered_below_the_headings_of_the_page() -> None:
    html = str(markdown("# Slow\n\n**very**, see [it](https://x.example)\n\n|a|n|\n|---|--:|\n|1|2|\n"))
    assert "<h3>Slow</h3>" in html
    assert "<strong>very</strong>" in html
    assert '<a href="https://x.example" rel="noreferrer noopener nofollow">it</a>' in html
    # the policy of the pages allows no inline style
    assert '<td class="n">2</td>' in html
    assert "style=" not in html


def test_code_has_colours_and_can_be_scrolled_by_the_keyboard() -> None:
    html = str(markdown("```python\ndef f(): return '<b>'\n```\n\n    plain\n"))
    assert '<pre tabindex="0"><code><span class="k">def</span>' in html
    assert "&lt;b&gt;" in html
    assert html.count('tabindex="0"') == 2


def test_a_very_long_text_is_shown_as_it_is() -> None:
    html = str(markdown("*<b>*" * MOST_CHARACTERS))
    assert html.startswith('<pre class="text">*&lt;b&gt;*')


PATCH = """\
diff --git a/f.py b/f.py
index 1..2 100644
--- a/f.py
+++ b/f.py
@@ -1,3 +1,3 @@ def <b>
 def f(x):\r
-    return "<script>"  # é
+    return '</script>'
--- x
\\ No newline at end of file
diff --git a/n.unknown b/n.unknown
--- a/n.unknown
+++ b/n.unknown
@@ -1 +1 @@
-def <a>
+def <b>
"""


def test_lines_of_a_patch_have_kinds_and_the_colours_of_their_language() -> None:
    lines = list(patch_lines(PATCH))
    assert [kind for kind, _ in lines] == [
        *("file", "file", "file", "file", "hunk", "", "removed", "added", "removed", ""),
        *("file", "file", "file", "hunk", "removed", "added", ""),
    ]
    told = "\n".join(str(html) for _, html in lines)
    assert '<span class="k">return</span>' in told
    assert "+def &lt;b&gt;" in told
    assert set(TAGS.findall(told)) == {"span"}


def test_a_patch_keeps_every_line_whatever_it_contains() -> None:
    for patch in (HOSTILE, "", "+++ b/f.py\n@@\n+'''\n+\n-x\u2028y\f\v\n+\n", PATCH.replace("f.py", "f.c")):
        without_tags = [re.sub(r"</?span[^>]*>", "", str(html)) for _, html in patch_lines(patch)]
        assert len(without_tags) == len(patch.split("\n"))
