"""The verification `tests_collect`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

from formulacode_dagster.building.engines.failures import last_line
from formulacode_dagster.building.engines.protocol import Completed, Session
from formulacode_dagster.building.suites.harness_output import describe
from formulacode_dagster.building.suites.overlays import is_whole_checkout
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.models.base import listed
from formulacode_dagster.models.image import BuildSpec, Verification

from .collector import collector_archive, collector_for

NAME = "tests_collect"
COLLECT_SECONDS = 600.0
_TEST_FILE = re.compile(r"^(test_.*|.*_tests?|tests)\.py$")
_NO_MODULE = re.compile(r"^(?:E +)?ModuleNotFoundError: No module named '([^'.]+)", re.MULTILINE)
_RAISED = re.compile(r"^E +(?P<what>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Warning|Interrupt)\b.*)$", re.MULTILINE)
_PLACE = re.compile(r'^(?: *File "(.+?)", line \d+, in |(\S.*?\.(?:py|pyx|pxd)):\d+: in )', re.MULTILINE)
_NO_LIBRARY = "cannot open shared object file"
_NO_NAME = re.compile(r"cannot import name .* from '([^'.]+)")


class Blame(StrEnum):
    """Reason why a module was not collected."""

    MISSING = "lacks a module"
    """A module outside the package: an undeclared dependency of tests."""
    LIBRARY = "lacks a library of the system"
    TESTS = "fails by itself"
    """The tests' own code, or their use of another era's pytest."""
    PACKAGE = "fails in the package"


@dataclass(frozen=True)
class Collected:
    """Result of collecting."""

    completed: Completed
    tests: int | None
    """Number collected; None if collecting did not complete."""
    modules: int = 0
    """Modules with tests among them."""
    skipped: int = 0
    """Modules that skip themselves."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Reports by module."""
    pytest: str = ""


def test_files(paths: Iterable[str], spec: BuildSpec) -> tuple[str, ...]:
    """Return those of *paths* that are tests of the package by their names; benchmarks are none."""
    root = "" if spec.package_root == "." else f"{spec.package_root}/"
    benchmarks = f"{spec.benchmark_dir.strip('/')}/"
    return tuple(
        path
        for path in paths
        if path.startswith(root) and not path.startswith(benchmarks) and _TEST_FILE.match(PurePosixPath(path).name)
    )


def collect_tests(
    remote: HarnessClient,
    session: Session,
    spec: BuildSpec,
    packages: Iterable[str],
    *,
    timeout: float = COLLECT_SECONDS,
) -> Collected:
    """Collect the tests below the package's root, in a session that holds its installed *packages*.

    Raises OutsideSystemError when the package index does not answer.
    """
    archive = collector_archive(collector_for(spec.python, spec.exclude_newer))
    request = {
        "command": "collect",
        "folder": f"{session.repository}/{spec.package_root}",
        "packages": sorted(packages),
        "ignored": [] if is_whole_checkout(spec.benchmark_dir) else [f"{session.repository}/{spec.benchmark_dir}"],
        "tests": session.tests,
        "collector": session.put("fc_collector.zip", archive),
    }
    completed, answers = remote.ask(request, timeout=timeout)
    end = next((answer for answer in answers if answer["event"] == "collected"), None)
    failed = {str(answer["name"]): str(answer["message"]) for answer in answers if answer["event"] == "failed"}
    # an unreadable configuration or conftest ends pytest before the first module, with a message only
    if end is not None and end["status"] not in (0, 1, 2, 5) and not failed:
        failed = {"conftest or configuration": describe(completed)}
    return Collected(
        completed=completed,
        tests=None if end is None or completed.timed_out else int(str(end["tests"])),
        modules=sum(answer["event"] == "module" for answer in answers),
        skipped=sum(answer["event"] == "skipped" for answer in answers),
        failed=failed,
        pytest="" if end is None else str(end["pytest"]),
    )


def tests_collect(collected: Collected | None, tops: frozenset[str], places: Sequence[str]) -> Verification:
    """The repository's tests collect; None: it has no files named like tests, which is no fault of the image.

    Modules that do not are named in any case. It fails when

    * collecting does not come to its end: it was killed, or the process died;
    * nothing is collected, and neither modules that skip themselves nor a module that only tests need explains it;
    * errors raised inside the package, or libraries of the system that are missing, keep more modules from being
      collected than are.

    A missing test dependency is no failure: the lock holds the requirements of the package and its benchmarks. *tops*
    are the package's own names, *places* the folders of its code.
    """
    if collected is None:
        return Verification(name=NAME, ok=True, detail="no tests")
    completed, said = collected.completed, describe(collected.completed)
    rc = None if completed.timed_out else completed.rc
    if collected.tests is None:
        how = f"collecting {said.partition(chr(10))[0]}, after {collected.modules} modules"
        return Verification(name=NAME, ok=False, detail=how, rc=rc, log_tail=said)
    blamed = {name: blame(text, tops, places) for name, text in collected.failed.items()}
    by_image = [name for name, why in blamed.items() if why in (Blame.PACKAGE, Blame.LIBRARY)]
    explained = collected.skipped > 0 or Blame.MISSING in blamed.values()
    ok = len(by_image) <= collected.modules and (collected.tests > 0 or (explained and not by_image))
    parts = [f"{collected.tests} tests in {collected.modules} modules, by pytest {collected.pytest}"]
    for why in Blame:
        names = [name for name, errors in blamed.items() if errors is why]
        if names:
            reasons = [f"{name}: {_raised(collected.failed[name])}" for name in names]
            parts.append(f"{len(names)} modules: {why.value}: {listed(reasons, between='; ')}")
    tail = "" if ok else "\n\n".join([*(f"{name}\n{text}" for name, text in collected.failed.items()), said])
    return Verification(name=NAME, ok=ok, detail="; ".join(parts), rc=rc, log_tail=tail)


def blame(text: str, tops: frozenset[str], places: Sequence[str]) -> Blame:
    """Return the cause that pytest's report *text* of a module gives."""
    if missing := _NO_MODULE.findall(text):
        return Blame.PACKAGE if missing[-1] in tops else Blame.MISSING
    raised = _raised(text)
    if _NO_LIBRARY in raised:
        return Blame.LIBRARY
    if named := _NO_NAME.search(raised):
        return Blame.PACKAGE if named[1] in tops else Blame.MISSING
    where = [python or pytest for python, pytest in _PLACE.findall(text)]
    inside = bool(where) and _is_package(where[-1], tops, places)
    # packages use their own words for a missing optional part, perhaps a library of the system
    if raised.startswith("ImportError"):
        return Blame.MISSING if inside or (where and "/site-packages/" in where[-1]) else Blame.TESTS
    return Blame.PACKAGE if inside else Blame.TESTS


def _is_package(path: str, tops: frozenset[str], places: Sequence[str]) -> bool:
    parts = PurePosixPath(path).parts
    if _TEST_FILE.match(parts[-1]) or parts[-1] == "conftest.py" or {"test", "tests"} & set(parts[:-1]):
        return False
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1].removesuffix(".py") in tops
    return any(path.startswith(f"{place}/") or f"/{place}/" in path for place in places)


def _raised(text: str) -> str:
    errors = _RAISED.findall(text)
    return (errors[-1] if errors else last_line(text).removeprefix("E").strip())[:300]
