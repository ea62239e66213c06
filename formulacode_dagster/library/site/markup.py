"""Strangers' Markdown and patches as HTML: rendered without raw HTML, images and any address that is not http(s)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markupsafe import Markup
    from pygments.lexer import Lexer

MOST_CHARACTERS = 200_000
"""Longer texts are shown as they are, and longer patches without colours."""
LEXERS = {
    ".py": "python",
    ".pyi": "python",
    ".pyx": "cython",
    ".pxd": "cython",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".rs": "rust",
    ".toml": "toml",
    ".cfg": "ini",
    ".json": "json",
    ".sh": "bash",
}
"""Lexers by suffix: few, since a stranger's patch chooses among them."""
FENCES = frozenset({*LEXERS.values(), "pycon", "pytb", "diff", "console"})
_FILE = re.compile(r"\+\+\+ (?:b/)?(.*?)\t?$")
HEADING_SHIFT = 2
"""Headings of a text come below those of the page."""


def markdown(text: str) -> Markup:
    """Return *text* as HTML: CommonMark and tables, all of whose HTML is text."""
    from markupsafe import Markup, escape

    if len(text) > MOST_CHARACTERS:
        return Markup('<pre class="text">{}</pre>').format(escape(text))
    renderer = _renderer()
    tokens = renderer.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + HEADING_SHIFT)}"
        if "right" in str(token.attrs.pop("style", "")):
            # the policy of the page allows no inline style
            token.attrSet("class", "n")
        if token.type == "code_block":
            token.attrSet("tabindex", "0")
        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrSet("rel", "noreferrer noopener nofollow")
    return Markup(renderer.renderer.render(tokens, renderer.options, {}))  # noqa: S704 - html is off: tags are its own


@functools.cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    class SafeMarkdown(MarkdownIt):
        """Links lead to http and https only."""

        def validateLink(self, url: str) -> bool:
            return url.lower().startswith(("https://", "http://"))

    options = {"html": False, "linkify": False, "highlight": _fenced}
    # an image would be a request to its host
    return SafeMarkdown("commonmark", options).enable("table").disable(["image", "html_inline", "html_block"])


def _fenced(code: str, language: str, _: str) -> str:
    """Code of a fence, with colours for a known *language*; the keyboard can scroll it."""
    lines = _coloured(code, language if language in FENCES else "")
    return '<pre tabindex="0"><code>' + "\n".join(lines) + "</code></pre>\n"


def patch_lines(patch: str) -> Iterator[tuple[str, Markup]]:
    """Yield each line of *patch* with its kind (`added`, `removed`, `hunk`, `file` or ``), coloured by its language."""
    from markupsafe import Markup, escape

    has_colours, lexer, body = len(patch) <= MOST_CHARACTERS, "", list[str]()

    def coloured() -> Iterator[tuple[str, Markup]]:
        code = _coloured("\n".join(line[1:] for line in body), lexer) if body else ()
        for line, html in zip(body, code, strict=True):
            # *html* is the lexer's, which escapes
            yield _kind(line), escape(line[:1]) + Markup(html)  # noqa: S704
        body.clear()

    is_header = True
    for line in patch.split("\n"):
        if not is_header and line[:1] in ("+", "-", " "):
            body.append(line)
            continue
        yield from coloured()
        if line.startswith("@@"):
            is_header = False
        elif line.startswith("diff --git"):
            is_header = True
        if found := _FILE.match(line):
            name = found[1]
            lexer = LEXERS.get(name[name.rfind(".") :], "") if has_colours else ""
        yield ("hunk" if line.startswith("@@") else "file" if is_header and line else ""), escape(line)
    yield from coloured()


def _kind(line: str) -> str:
    return {"+": "added", "-": "removed"}.get(line[:1], "")


def _coloured(code: str, language: str) -> list[str]:
    """Lines of *code* as HTML, escaped; without colours if the lexer would change the number of lines."""
    from markupsafe import escape
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter

    lines = code.split("\n")
    if language:
        # a lexer takes a carriage return for the end of a line
        html: list[str] = highlight(code.replace("\r", ""), _lexer(language), HtmlFormatter(nowrap=True)).split("\n")
        if html and not html[-1] and len(html) == len(lines) + 1:
            html.pop()
        if len(html) == len(lines):
            return html
    return [str(escape(line)) for line in lines]


@functools.cache
def _lexer(language: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
