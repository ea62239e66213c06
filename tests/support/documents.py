"""Text for users and contributors: the README, the pages of the site, CONTRIBUTING."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


PAGES = {path: _read(path) for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
"""By path: what users read."""
CONTRIBUTING = _read(ROOT / "CONTRIBUTING.md")
USERS_TEXT = "\n".join(PAGES.values())
_FORMER_NAMES = re.compile(r"^\| [^|]*\|", re.MULTILINE)
OWN_NAMES_TEXT = "\n".join(
    _FORMER_NAMES.sub("|", text) if path.name == "coming-from-datasmith.md" else text for path, text in PAGES.items()
)
"""The same, without the column of the predecessor's names."""


def blocks_of(language: str, text: str = USERS_TEXT) -> list[str]:
    """The fenced blocks in *language*, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
