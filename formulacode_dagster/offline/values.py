"""One cell, read strictly: a value that is not what its column holds is an error, never a guess."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import LinkedIssue
from formulacode_dagster.models.repository import RepositoryState

from .problems import shown
from .schema import Column, Kind

LONGEST = 4 * 2**20
"""Characters of a cell; GitHub's own longest text has 65,536."""
_LARGEST = {"id": 2**63 - 1}
_LARGEST_NUMBER = 2**31 - 1


class CellError(Exception):
    """A cell does not hold what its column promises; the text says what it holds instead."""


def read_cell(column: Column, raw: Any) -> Any:
    """The value of *raw* in *column*; None when it is empty and may be. Raises CellError."""
    if raw is None or (raw == "" and column.kind is not Kind.TEXT):
        if column.required:
            raise CellError("is empty")
        return None
    return _READERS[column.kind](column, raw)


def _text(_: Column, raw: Any) -> str:
    if not isinstance(raw, str):
        raise CellError(f"is {_type(raw)}, not a text: {shown(raw)}")
    if len(raw) > LONGEST:
        raise CellError(f"has {len(raw):,} characters, at most {LONGEST:,} are taken")
    if "\0" in raw:
        raise CellError("holds a NUL byte")
    try:
        raw.encode()
    except UnicodeEncodeError:
        raise CellError(f"is not UTF-8: {shown(raw)}") from None
    return raw


def _name(column: Column, raw: Any) -> str:
    text = _text(column, raw)
    try:
        name = ItemName.parse(text)
    except ConfigurationError:
        raise CellError(f"is {shown(raw)}, not owner/name") from None
    if name.number is not None or str(name) != text:
        raise CellError(f"is {shown(raw)}, not owner/name")
    return text


def _whole(column: Column, raw: Any) -> int:
    number = raw
    if isinstance(raw, str) and re.fullmatch(r"-?[0-9]{1,19}", raw):
        number = int(raw)
    if isinstance(raw, float) and raw.is_integer():
        # a column of whole numbers with gaps is one of floats to many programs
        number = int(raw)
    if not isinstance(number, int) or isinstance(number, bool):
        raise CellError(f"is {shown(raw)}, not a whole number")
    lowest, highest = int(column.kind is Kind.NUMBER), _LARGEST.get(column.name, _LARGEST_NUMBER)
    if not lowest <= number <= highest:
        raise CellError(f"is {shown(raw)}, not between {lowest} and {highest}")
    return number


def _time(_: Column, raw: Any) -> datetime:
    moment = raw
    if isinstance(raw, str):
        try:
            moment = datetime.fromisoformat(raw)
        except ValueError:
            raise CellError(f"is {shown(raw)}, not a time such as 2026-02-03T04:05:06Z") from None
    if not isinstance(moment, datetime):
        raise CellError(f"is {_type(raw)}, not a time such as 2026-02-03T04:05:06Z: {shown(raw)}")
    if moment.tzinfo is None:
        raise CellError(f"has no time zone: {shown(str(raw))}; write 2026-02-03T04:05:06Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise CellError(f"is {shown(str(raw))}, which no calendar holds in UTC") from None


def _month(_: Column, raw: Any) -> str:
    try:
        return Month.parse(raw).key
    except (ConfigurationError, TypeError):
        raise CellError(f"is {shown(raw)}, not a month such as 2026-02") from None


def _sha(_: Column, raw: Any) -> str:
    if not isinstance(raw, str) or not re.fullmatch(r"[0-9a-f]{40}", raw):
        raise CellError(f"is {shown(raw)}, not 40 hexadecimal digits in lower case")
    return raw


def _state(_: Column, raw: Any) -> RepositoryState:
    try:
        return RepositoryState(raw)
    except ValueError:
        raise CellError(f"is {shown(raw)}, not one of {', '.join(RepositoryState)}") from None


def _texts(column: Column, raw: Any) -> tuple[str, ...]:
    return tuple(_text(column, one) for one in _list(raw))


def _issues(column: Column, raw: Any) -> tuple[LinkedIssue, ...]:
    return tuple(_issue(column, one) for one in _list(raw))


def _issue(column: Column, raw: Any) -> LinkedIssue:
    if not isinstance(raw, dict):
        raise CellError(f"holds {shown(raw)}, not an object with number, title and created_at")
    strangers = sorted(map(str, set(raw) - set(LinkedIssue.model_fields)))
    if strangers:
        raise CellError(f"holds an issue with unknown fields: {', '.join(strangers)}")
    given = {key: value for key, value in raw.items() if value is not None}
    for key, kind in (("repository", Kind.NAME), ("number", Kind.NUMBER), ("created_at", Kind.TIME)):
        try:
            given[key] = read_cell(Column(key, kind, "", required=True), given.get(key))
        except CellError as error:
            raise CellError(f"holds an issue whose {key} {error}") from None
    for key in ("title", "body", "author"):
        if key in given:
            _text(column, given[key])
    try:
        return LinkedIssue.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise CellError(f"holds an issue whose {first['loc'][0]} is missing or malformed") from None


def _list(raw: Any) -> list[Any]:
    value = raw
    if isinstance(raw, str):
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            raise CellError(f'is {shown(raw)}, not a JSON list such as ["a", "b"]') from None
    if not isinstance(value, list):
        raise CellError(f"is {_type(value)}, not a list: {shown(value)}")
    return value


def _type(value: Any) -> str:
    return {bool: "true or false", int: "a number", float: "a number", dict: "an object"}.get(
        type(value), f"a {type(value).__name__}"
    )


_READERS = {
    Kind.TEXT: _text,
    Kind.NAME: _name,
    Kind.COUNT: _whole,
    Kind.NUMBER: _whole,
    Kind.TIME: _time,
    Kind.MONTH: _month,
    Kind.SHA: _sha,
    Kind.STATE: _state,
    Kind.TEXTS: _texts,
    Kind.ISSUES: _issues,
}
