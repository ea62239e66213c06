"""Build requirements of a setup.py: linked libraries, programs it calls, Fortran, and the modules it imports."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from formulacode_dagster.models.base import Frozen

from .build_files import BuildDependency
from .providers import DependencyKind
from .python_source import parse_python
from .tree import Tree, join

_CONFIG_PROGRAM = re.compile(r"^[\w.+-]+[-_]config$")
_FORTRAN = re.compile(r"\.(f|f77|f90|f95|F|F90|pyf)$")
_SYSTEM_INFO = re.compile(r"^(blas|lapack|fftw3?|openblas|atlas|umfpack|amd)(_\w+)?$")
_NOT_BUILT = re.compile(r"(^|/)(tests?|docs?|examples?|benchmarks?|tools)(/|$)")
_LARGEST = 500_000


class SetupBuild(Frozen):
    """Requirements of the script and of those below it (numpy.distutils)."""

    dependencies: tuple[BuildDependency, ...] = ()
    imports: tuple[tuple[str, str], ...] = ()
    """Modules it requires, and the place of each import."""
    optional_imports: tuple[tuple[str, str], ...] = ()
    """Modules whose absence it provides for."""
    has_extensions: bool = False
    calls_cmake: bool = False


def read_setup_build(tree: Tree, folder: str) -> SetupBuild:
    """Read `setup.py` in *folder*, and the ones below it that numpy.distutils would run too."""
    top = join(folder, "setup.py") or ""
    text = tree.text(top)
    if text is None:
        return SetupBuild()
    paths = [top]
    if "numpy.distutils" in text:
        paths += [p for p in tree.below(folder) if p.endswith("/setup.py") and p != top and not _NOT_BUILT.search(p)]
    reader = _Reader()
    for path in paths:
        reader.read(path, tree.text(path) or "")
    local = {path.removeprefix("" if folder == "." else f"{folder}/").split("/")[0] for path in tree.below(folder)}
    own = {name.removesuffix(".py") for name in local}

    def foreign(imports: dict[str, str]) -> tuple[tuple[str, str], ...]:
        names = ((name, name.partition(".")[0]) for name in imports)
        return tuple((n, imports[n]) for n, first in names if first not in own and first not in sys.stdlib_module_names)

    return SetupBuild(
        dependencies=tuple(reader.dependencies.values()),
        imports=foreign(reader.imports),
        optional_imports=foreign({n: p for n, p in reader.optional.items() if n not in reader.imports}),
        has_extensions=reader.has_extensions,
        calls_cmake=reader.calls_cmake,
    )


class _Reader:
    def __init__(self) -> None:
        self.dependencies: dict[tuple[DependencyKind, str], BuildDependency] = {}
        self.imports: dict[str, str] = {}
        self.optional: dict[str, str] = {}
        self.has_extensions = False
        self.calls_cmake = False

    def read(self, path: str, text: str) -> None:
        try:
            tree = parse_python(text if len(text) < _LARGEST else "")
        except (SyntaxError, ValueError, RecursionError):
            return
        assigned = _assigned(tree)
        guarded = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Try) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            source = f"{path}:{getattr(node, 'lineno', 0)}"
            match node:
                case ast.Call():
                    self._call(node, assigned, source)
                case ast.Constant(value=str() as word):
                    self._word(word, source)
                case (
                    ast.List(elts=[ast.Constant(value="pkg-config"), *_])
                    | ast.Tuple(elts=[ast.Constant(value="pkg-config"), *_])
                ):
                    for name in _strings(node, assigned):
                        self._add_dependency(DependencyKind.PKG_CONFIG, name, source)
                case ast.Import() | ast.ImportFrom():
                    into = self.optional if id(node) in guarded else self.imports
                    for name in _imported(node):
                        into.setdefault(name, source)

    def _call(self, node: ast.Call, assigned: dict[str, list[ast.expr]], source: str) -> None:
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in ("Extension", "add_extension", "CMakeExtension", "Pybind11Extension", "RustExtension", "cythonize"):
            self.has_extensions = True
        if name == "RustExtension":
            self._add_dependency(DependencyKind.PROGRAMS, "cargo", source)
        if name == "get_info":
            infos = [word for argument in node.args[:1] for word in _strings(argument, assigned)]
            for match in filter(None, map(_SYSTEM_INFO.match, infos)):
                self._add_dependency(
                    DependencyKind.LIBRARIES, {"fftw": "fftw3", "amd": "umfpack"}.get(match[1], match[1]), source
                )
        if ast.unparse(node.func).startswith("pkgconfig.") and node.args:
            for word in _strings(node.args[0], assigned):
                self._add_dependency(DependencyKind.PKG_CONFIG, word, source)
        for keyword in node.keywords:
            if keyword.arg in ("ext_modules", "rust_extensions") and not _is_empty(keyword.value):
                self.has_extensions = True
            if keyword.arg == "libraries":
                for word in _strings(keyword.value, assigned):
                    self._add_dependency(DependencyKind.LIBRARIES, word, source)

    def _word(self, word: str, source: str) -> None:
        if _CONFIG_PROGRAM.match(word) and word != "pkg-config":
            self._add_dependency(DependencyKind.PROGRAMS, word, source)
        elif word.startswith("pkg-config "):
            for name in word.split()[1:]:
                if not name.startswith("-"):
                    self._add_dependency(DependencyKind.PKG_CONFIG, name, source)
        elif word == "cmake":
            self.calls_cmake = True
        elif _FORTRAN.search(word) and " " not in word:
            self._add_dependency(DependencyKind.PROGRAMS, "fortran", source)

    def _add_dependency(self, kind: DependencyKind, name: str, source: str) -> None:
        self.dependencies.setdefault((kind, name), BuildDependency(kind=kind, name=name, source=source))


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.level == 0 and node.module:
        yield node.module


def _assigned(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """Every expression that a name is set to or grows by, anywhere."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AugAssign(target=ast.Name(id=name), value=value)
            ):
                assigned.setdefault(name, []).append(value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend"), args=[value]):
                assigned.setdefault(name, []).append(value)
    return assigned


def _strings(node: ast.expr, assigned: dict[str, list[ast.expr]]) -> Iterator[str]:
    """Return strings of an expression, and of the values its names are set to."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value
        elif isinstance(inner, ast.Name):
            for value in assigned.get(inner.id, []):
                yield from (
                    c.value for c in ast.walk(value) if isinstance(c, ast.Constant) and isinstance(c.value, str)
                )


def _is_empty(node: ast.expr) -> bool:
    return (isinstance(node, ast.List | ast.Tuple) and not node.elts) or isinstance(node, ast.Constant)
