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
_BASE32 = re.compile(r"(?<![\w=])(?:[A-Z2-7]{16,}|[a-z2-7]{16,})={0,6}(?![\w=])", re.ASCII)
_BINARY = re.compile(r"(?<!\w)(?:[01]{8}[ ]?){8,}(?!\w)")
_GROUPS = re.compile(
    "|".join(rf"(?<!\S)(?:[\w+/-]{{{n}}}[ \n]){{4,}}[\w+/=-]{{1,{n}}}(?!\S)" for n in (1, 2, 4, 5, 6, 8)), re.ASCII
)
"""Letters in groups of one size, which hide an encoding; ordinary words have many."""
_DATA = re.compile(r"\bdata:[\w.+-]+/[\w.+-]+[;,]\S+", re.IGNORECASE)
_LOOK_ALIKES = str.maketrans(
    "асеіјорѕхуһԁԛԝьвкмнтАВЕЅІЈКМНОРСТХУΑΒΕΖΗΙΚΜΝΟΡΤΥΧαιονρυγ\u0131\u0261\u2010\u2011\u2212\uff3f\u02cd",
    "aceijopsxyhdqwbbkmhtABESIJKMHOPCTXYABEZHIKMNOPTYXaiovpuyig---__",
)
"""Cyrillic, Greek and other characters that look like those of code; NFKC knows only the variants of one character."""
_SIGNS = {"underscore": "_", "dot": ".", "point": "."}
_SPELT = re.compile(r"[ \t]{1,3}[\[(]?(underscore|dot|point)[\])]?[ \t]{1,3}", re.IGNORECASE)
_INVISIBLE = frozenset({"Cf", "Co", "Cn"})
_HARMLESS = frozenset("\ufeff\u200d\u00ad")
"""A mark of byte order, the joiner of emoji, a soft hyphen: editors leave them behind."""


def encoded_spans(text: str) -> Iterator[str]:
    """Spans of *text* with hidden text: base64, hexadecimal digits, escapes, `data:` addresses, and invisible
    characters inside words.
    """
    yield from (match[0] for match in _DATA.finditer(text))
    yield from (match[0] for match in _ESCAPED.finditer(text) if re.search(r"\w", _unescaped(match[0])))
    for pattern, decode in (
        (_BASE64, _from_base64),
        (_HEX, _from_hex),
        (_BASE32, _from_base32),
        (_BINARY, _from_binary),
    ):
        yield from (match[0] for match in pattern.finditer(text) if _is_text(decode, match[0]))
    for match in _GROUPS.finditer(text):
        joined = "".join(match[0].split())
        if any(_is_text(decode, joined) for decode in (_from_base64, _from_hex, _from_base32)):
            yield match[0]
    yield from (
        text[max(0, at - 12) : at + 12]
        for at, character in enumerate(text)
        if unicodedata.category(character) in _INVISIBLE and character not in _HARMLESS
    )


def other_readings(text: str) -> tuple[str, ...]:
    """*text* read backwards, with its letters moved by thirteen, with the escapes of addresses undone, with letters
    that look like Latin ones as those, and with spelt signs as signs.
    """
    plain = unicodedata.normalize("NFKC", text).translate(_LOOK_ALIKES)
    spelt = _SPELT.sub(lambda match: _SIGNS[match[1].lower()], plain)
    return text[::-1], codecs.encode(text, "rot13"), unquote(text), plain, spelt


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


def _from_base32(span: str) -> bytes:
    plain = span.rstrip("=").upper()
    return base64.b32decode(plain + "=" * (-len(plain) % 8))


def _from_binary(span: str) -> bytes:
    return bytes(int(digits, 2) for digits in re.findall(r"[01]{8}", span))


def _unescaped(span: str) -> str:
    plain = html.unescape(unquote(span))
    return codecs.decode(plain, "unicode_escape") if "\\" in plain else plain
