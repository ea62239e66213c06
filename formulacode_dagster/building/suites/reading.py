"""The benchmarks that asv would find in a suite, determined from its files without running them.

asv imports every module of the benchmark folder and takes its public functions and the methods of its public classes by
the beginning of their names (`asv_runner.discovery`). Unconditional definitions must be found in an imported module;
those under a condition, a decorator or unknown code may be found. A second discovery in an image would prove nothing:
it would run the code under check.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from formulacode_dagster.building.declarations.tree import Tree

from .scopes import (
    MOST_VALUES,
    Binding,
    Class,
    Definition,
    Function,
    ImportReference,
    PlainValue,
    Scope,
    Unknown,
    read_scope,
)

BENCHMARK_NAME = re.compile(r"(Time(raw)?|Mem|PeakMem|Track)[A-Z_].+|(time|timeraw|mem|peakmem|track)_.+")
"""Prefixes of functions and methods that asv takes for benchmarks."""
_WORD = re.compile(r"[A-Za-z]\w+")
_NEEDS_A_LIBRARY = re.compile(r"Mem[A-Z_]|mem_")
"""asv_runner knows the kind `mem` only if pympler is installed."""
_PLAIN_BASES = frozenset({"object", "ABC", "abc.ABC"})


@dataclass(frozen=True)
class SuiteReading:
    """asv's benchmarks in every module that it would import, by asv's names."""

    by_module: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Benchmarks that are found when the module can be imported. Modules are named as below the folder: `` is the
    folder itself, `io.csv` is `io/csv.py`."""
    mentioned: frozenset[str] = frozenset()
    """Every name in the files that asv would take for a benchmark's, whatever its value."""

    @property
    def certain(self) -> frozenset[str]:
        """Benchmarks of all modules that must be found."""
        return frozenset().union(*self.by_module.values())

    def mentions(self, benchmark: str) -> bool:
        """Return True if *benchmark* may be found: it must be, or the files define its name under a condition."""
        return benchmark in self.certain or benchmark.rpartition(".")[2] in self.mentioned

    def missing(self, discovered: Collection[str], lost: Collection[str]) -> tuple[str, ...]:
        """Benchmarks that a discovery had to find and did not, the modules it *lost* (and all below them) aside.

        *lost* are names of modules as imported, beginning with that of the benchmark folder: `benchmarks.io.csv`.
        """
        gone = tuple(name.partition(".")[2] for name in lost)
        missed = {
            benchmark
            for module, benchmarks in self.by_module.items()
            if not any(module == name or not name or module.startswith(f"{name}.") for name in gone)
            for benchmark in benchmarks
        }
        return tuple(sorted(missed.difference(discovered)))


def read_suite(tree: Tree, benchmark_dir: str, overlay: Mapping[str, bytes] | None = None) -> SuiteReading:
    """Read the suite in *benchmark_dir*, a folder below the repository; *overlay* replaces files of *tree*.

    Modules are those that `pkgutil` finds: `.py` files, and folders with an `__init__.py`, recursively.
    """
    laid = overlay or {}
    start = "" if benchmark_dir in ("", ".") else benchmark_dir.strip("/") + "/"
    paths = {path for path in (*tree.files, *laid) if path.startswith(start) and path.endswith(".py")}
    suite = _Suite(posixpath.basename(benchmark_dir.strip("/")))
    for path in sorted(paths):
        parts = path.removeprefix(start).removesuffix(".py").split("/")
        folders = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        if not all(f"{start}{folder}/__init__.py" in paths and "." not in folder for folder in folders):
            continue
        if "." in parts[-1]:
            continue
        text = laid[path].decode("utf-8", errors="replace") if path in laid else tree.text(path) or ""
        suite.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path, text)
    return suite.reading()


@dataclass(frozen=True)
class _Module:
    name: str
    path: str
    scope: Scope

    @property
    def package(self) -> str:
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class _Found:
    """The final value of a name, and the module in which its parts are looked up."""

    binding: Binding
    home: _Module


class _Suite:
    def __init__(self, root: str) -> None:
        self._root = root
        self._modules: dict[str, _Module] = {}
        self._mentioned: set[str] = set()
        self._named: dict[str, dict[str, list[_Found]]] = {}
        self._resolved: dict[tuple[str, str], list[_Found]] = {}
        self._members: dict[int, dict[str, Binding]] = {}

    def add(self, name: str, path: str, text: str) -> None:
        try:
            scope = read_scope(text)
        except (SyntaxError, ValueError, RecursionError):
            # asv cannot import it either, if its interpreter is current
            scope = Scope()
        self._modules[name] = _Module(name, path, scope)
        self._mentioned.update(filter(BENCHMARK_NAME.match, _WORD.findall(text)))

    def reading(self) -> SuiteReading:
        certain = {name: frozenset(self._certain(module)) for name, module in self._modules.items()}
        return SuiteReading(certain, frozenset(self._mentioned))

    def _certain(self, module: _Module) -> Iterator[str]:
        start = f"{module.name}." if module.name else ""

        def named(function: Function, name: str, place: str) -> Iterator[str]:
            searched = function.name.rpartition(".")[2] if function.renamed else name
            if BENCHMARK_NAME.match(searched) and not _NEEDS_A_LIBRARY.match(searched):
                yield function.name if function.renamed else start + place

        for name, all_found in self._names(module).items():
            for benchmark in all_found:
                match benchmark.binding.definition:
                    case _ if name.startswith("_") or not benchmark.binding.certain:
                        continue
                    case Function() as function:
                        yield from named(function, name, function.name)
                    case Class(name=owner) as owned:
                        for method, binding in self._methods(owned, benchmark.home).items():
                            if binding.certain and isinstance(binding.definition, Function):
                                yield from named(binding.definition, method, f"{owner}.{method}")

    def _names(self, module: _Module) -> dict[str, list[_Found]]:
        """Return every name of *module*, with those of `import *` before its own."""
        if module.name not in self._named:
            names = self._named[module.name] = {}
            for reference, certain in module.scope.stars:
                other = self._module(reference, module)
                public = other.scope.public if other is not None else None
                for name, all_found in list(self._names(other).items()) if other is not None else ():
                    if name in public if public is not None else not name.startswith("_"):
                        names[name] = [_doubted(benchmark, certain) for benchmark in all_found]
            names.update({name: self._resolve(name, module) for name in module.scope.names})
        return self._named[module.name]

    def _resolve(self, name: str, module: _Module) -> list[_Found]:
        """Return the value of *name* in *module*, imports followed within the suite; a cycle has none."""
        place = module.name, name
        if place not in self._resolved:
            self._resolved[place] = []
            self._resolved[place] = self._look_up(name, module)
        return self._resolved[place]

    def _look_up(self, name: str, module: _Module) -> list[_Found]:
        all_found: list[_Found] = []
        for binding in module.scope.names.get(name, []):
            if not isinstance(binding.definition, ImportReference):
                all_found.append(_Found(binding, module))
                continue
            home = module if binding.definition.level == -1 else self._module(binding.definition, module)
            known = self._resolve(binding.definition.name, home) if home is not None else []
            doubted = (_doubted(bases, binding.certain) for bases in known)
            all_found += [found for found in doubted if found not in all_found]
        if len(all_found) > MOST_VALUES:
            return [_Found(Binding(Unknown(), certain=False), module)]
        if name in module.scope.names:
            return all_found
        for reference, certain in module.scope.stars:
            other = self._module(reference, module)
            known = self._resolve(name, other) if other is not None else []
            all_found = [_doubted(found, certain) for found in known] or all_found
        return all_found

    def _module(self, reference: ImportReference, module: _Module) -> _Module | None:
        """The module of the suite that *reference* in *module* names; None for any other."""
        if reference.level > 0:
            package = module.package.split(".") if module.package else []
            if reference.level - 1 > len(package):
                return None
            parts = [*package[: len(package) - reference.level + 1], *filter(None, reference.module.split("."))]
            return self._modules.get(".".join(parts))
        first, _, rest = reference.module.partition(".")
        return self._modules.get(rest) if first == self._root else None

    def _methods(self, owner: Class, home: _Module) -> dict[str, Binding]:
        """Members of a class that are or may be functions, inherited ones included."""
        place = id(owner)
        if place not in self._members:
            self._members[place] = {}
            self._members[place] = self._gather_members(owner, home)
        return self._members[place]

    def _gather_members(self, owner: Class, home: _Module) -> dict[str, Binding]:
        members: dict[str, Binding] = {}
        certain = owner.certain and not owner.abstract
        for base in reversed(owner.bases):
            all_found = self._resolve(base, home)
            classes = [
                (binding, binding.binding.definition)
                for binding in all_found
                if isinstance(binding.binding.definition, Class)
            ]
            if not classes and base not in _PLAIN_BASES:
                certain = False
            for found, inner in classes:
                sure = found.binding.certain and len(all_found) == 1
                certain = certain and not inner.abstract
                for name, binding in self._methods(inner, found.home).items():
                    members[name] = replace(binding, certain=binding.certain and sure)
        for name, bindings in owner.members.names.items():
            last = bindings[-1]
            if all(isinstance(binding.definition, PlainValue) for binding in bindings):
                members.pop(name, None)
                continue
            definition = self._member(last.definition, owner, home)
            members[name] = Binding(
                definition, last.certain and len(bindings) == 1 and isinstance(definition, Function)
            )
        return {name: replace(binding, certain=binding.certain and certain) for name, binding in members.items()}

    def _member(self, definition: Definition, owner: Class, home: _Module) -> Definition:
        """The meaning of `time_x = other` in a class body."""
        if not isinstance(definition, ImportReference) or definition.level != -1:
            return definition
        if definition.name in owner.members.names:
            return owner.members.names[definition.name][-1].definition
        all_found = self._resolve(definition.name, home)
        return all_found[0].binding.definition if len(all_found) == 1 else Unknown()


def _doubted(benchmark: _Found, certain: bool) -> _Found:
    return benchmark if certain else replace(benchmark, binding=replace(benchmark.binding, certain=False))
