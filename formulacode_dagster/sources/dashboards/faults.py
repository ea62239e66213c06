"""Faults of a site, or of a single file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from formulacode_dagster.models.errors import OutsideSystemError


class FaultKind(StrEnum):
    """Kind of a file's fault."""

    ABSENT = "absent"
    """A graph that the index allows for and the site does not have: not every benchmark ran in every environment."""
    TRUNCATED = "truncated"
    HTML = "html"
    NOT_JSON = "not_json"
    MALFORMED = "malformed"
    """JSON of another form than asv's."""
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"
    NOT_FETCHED = "not_fetched"
    """The server did not answer, or refused, however often it was asked."""
    FORBIDDEN = "forbidden"
    """The site's `robots.txt` asks not to."""
    CHANGED = "changed"
    """The site was republished while it was read."""
    DUPLICATE_REVISION = "duplicate_revision"
    UNORDERED = "unordered"
    """Revisions go backwards in a graph."""
    UNKNOWN_REVISION = "unknown_revision"
    """A point at a revision that the index has no commit for."""
    OTHER_VERSION = "other_version"
    """Results of benchmarks that `benchmarks.json` does not know, or knows by another version: not comparable."""
    BACKWARDS_IN_TIME = "backwards_in_time"
    """A commit of the index is dated before its predecessor, as rebased and merged ones are."""


@dataclass(frozen=True)
class Fault:
    """Fault of one file of a site."""

    path: str
    kind: FaultKind
    detail: str = ""


class DashboardError(OutsideSystemError):
    """A site cannot be read at all; *fault* names the file and the problem."""

    def __init__(self, site: str, fault: Fault, remedy: str) -> None:
        self.fault = fault
        why = f"{fault.kind}: {fault.detail}" if fault.detail else str(fault.kind)
        super().__init__("dashboard", f"cannot read {fault.path} of {site}", why=why, remedy=remedy)


def parse_json(path: str, content: bytes) -> Any | Fault:
    """Return the JSON in *content*, or its fault."""
    try:
        read = json.loads(content)
    except (ValueError, RecursionError) as error:
        return _not_json(path, content, error)
    if b"\\ud" in content.lower():
        try:
            json.dumps(read, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return Fault(path, FaultKind.NOT_JSON, "half of a surrogate pair, which is not text")
    return read


def _not_json(path: str, content: bytes, error: Exception) -> Fault:
    if content.lstrip()[:1] == b"<":
        return Fault(path, FaultKind.HTML, content.lstrip()[:60].decode(errors="replace"))
    at_end = isinstance(error, json.JSONDecodeError) and error.pos >= len(error.doc.rstrip()) - 1
    # a truncated string or literal is reported at its beginning
    broken_off = isinstance(error, json.JSONDecodeError) and error.doc.rstrip()[-1:] not in ("]", "}")
    return Fault(path, FaultKind.TRUNCATED if at_end or broken_off else FaultKind.NOT_JSON, str(error))
