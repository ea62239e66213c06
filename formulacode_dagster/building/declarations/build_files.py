"""Libraries, tools and languages that setup.py, meson.build and CMakeLists.txt ask for, read without running them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from formulacode_dagster.models.base import Frozen

from .providers import DependencyKind
from .tree import Tree, join

BUILD_FILES = ("setup.py", "setup.cfg", "site.cfg", "pyproject.toml", "meson.build", "CMakeLists.txt", "build.py")
"""Build files that may show how a package is built, by name."""

_LARGEST = 150_000
_MOST_FILES = 200
_COMMENT = re.compile(r"#.*")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_ARGUMENTS = r"((?:[^()']|'[^']*'|\((?:[^()']|'[^']*')*\))*)"

_MESON_CALL = re.compile(rf"(?<![\w.])(dependency|find_program|project|add_languages|subdir)\({_ARGUMENTS}\)")
_BLANK = r"[^\S\n]*"
"""Blanks of one line; blank lines before it would be read once from each of them."""
_MESON_NAME = re.compile(rf"^{_BLANK}(\w+){_BLANK}={_BLANK}(?:get_option\('(\w+)'\)|'([^']+)'){_BLANK}$", re.MULTILINE)
_MESON_OPTION = re.compile(rf"(?<![\w.])option\({_ARGUMENTS}\)")
_NOT_REQUIRED = re.compile(r"\b(required\s*:\s*(false|get_option)|disabler\s*:\s*true)")
_KEYWORD = re.compile(r"\b\w+\s*:")

_CMAKE_CALL = re.compile(
    r"\b(find_package|pkg_check_modules|pkg_search_module|enable_language|project|add_subdirectory)\s*\(([^()]*)\)",
    re.IGNORECASE,
)
_VENDORED = re.compile(r"(^|/)(3rdparty|cextern|deps|extern(al)?|subprojects|third[-_]?party|vendor(ed)?)(/|$)")


class BuildDependency(Frozen):
    """A name that a build file requires, in the terms of *kind*, and its place."""

    kind: DependencyKind
    name: str
    source: str


def read_meson(tree: Tree, folder: str) -> tuple[BuildDependency, ...]:
    """Return the requirements of `meson.build` in *folder*, and of those it enters; `get_option` stands for its
    default.
    """
    options = {
        match[0]: match[1]
        for name in ("meson.options", "meson_options.txt")
        for match in _options(_text(tree, join(folder, name)))
    }
    needs: dict[tuple[DependencyKind, str], BuildDependency] = {}
    for path, text in _entered(tree, folder, "meson.build", _MESON_CALL, "subdir"):
        names = {m[1]: options.get(m[2] or "", "") or m[3] or "" for m in _MESON_NAME.finditer(text)}
        for call in _MESON_CALL.finditer(text):
            source = f"{path}:{text.count(chr(10), 0, call.start()) + 1}"
            for kind, name in _of_meson(call[1], call[2], names):
                needs.setdefault((kind, name), BuildDependency(kind=kind, name=name, source=source))
    return tuple(needs.values())


def _of_meson(function: str, arguments: str, names: dict[str, str]) -> Iterator[tuple[DependencyKind, str]]:
    plain = arguments[: keyword.start()] if (keyword := _KEYWORD.search(arguments)) is not None else arguments
    words = [single or double for single, double in _QUOTED.findall(plain)]
    if function in ("project", "add_languages"):
        languages = words[1:] if function == "project" else words
        yield from ((DependencyKind.PROGRAMS, name) for name in languages if name in ("fortran", "rust"))
    elif function in ("dependency", "find_program") and not _NOT_REQUIRED.search(arguments):
        kind = DependencyKind.PKG_CONFIG if function == "dependency" else DependencyKind.PROGRAMS
        variable = plain.strip().rstrip(",").strip()
        yield from ((kind, name) for name in words[:1] or [names.get(variable, "")] if name)


def _options(text: str) -> Iterator[tuple[str, str]]:
    for option in _MESON_OPTION.finditer(text):
        name, value = _QUOTED.search(option[1]), re.search(r"\bvalue\s*:\s*'([^']*)'", option[1])
        if name is not None and value is not None:
            yield name[1] or "", value[1]


def read_cmake(tree: Tree, folder: str) -> tuple[BuildDependency, ...]:
    """Return the requirements of `CMakeLists.txt` in *folder*, and of those it enters."""
    needs: dict[tuple[DependencyKind, str], BuildDependency] = {}
    for path, text in _entered(tree, folder, "CMakeLists.txt", _CMAKE_CALL, "add_subdirectory"):
        for call in _CMAKE_CALL.finditer(text):
            source = f"{path}:{text.count(chr(10), 0, call.start()) + 1}"
            for kind, name in _of_cmake(call[1].lower(), call[2].split()):
                needs.setdefault((kind, name), BuildDependency(kind=kind, name=name, source=source))
    return tuple(needs.values())


def _of_cmake(function: str, words: list[str]) -> Iterator[tuple[DependencyKind, str]]:
    if function == "find_package" and "REQUIRED" in words:
        yield DependencyKind.CMAKE_PACKAGES, words[0].lower()
    elif function.startswith("pkg_") and "REQUIRED" in words:
        names = (re.split(r"[<>=]", word.strip('"'))[0] for word in words[1:] if not word.isupper())
        yield from ((DependencyKind.PKG_CONFIG, name) for name in names if name and "$" not in name)
    elif function in ("project", "enable_language") and "Fortran" in words:
        yield DependencyKind.PROGRAMS, "fortran"


def build_text(tree: Tree, folder: str) -> str:
    """Everything that the build files of *folder* say, comments aside, those that CMake and meson enter included."""
    plain = (_text(tree, join(folder, name)) for name in BUILD_FILES)
    meson = (text for _, text in _entered(tree, folder, "meson.build", _MESON_CALL, "subdir"))
    cmake = (text for _, text in _entered(tree, folder, "CMakeLists.txt", _CMAKE_CALL, "add_subdirectory"))
    return "\n".join((*plain, *meson, *cmake))


def _entered(tree: Tree, folder: str, name: str, call: re.Pattern[str], enters: str) -> Iterator[tuple[str, str]]:
    """Path and text, comments blanked, of the build file in *folder* and of those it enters; vendored ones are not."""
    pending, seen = [folder], set[str]()
    while pending and len(seen) < _MOST_FILES:
        place = pending.pop(0)
        path = join(place, name)
        if path is None or path in seen or _VENDORED.search(path):
            continue
        seen.add(path)
        text = _text(tree, path)
        yield path, text
        for match in call.finditer(text):
            if match[1].lower() == enters:
                word = match[2].split(",")[0].split()[0].strip("'\"") if match[2].split() else ""
                below = join(place, word) if word and "$" not in word else None
                pending.extend([below] if below is not None else [])


def _text(tree: Tree, path: str | None) -> str:
    text = tree.text(path) if path is not None else None
    return _COMMENT.sub("", text) if text is not None and len(text) < _LARGEST else ""
