"""Sources of compiled code, recognized by their names."""

from __future__ import annotations

from pathlib import PurePosixPath

_SUFFIXES = frozenset(
    {
        *(".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".cu", ".cuh", ".s", ".asm"),
        *(".pyx", ".pxd", ".pxi", ".rs", ".go", ".zig", ".f", ".for", ".f90", ".f95", ".f03"),
    }
)


def is_compiled_source(path: PurePosixPath) -> bool:
    """Return True if *path* is a source that Python cannot trace: compiled code, or its template (`.pyx.in`)."""
    source = path.with_suffix("") if path.suffix in {".in", ".src"} else path
    return source.suffix.lower() in _SUFFIXES
