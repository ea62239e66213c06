"""Any row of any model: strategies that follow a model's fields, bounds included."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from annotated_types import Ge, Gt, Le, MinLen
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from formulacode_dagster.models.base import Frozen

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
INSTANTS = st.integers(1_420_070_400_000_000, 2_051_222_400_000_000).map(
    lambda microseconds: datetime.fromtimestamp(microseconds / 1e6, tz=UTC)
)


def rows_of(model: type[Frozen], **fixed: Any) -> st.SearchStrategy[Any]:
    """Any instance of *model*, with the fields in *fixed* as they are given."""
    chosen = {
        name: st.just(fixed[name]) if name in fixed else _field(field) for name, field in model.model_fields.items()
    }
    return st.builds(model, **chosen)


def _field(field: FieldInfo) -> st.SearchStrategy[Any]:
    bounds: dict[str, Any] = {}
    for constraint in field.metadata:
        if isinstance(constraint, Ge | Gt):
            bounds["low"] = constraint.ge if isinstance(constraint, Ge) else 1e-9
        if isinstance(constraint, Le):
            bounds["high"] = constraint.le
        if isinstance(constraint, MinLen):
            bounds["fewest"] = constraint.min_length
    return _any(field.annotation, **bounds)


def _any(kind: Any, low: float | None = None, high: float | None = None, fewest: int = 0) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return st.one_of(*(_any(argument) for argument in arguments))
    if origin is tuple:
        return st.lists(_any(arguments[0]), min_size=fewest, max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(_any(arguments[0]), _any(arguments[1]), max_size=3)
    if issubclass(kind, Frozen):
        return rows_of(kind)
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    known: dict[type, st.SearchStrategy[Any]] = {
        str: st.text(CHARACTERS, min_size=fewest, max_size=20),
        bool: st.booleans(),
        int: st.integers(int(low or 0), int(high or 2**31 - 1)),
        float: st.floats(low, high, allow_nan=False, allow_infinity=False),
        datetime: INSTANTS,
        NoneType: st.none(),
    }
    return known[kind]
