"""The functions of our own two repositories, as each source of workloads would have them timed."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.measuring.workloads.generated.growing import SIZES
from formulacode_dagster.measuring.workloads.overlay import PytestFunction, suite_files
from formulacode_dagster.measuring.workloads.scaled import grown_files, growth_name
from formulacode_dagster.measuring.workloads.shown_code import Snippet
from formulacode_dagster.measuring.workloads.snippets import snippet_files
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.measurement import Source

LAID = (Source.PYTEST_BENCHMARK, Source.SCRIPTS, Source.OWN_TESTS, Source.SNIPPETS, Source.SCALED_TESTS)
"""Whose workloads are called by a file of ours; those of all others are asv's own, as the suite's are."""
GROWTH = 16
_FILES = {
    Source.PYTEST_BENCHMARK: "tests/test_given.py",
    Source.OWN_TESTS: "tests/test_own.py",
    Source.SCALED_TESTS: "tests/test_small.py",
}


def tests_of(names: Sequence[str], size: int) -> dict[str, str]:
    """Files with a test of each function: one that is called, one that hands it to a fixture, one that is grown."""
    bodies = {
        Source.PYTEST_BENCHMARK: f"(benchmark):\n    assert benchmark(tiny.{{name}}, {size})\n",
        Source.OWN_TESTS: f"():\n    assert tiny.{{name}}({size})\n",
        Source.SCALED_TESTS: f"():\n    n = {size // GROWTH}\n    assert tiny.{{name}}(n)\n",
    }
    return {
        _FILES[source]: "import tiny\n" + "".join(f"\n\ndef test_{name}{body.format(name=name)}" for name in names)
        for source, body in bodies.items()
    }


def laid_by(source: Source, names: Sequence[str], size: int, spec: BuildSpec) -> SuiteFiles:
    """The suite that *source* makes of the functions *names*."""
    if source in (Source.SCRIPTS, Source.SNIPPETS):
        snippets = [Snippet("import tiny", f"tiny.{name}({size})") for name in names]
        return SuiteFiles(str(source), snippet_files(snippets, spec), source)
    functions = {PytestFunction(_FILES[source], f"test_{name}"): [f"test_{name}"] for name in names}
    if source is Source.SCALED_TESTS:
        grown = {function: [growth_name(named[0], SIZES, GROWTH)] for function, named in functions.items()}
        return SuiteFiles(str(source), grown_files(grown, spec), source)
    # pytest names the users of a fixture itself
    named = {} if source is Source.PYTEST_BENCHMARK else functions
    handing = source is Source.PYTEST_BENCHMARK
    files = suite_files({each: named.get(each, ()) for each in functions}, spec, handing=handing)
    return SuiteFiles(str(source), files, source)
