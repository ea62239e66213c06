"""Text that is not written as it is read: encoded, escaped, with invisible characters in it, or turned around."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

_SHORTEST = 12
_BASE64 = re.compile(r"(?<![\w+/=-])[\w+/-]{16,}={0,2}(?![\w+/=-])", re.ASCII)
_HEX = re.compile(r"(?<!\w)(?:[0-9a-fA-F]{2}[ :]?){12,}(?!\w)")
_ESCAPED = re.compile(r"(?:%[0-9a-fA-F]{2}|\\x[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}|&#x?[0-9a-fA-F]{2,4};){4,}")
_DATA = re.compile(r"\bdata:[\w.+-]+/[\w.+-]+[;,]\S+", re.IGNORECASE)
_INVISIBLE = frozenset({"Cf", "Co", "Cn"})
_HARMLESS = frozenset("\ufeff\u200d\u00ad")
"""A mark of byte order, the joiner of emoji, a soft hyphen: editors leave them behind."""


def encoded_spans(text: str) -> Iterator[str]:
    """Spans of *text* with hidden text: base64, hexadecimal digits, escapes, `data:` addresses, and invisible
    characters inside words.
    """
    yield from (match[0] for match in _DATA.finditer(text))
    yield from (match[0] for match in _ESCAPED.finditer(text) if re.search(r"\w", _unescaped(match[0])))
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex)):
        yield from (match[0] for match in pattern.finditer(text) if _is_text(decode, match[0]))
    yield from (
        text[max(0, at - 12) : at + 12]
        for at, character in enumerate(text)
        if unicodedata.category(character) in _INVISIBLE and character not in _HARMLESS
    )


def other_readings(text: str) -> tuple[str, ...]:
    """*text* read backwards, with its letters moved by thirteen, and with the escapes of addresses undone."""
    return text[::-1], codecs.encode(text, "rot13"), unquote(text)


def _is_text(decode: Callable[[str], bytes], span: str) -> bool:
    try:
        content = decode(span)
    except (ValueError, binascii.Error):
        return False
    return len(content) >= _SHORTEST and all(32 <= byte < 127 or byte in b"\t\r\n" for byte in content)


def _from_base64(span: str) -> bytes:
    plain = span.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def _from_hex(span: str) -> bytes:
    return bytes.fromhex(re.sub(r"[ :]", "", span))


def _unescaped(span: str) -> str:
    plain = html.unescape(unquote(span))
    return codecs.decode(plain, "unicode_escape") if "\\" in plain else plain
