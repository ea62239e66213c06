"""The verification `imports`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from formulacode_dagster.building.engines.failures import last_line
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.suites.harness_output import describe
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.models.base import SHOWN, listed
from formulacode_dagster.models.image import Verification

from .facts import ImageFacts
from .tamper_scan import Distribution, site_packages

IMPORT_SECONDS = 300.0
_EXTENSION = re.compile(r"^(?P<module>.+?)(\.cpython-[^/]+|\.abi3)?\.so$")
_NO_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([^'.]+)")
_OF_TESTS = frozenset({"test", "tests", "testing", "_tests"})


@dataclass(frozen=True)
class Imported:
    """Result of importing modules."""

    modules: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    """Tracebacks by module."""
    completed: Completed | None = None
    """The command; None when there was nothing to import."""
    ended_under: str = ""
    """The module under which the process ended, `` when it came to its end."""


def modules_of(facts: ImageFacts, local: Sequence[Distribution], package_name: str) -> tuple[str, ...]:
    """Modules that must import: *package_name*, else the top modules of the build, then all its compiled extensions.

    For a namespace, which imports without any of its files, these are the packages in it.
    """
    site = site_packages(facts)
    paths = sorted(_inside(site, local))
    extensions = [
        match["module"].replace("/", ".")
        for path in paths
        if (match := _EXTENSION.match(path)) and _is_extension(facts, f"{site}/{path}")
    ]
    packages = {path.removesuffix("/__init__.py").replace("/", ".") for path in paths if path.endswith("/__init__.py")}
    regular = packages | {path.removesuffix(".py") for path in paths if "/" not in path and path.endswith(".py")}
    tops = [package_name] if package_name else sorted(tops_of(facts, local))
    wanted = [name for name in tops if name in regular]
    wanted = wanted or [name for name in sorted(packages) if _is_first_below(name, tops, packages)] or tops
    return tuple(dict.fromkeys([*wanted, *(name for name in extensions if _is_module(name))]))


def tops_of(facts: ImageFacts, local: Sequence[Distribution]) -> frozenset[str]:
    """Names of the top packages, namespaces and modules of the build."""
    paths = (path for path in _inside(site_packages(facts), local) if path.endswith(".py"))
    return frozenset(name for path in paths if _is_module(name := path.partition("/")[0].removesuffix(".py")))


def _is_first_below(name: str, tops: Sequence[str], packages: Collection[str]) -> bool:
    """Return True if the package *name* is below one of *tops*, and below no other of *packages*."""
    parts = name.split(".")
    above = {".".join(parts[:count]) for count in range(1, len(parts))}
    return _is_module(name) and not above.isdisjoint(tops) and above.isdisjoint(packages)


def _inside(site: str, local: Sequence[Distribution]) -> Iterator[str]:
    """Paths below *site* of the files that *local* distributions brought."""
    for distribution in local:
        yield from (path.removeprefix(f"{site}/") for path in distribution.record if path.startswith(f"{site}/"))


def import_modules(remote: HarnessClient, modules: Sequence[str], *, timeout: float = IMPORT_SECONDS) -> Imported:
    """Import *modules* in one process, outside the checkout, so that the installed package is tested."""
    if not modules:
        return Imported(())
    completed, answers = remote.ask({"command": "imports", "modules": list(modules)}, timeout=timeout)
    failed = {str(answer["name"]): str(answer["message"]) for answer in answers if answer["event"] == "failed"}
    ended = bool(answers) and answers[-1]["event"] == "end" and not completed.timed_out
    tried = [str(answer["name"]) for answer in answers if answer["event"] == "importing"]
    under = "" if ended else (tried[-1] if tried else modules[0])
    return Imported(tuple(modules), failed, completed, under)


def imports(imported: Imported, tops: frozenset[str]) -> Verification:
    """The package and every compiled extension import.

    An extension among the package's tests may lack a module that only tests need: it is named, and does not fail.
    *tops* are the package's own names.
    """
    modules, completed = imported.modules, imported.completed
    if completed is None:
        return Verification(name="imports", ok=False, detail="no installed package has a module")
    problems = [f"{imported.ended_under}: {describe(completed)}"] if imported.ended_under else []
    excused = [name for name, text in imported.failed.items() if _lacks_for_tests(name, text, tops)]
    problems += [f"{name}: {last_line(text)}" for name, text in imported.failed.items() if name not in excused]
    if not problems:
        detail = f"{len(modules) - len(excused)} modules import: {', '.join(modules[:SHOWN])}"
        detail += f"; not tried whole: {listed(excused)}" if excused else ""
        return Verification(name="imports", ok=True, detail=detail, rc=completed.rc)
    return Verification(
        name="imports",
        ok=False,
        detail=listed([problem.partition("\n")[0] for problem in problems], between="; "),
        rc=None if completed.timed_out else completed.rc,
        log_tail="\n".join([*imported.failed.values(), *([describe(completed)] if imported.ended_under else [])]),
    )


def _lacks_for_tests(name: str, text: str, tops: frozenset[str]) -> bool:
    missing = _NO_MODULE.match(last_line(text))
    return missing is not None and missing[1] not in tops and not _OF_TESTS.isdisjoint(name.split(".")[:-1])


def _is_extension(facts: ImageFacts, path: str) -> bool:
    fact = facts.environment.get(path)
    return fact is not None and fact.is_extension


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))
