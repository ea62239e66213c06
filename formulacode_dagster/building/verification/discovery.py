"""The verification `benchmarks`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from formulacode_dagster.building.declarations.asv_config import AsvConfig
from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.engines.failures import last_line
from formulacode_dagster.building.suites.commits import config_of_suite
from formulacode_dagster.building.suites.questions import Survey
from formulacode_dagster.building.suites.reading import SuiteReading
from formulacode_dagster.models.base import listed
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import Verification

NAME = "benchmarks"
_NOT_FOUND = "ModuleNotFoundError: No module named"


def benchmarks(survey: Survey | ItemFailure, reading: SuiteReading) -> Verification:
    """Benchmarks are found, and they match those read from the suite's files.

    A module or class lost to an error is named and reported, as are benchmarks that reading did not predict. The gate
    fails if nothing is left, and if a benchmark that a module defines unconditionally was not found although the module
    was imported: then something in the session shortened the list, or answered in the harness's place.
    """
    if isinstance(survey, ItemFailure):
        return Verification(name=NAME, ok=False, detail=str(survey), log_tail=survey.log_tail)
    discovered, lost = survey.discovered, survey.lost
    unseen = _unseen(reading, discovered, lost)
    parts = [f"{len(discovered)} benchmarks, {len(reading.certain)} told by reading"]
    if unseen:
        parts.append(f"{len(unseen)} are in the files and were not found: {listed(unseen)}")
    if lost:
        parts.append(listed([f"{name} lost: {last_line(text)}" for name, text in lost.items()], between="; "))
    if beyond := sorted(name for name in set(discovered) if not reading.mentions(name)):
        parts.append(f"{len(beyond)} that reading did not find: {listed(beyond)}")
    ok = bool(discovered) and not unseen
    tail = "" if ok else "\n".join(f"{name} lost:\n{text}" for name, text in lost.items())
    return Verification(name=NAME, ok=ok, detail="; ".join(parts), log_tail=tail)


def without_suite(name: str, base: Tree) -> Verification:
    """The verification *name* of an image planned without a suite: it passes if there is none at *base*.

    Workloads of such a task are found and run at measurement.
    """
    lacking = config_of_suite(base)
    if isinstance(lacking, AsvConfig):
        detail = f"planned without a suite, and {lacking.path} names one at {base.commit[:12]}: {lacking.benchmark_dir}"
        return Verification(name=name, ok=False, detail=detail)
    return Verification(name=name, ok=True, detail=f"no suite: {lacking}")


def _unseen(reading: SuiteReading, discovered: Collection[str], lost: Mapping[str, str]) -> list[str]:
    """Benchmarks that had to be found and were not; those of a lost module or class aside.

    A module that could not be found by its own name is not lost: its file is in the commit, and somebody put it away.
    """
    gone = [name for name, text in lost.items() if last_line(text) != f"{_NOT_FOUND} '{name}'"]
    starts = tuple(f"{name.partition('.')[2]}." for name in gone)
    return [name for name in reading.missing(discovered, gone) if not name.startswith(starts)]
