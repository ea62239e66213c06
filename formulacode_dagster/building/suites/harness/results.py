"""A benchmark's return value in comparable form: exact parts as a hash, numbers as they are."""

from __future__ import annotations

import hashlib
import math
from typing import Any, Callable  # noqa: UP035 - CPython 3.7 evaluates no annotation, but an alias

MOST_ELEMENTS = 1_000_000
"""Values read from a list or an array of floats; a longer one is sampled evenly."""
MOST_NUMBERS = 1000
"""Reported numbers; more are sampled, with their sums."""
BUILTINS = (bool, int, float, complex, str, bytes, range, list, tuple, set, frozenset, dict, type(None))
SCALARS = (bool, int, str, bytes, range, type(None))
SEQUENCES = (list, tuple)
SETS = (set, frozenset)
EXACT_KINDS = "biuSUmM"
"""numpy dtypes whose bytes are equal if their values are."""
MOST_OBJECTS = 1000
"""Objects read within one value."""


class Reading:
    """The parts of a value read so far."""

    def __init__(self, *, objects: bool = False) -> None:
        """With *objects*, the public attributes of a value of another class count, or what it iterates over."""
        self.objects = objects
        self.numbers: list[float] = []
        self.total = self.size = 0.0
        """Sum over arrays that are not reported in full, and over the sizes of their content."""
        self.itemsize = 8
        """Bytes of the least precise float."""
        self.types: set[str] = set()
        """Types of the value and all within it; one that only calls itself `list` has another name."""
        self._objects = 0

    def form(self, value: Any) -> str:
        """Return *value* without its floats, which are added to the numbers; raises TypeError if it is not plain."""
        self.types.add(name_of_type(type(value)))
        # what a subclass stores counts, not what its methods make of it
        kind: Any
        for kind in SCALARS:
            if isinstance(value, kind):
                return f"{kind.__name__} {kind.__repr__(value)}"
        if isinstance(value, float):
            return self._float(float.__pos__(value))
        if isinstance(value, complex):
            value = complex.__pos__(value)
            return f"{self._float(value.real)}+{self._float(value.imag)}j"
        for kind in SEQUENCES:
            if isinstance(value, kind):
                held = kind.__getitem__(value, slice(None, None, 1 + kind.__len__(value) // MOST_ELEMENTS))
                return f"{kind.__len__(value)}[{', '.join(map(self.form, held))}]"
        for kind in SETS:
            if isinstance(value, kind):
                return f"{{{self._in_order((each,) for each in kind.__iter__(value))}}}"
        if isinstance(value, dict):
            return f"dict {{{self._in_order(dict.items(value))}}}"
        if hasattr(value, "to_numpy"):
            # the labels of a table, which are methods of a list's kind elsewhere
            labels = [getattr(value, part, None) for part in ("index", "columns")]
            parts = [value, *(label for label in labels if hasattr(label, "to_numpy"))]
            return f"{type(value).__name__} {', '.join(self.form(part.to_numpy()) for part in parts)}"
        if hasattr(value, "dtype") and hasattr(value, "tolist"):
            return self._array(value)
        if self.objects and self._objects < MOST_OBJECTS:
            self._objects += 1
            return self._object(value)
        raise TypeError(type(value).__name__)

    def _object(self, value: Any) -> str:
        attributes = public_attributes(value)
        if attributes:
            return f"object {{{', '.join(f'{name}: {self.form(each)}' for name, each in attributes)}}}"
        if hasattr(type(value), "__len__") and hasattr(type(value), "__iter__"):
            return f"items {self.form(list(value))}"
        raise TypeError(type(value).__name__)

    def _float(self, value: float) -> str:
        if not math.isfinite(value):
            return repr(float(value))
        self.numbers.append(float(value))
        return "float"

    def _in_order(self, entries: Any) -> str:
        """Forms of *entries*, and their numbers, in an order that is that of no hash."""
        read = []
        for entry in entries:
            reading = Reading(objects=self.objects)
            form = ": ".join(map(reading.form, entry))
            self.itemsize = min(self.itemsize, reading.itemsize)
            self.types |= reading.types
            self.total, self.size = self.total + reading.total, self.size + reading.size
            read.append((form, reading.numbers))
        for _, numbers in sorted(read):
            self.numbers += numbers
        return ", ".join(sorted(form for form, _ in read))

    def _array(self, array: Any) -> str:
        kind = array.dtype.kind
        if kind in "fc":
            self.itemsize = min(self.itemsize, array.dtype.itemsize // (2 if kind == "c" else 1))
        if array.shape == () and kind in "biufc":
            # whether a number is numpy's is nothing that its user sees
            return self.form(array.item())
        shape = f"{array.dtype} {array.shape}"
        if kind in EXACT_KINDS:
            return f"{shape} {hashlib.sha256(array.tobytes()).hexdigest()}"
        if kind not in "fcO":
            raise TypeError(shape)
        flat = array.ravel()
        if kind != "O" and flat.size > MOST_ELEMENTS:
            size = float(abs(flat).sum())
            if math.isfinite(size):
                self.size += size
                self.total += float(flat.real.sum() + flat.imag.sum())
        return f"{shape} {self.form(flat[:: 1 + flat.size // MOST_ELEMENTS].tolist())}"


def name_of_type(kind: type) -> str:
    """Return the name of a built-in type, and of another one with its module, which may be any."""
    return kind.__name__ if kind in BUILTINS else f"{kind.__module__}.{kind.__qualname__}"


def public_attributes(value: object) -> list[tuple[str, Any]]:
    """Return the attributes of an object by name, as they are stored, without private ones and what can be called."""
    slots = [name for kind in type(value).__mro__ for name in _names(kind.__dict__.get("__slots__", ()))]
    stored = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    stored.update(getattr(value, "__dict__", {}))
    return sorted((name, each) for name, each in stored.items() if name[:1] != "_" and not callable(each))


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def returned(
    value: object, most: int = MOST_NUMBERS, draw: Callable[[int], int] | None = None, *, objects: bool = False
) -> dict[str, object]:
    """Return the type of *value*, and for a plain value its hash, its numbers with their sums, and precision.

    Of more than *most* numbers as many are sampled: evenly, or at places that *draw* gives, each below its argument.
    With *objects*, other values have that, too, if what they hold has.
    """
    told: dict[str, object] = {"type": type(value).__name__}
    reading = Reading(objects=objects)
    try:
        form = reading.form(value)
    except Exception:  # noqa: BLE001 - reading a package's own objects may raise anything
        return told
    numbers = reading.numbers
    if draw is None or len(numbers) <= most:
        sampled = numbers[:: 1 + len(numbers) // most] if len(numbers) > most else numbers
    else:
        sampled = [numbers[draw(len(numbers))] for _ in range(most)]
    return {
        **told,
        "types": sorted(reading.types),
        "form": hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest(),
        "numbers": sampled,
        "total": reading.total + math.fsum(numbers),
        "size": reading.size + math.fsum(map(abs, numbers)),
        "itemsize": reading.itemsize,
    }
