"""Files of a commit, and the effect of an edit on them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from .definitions import Edit

Tree = Mapping[str, bytes]
"""Content by path."""

_COLUMNS = 8


def apply(tree: Tree, edits: Iterable[Edit]) -> Tree:
    """*tree* after *edits*; raises ValueError when one does not fit, which is a mistake in the definitions."""
    files = dict(tree)
    for edit in edits:
        _apply_one(files, edit)
    return files


def _apply_one(files: dict[str, bytes], edit: Edit) -> None:
    if edit.delete:
        if files.pop(edit.path, None) is None:
            raise ValueError(f"{edit.path} cannot be deleted: there is no such file")
    elif edit.move_to is not None:
        if edit.path not in files or edit.move_to in files:
            raise ValueError(f"{edit.path} cannot be moved to {edit.move_to}")
        files[edit.move_to] = files.pop(edit.path)
    elif edit.old is not None and edit.new is not None:
        old, new = edit.old.encode(), edit.new.encode()
        found = files.get(edit.path, b"").count(old)
        if found != 1:
            raise ValueError(f"{edit.path} holds {found} times, not once: {edit.old!r}")
        files[edit.path] = files[edit.path].replace(old, new)
    else:
        files[edit.path] = _whole(edit)


def _whole(edit: Edit) -> bytes:
    if edit.content is not None:
        return edit.content.encode()
    if edit.latin1 is not None:
        return edit.latin1.encode("latin-1")
    if edit.hexadecimal is not None:
        return bytes.fromhex(edit.hexadecimal)
    return _table(edit.table_lines or 0)


@cache
def _table(lines: int) -> bytes:
    """A Python module with a table of figures: large, barely compressible, always the same."""
    state = 1
    rows = []
    for _ in range(lines):
        row = []
        for _ in range(_COLUMNS):
            # The constants of the "minimal standard" generator, independent of any library's random numbers.
            state = state * 48271 % 2147483647
            row.append(f"{state / 2147483647:.8f}")
        rows.append(f"    ({', '.join(row)}),\n")
    return f'"""Precomputed figures."""\n\nTABLE = (\n{"".join(rows)})\n'.encode()
