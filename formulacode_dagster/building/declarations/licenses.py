"""The license of a repository at a commit, as an SPDX expression (https://spdx.org/licenses).

An SPDX expression in the metadata goes first (PEP 639), then the text of a license file, then a trove classifier.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from formulacode_dagster.building.declarations.metadata.pyproject import load_pyproject
from formulacode_dagster.building.declarations.metadata.tables import Table, table_at

from .tree import Tree, join

if TYPE_CHECKING:
    from license_expression import Licensing

_FILE = re.compile(r"(?:licen[cs]e|copying|unlicense)(?:[.-](?:txt|md|rst|mit|bsd|apache))?", re.IGNORECASE)
_LONGEST_EXPRESSION = 200

_TEXTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Apache-2.0", ("apache license", "version 2.0, january 2004")),
    ("MPL-2.0", ("mozilla public license version 2.0",)),
    ("AGPL-3.0-only", ("gnu affero general public license version 3",)),
    ("LGPL-3.0-only", ("gnu lesser general public license version 3",)),
    ("LGPL-2.1-only", ("gnu lesser general public license version 2.1",)),
    ("GPL-3.0-only", ("gnu general public license version 3",)),
    ("GPL-2.0-only", ("gnu general public license version 2",)),
    ("BSL-1.0", ("boost software license - version 1.0",)),
    ("Unlicense", ("this is free and unencumbered software released into the public domain",)),
    ("PSF-2.0", ("python software foundation license version 2",)),
    ("BSD-4-Clause", ("redistribution and use in source and binary forms", "all advertising materials")),
    ("BSD-3-Clause", ("redistribution and use in source and binary forms", "to endorse or promote products")),
    ("BSD-2-Clause", ("redistribution and use in source and binary forms", "must retain the above copyright notice")),
    ("ISC", ("permission to use, copy, modify, and/or distribute this software for any purpose",)),
    ("ISC", ("permission to use, copy, modify, and distribute this software for any purpose",)),
    ("MIT", ("permission is hereby granted, free of charge, to any person obtaining a copy", "without restriction")),
)
"""Phrases that all occur in a license's text; the first match wins, so longer phrases come first."""

_CLASSIFIERS = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
}
"""Trove classifiers that name one license; `BSD License`, for one, names several."""
_CLASSIFIER = re.compile(r"License :: OSI Approved :: ([^\"'\n,\]]+)")


def license_of(tree: Tree, folder: str = ".") -> str:
    """Return the license of the package in *folder*, or else of the repository; empty if no known one is declared.

    Several files count as licenses that all apply, which is the cautious reading.
    """
    for place in dict.fromkeys((folder, ".")):
        for found in (_declared(tree, place), _by_text(tree, place), _by_classifier(tree, place)):
            if found:
                return found
    return ""


def _declared(tree: Tree, folder: str) -> str:
    try:
        data = load_pyproject(tree, folder)
    except ValueError:
        return ""
    return next((known for text in _stated(data) if (known := _expression(text))), "")


def _stated(data: Table) -> Iterator[str]:
    for stated in (table_at(data, "project").get("license"), table_at(data, "tool", "poetry").get("license")):
        yield str(stated.get("text", "")) if isinstance(stated, dict) else str(stated or "")


@functools.cache
def _spdx() -> Licensing:
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


def _expression(told: str) -> str:
    """Return *told* in SPDX's spelling; empty if it is no expression of licenses that SPDX knows."""
    from license_expression import ExpressionError

    if not told.strip() or len(told) > _LONGEST_EXPRESSION:
        return ""
    try:
        return str(_spdx().parse(told, validate=True, strict=True))
    except ExpressionError:
        return ""


def _by_text(tree: Tree, folder: str) -> str:
    inside = "" if folder == "." else f"{folder}/"
    names = [path.removeprefix(inside) for path in tree.below(folder)]
    files = [name for name in names if _FILE.fullmatch(name)]
    licenses = [known for name in files if (known := _recognised(tree.text(inside + name) or ""))]
    return " AND ".join(dict.fromkeys(licenses))


def _recognised(text: str) -> str:
    flat = " ".join(text.lower().split())
    return next((name for name, phrases in _TEXTS if all(phrase in flat for phrase in phrases)), "")


def _by_classifier(tree: Tree, folder: str) -> str:
    texts = (tree.text(join(folder, name) or "") or "" for name in ("pyproject.toml", "setup.cfg", "setup.py"))
    named = {_CLASSIFIERS.get(match.strip(), "") for text in texts for match in _CLASSIFIER.findall(text)}
    return named.pop() if len(named) == 1 else ""
