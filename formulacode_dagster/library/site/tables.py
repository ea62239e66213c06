"""Tables of the site: one declaration each, written as a script for the page, and as CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""Signs with which a spreadsheet takes a text for a formula."""


@dataclass(frozen=True)
class Column:
    """A column that the page shows; site.js draws its `kind`."""

    key: str
    label: str
    kind: str = "text"
    """`text`, `link`, `number`, `share` (an interval from 0 to 1, drawn) or `flag`."""
    title: str = ""
    small: str = ""
    """Field shown in grey below."""
    href: str = ""
    """Folder of the page that a link leads to, relative to this page."""
    target: str = ""
    """Field with the name of that page."""
    low: str = ""
    high: str = ""
    digits: int = 2
    prefix: str = ""
    suffix: str = ""
    order: tuple[str, ...] = ()
    """Values in their order, if it is not the alphabet's."""


@dataclass(frozen=True)
class Facet:
    """A choice among the values of a field."""

    key: str
    label: str
    default: str = ""
    """Value chosen at first; empty for any."""


@dataclass(frozen=True)
class Bound:
    """A number that rows are compared with; a row without a value is out once a number is given."""

    key: str
    label: str
    is_least: bool = True
    step: float = 0.1


@dataclass(frozen=True)
class DataTable:
    """Rows with their columns, facets and bounds."""

    name: str
    """Path of its files, without a suffix."""
    noun: str
    columns: tuple[Column, ...]
    fields: tuple[str, ...]
    """Fields of a row, in their order in the files; the page has only those that it needs."""
    rows: Sequence[Mapping[str, Any]]
    sort: str
    """Field by which the page sorts first, from the highest on."""
    facets: tuple[Facet, ...] = ()
    bounds: tuple[Bound, ...] = ()
    search: tuple[str, ...] = ()
    documents: Sequence[Mapping[str, Any]] = ()
    """Rows of the JSON, if they have more than the fields."""

    @property
    def shown(self) -> tuple[str, ...]:
        """Fields that the page needs."""
        drawn = [(each.key, each.small, each.target, each.low, each.high) for each in self.columns]
        chosen = [*(each.key for each in self.facets), *(each.key for each in self.bounds), *self.search]
        return tuple(dict.fromkeys(name for name in (*itertools.chain(*drawn), *chosen) if name))

    def files(self) -> dict[str, str]:
        """Return the table as `.js`, `.csv` and `.json`, by path."""
        rows = [{name: row.get(name) for name in self.fields} for row in self.rows]
        return {
            f"{self.name}.js": self.script(),
            f"{self.name}.json": _rows_as_json(self.documents or rows),
            f"{self.name}.csv": _rows_as_csv(self.fields, rows),
        }

    def script(self) -> str:
        """Return the table for site.js: a page opened from a folder may read nothing else. No `<` is left in it."""
        packed = [_packed([row.get(name) for row in self.rows]) for name in self.shown]
        data = {
            "noun": self.noun,
            "columns": [{name: value for name, value in asdict(each).items() if value != ""} for each in self.columns],
            "facets": [asdict(each) for each in self.facets],
            "bounds": [asdict(each) for each in self.bounds],
            "search": self.search,
            "sort": self.sort,
            "fields": dict(zip(self.shown, packed, strict=True)),
        }
        text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
        return f"window.DATA = {text.replace('<', chr(92) + 'u003c')};\n"


def _packed(values: Sequence[Any]) -> dict[str, Any]:
    """*values* of a field; those that recur as places in a list, which makes the file a third as large."""
    values = [round(value, 3) if isinstance(value, float) else value for value in values]
    known = list(dict.fromkeys(values))
    if not all(isinstance(value, str) for value in known) or 2 * len(known) > len(values):
        return {"values": values}
    places = {value: place for place, value in enumerate(known)}
    return {"known": known, "places": [places[value] for value in values]}


def _rows_as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    return "[" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]\n"


def _rows_as_csv(fields: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    writer.writerows([_cell(row[name]) for name in fields] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """*value*, unless a spreadsheet would compute it: then with an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_SIGNS) else value
