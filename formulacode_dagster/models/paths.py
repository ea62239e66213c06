"""Roles of files in a repository, judged by their paths."""

from __future__ import annotations

import re
from enum import StrEnum


class PathKind(StrEnum):
    """The kinds of file a patch touches. Only `core` can change how fast the project is."""

    CORE = "core"
    TEST = "test"
    BENCHMARK = "benchmark"
    DOCUMENTATION = "documentation"
    AUTOMATION = "automation"
    CONFIGURATION = "configuration"
    OTHER = "other"


_SOURCE_SUFFIXES = (
    *(".py", ".pyx", ".pxd", ".pxi", ".pyx.in", ".pxd.in", ".pxi.in", ".pyx.tp", ".py.in"),
    *(".c", ".h", ".cc", ".hh", ".cpp", ".hpp", ".cxx", ".hxx", ".inl", ".c.src", ".h.src", ".inc.src", ".c.in"),
    *(".cpp.in", ".cu", ".cuh", ".cl", ".ispc", ".s", ".asm", ".rs", ".go", ".zig", ".jl", ".java", ".scala"),
    *(".f", ".for", ".f77", ".f90", ".f95", ".f03", ".f08", ".f.src", ".f90.src", ".pyf", ".m", ".mm", ".swift"),
)
_FOLDERS: dict[str, PathKind] = {
    **dict.fromkeys(("test", "tests", "testdata", "test_data"), PathKind.TEST),
    **dict.fromkeys(
        ("benchmark", "benchmarks", "asv_bench", "asv_benchmarks", "bench", "perf_tests"), PathKind.BENCHMARK
    ),
    **dict.fromkeys(("doc", "docs", "documentation", "examples", "example", "gallery"), PathKind.DOCUMENTATION),
    **dict.fromkeys(("tutorials", "tutorial", "doc_source", "changelog", "changes"), PathKind.DOCUMENTATION),
    **dict.fromkeys((".github", ".circleci", ".ci", "ci", ".azure", ".azure-pipelines"), PathKind.AUTOMATION),
    **dict.fromkeys((".gitlab", ".travis", ".buildkite", ".devcontainer"), PathKind.AUTOMATION),
}
_TEST_FILE = re.compile(r"^(?:test_.*|[a-z0-9].*_tests?|conftest|tests?)\.[a-z.]+$")
_BENCHMARK_FILE = re.compile(r"^(?:bench(?:mark)?s?_.*|.*_bench(?:mark)?s?|benchmarks?)\.[a-z.]+$|^asv\.conf\.json")
_CONFIGURATION_FILE = re.compile(
    r"^(?:setup|_version|__version__|__about__|versioneer|noxfile|fabfile)\.py$|^build\.rs$"
    r"|\.(?:toml|cfg|ini|lock|json|jsonc|ya?ml|cmake|build|mk|bazel)$|^(?:makefile|cmakelists\.txt|meson\.options)$"
    r"|requirements.*\.txt$|constraints.*\.txt$|^pipfile|^\.[a-z]"
)
_DOCUMENTATION_FILE = re.compile(
    r"\.(?:md|rst|txt|ipynb|tex|html|css|svg|png|jpg|gif|adoc)$|^(?:changelog|changes|history|news|readme|license|authors)\b"
)


def kind_of(path: str) -> PathKind:
    """Return the role of the file at *path*. A source file is `core` unless its folder or name says otherwise."""
    *folders, name = path.lower().split("/")
    for folder in folders:
        if folder in _FOLDERS:
            return _FOLDERS[folder]
    if _TEST_FILE.match(name):
        return PathKind.TEST
    if _BENCHMARK_FILE.match(name):
        return PathKind.BENCHMARK
    if _CONFIGURATION_FILE.search(name):
        return PathKind.CONFIGURATION
    if name.endswith(_SOURCE_SUFFIXES):
        return PathKind.CORE
    return PathKind.DOCUMENTATION if _DOCUMENTATION_FILE.search(name) else PathKind.OTHER
