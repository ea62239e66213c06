"""Sources of compiled code, told by their names."""

from __future__ import annotations

from pathlib import PurePosixPath

_SUFFIXES = frozenset(
    {
        *(".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".cu", ".cuh", ".s", ".asm"),
        *(".pyx", ".pxd", ".pxi", ".rs", ".go", ".zig", ".f", ".for", ".f90", ".f95", ".f03"),
    }
)


def is_compiled_source(path: PurePosixPath) -> bool:
    """Whether *path* is a source that Python cannot trace: of compiled code, or a template of one (`.pyx.in`)."""
    source = path.with_suffix("") if path.suffix in {".in", ".src"} else path
    return source.suffix.lower() in _SUFFIXES
