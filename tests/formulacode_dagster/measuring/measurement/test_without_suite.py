"""Workloads if no suite executes a change."""

import pytest

from formulacode_dagster.building.suites.overlays import NO_SUITE
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.workloads.written import Draft
from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.reasons import RejectionReason
from sandbox.model.rules import write_benchmark
from tests.support.small_measurement import CORE, FASTER, FILES

WHERE_NO_SUITE_SERVES = pytest.mark.variant("what is timed where no suite executes the change", most=1)


@WHERE_NO_SUITE_SERVES
@pytest.mark.slow
def test_the_repositorys_tests_are_timed_if_no_suite_reaches_the_change(measure):
    test = "from pkg import core\n\n\ndef test_total():\n    assert core.total(200000)\n"
    files = FILES | {"benchmarks/bench.py": "def time_nothing():\n    pass\n", "tests/test_core.py": test}
    measured, log = measure({"pkg/core.py": FASTER}, files=files)
    assert measured.speedup > 5
    (result,) = measured.results
    assert result.benchmark == "own_tests.tests_test_core_test_total.time_call('test_total')"
    assert measured.provenance.source is Source.OWN_TESTS
    assert measured.provenance.adapted == ("tests/test_core.py: test_total",)
    assert len(measured.provenance.sha256) == 64
    executed = measured.executed[result.benchmark]
    assert (executed["base"], executed["oracle"]) == ({"pkg/core.py": (3, 4, 5, 6)}, {"pkg/core.py": (3,)})
    assert "1 of its own tests execute the change" in log


@WHERE_NO_SUITE_SERVES
@pytest.mark.slow
def test_without_a_suite_tests_are_timed_and_fixed_in_advance(measure, monkeypatch):
    commands, ask = [], HarnessClient.ask

    def listen(remote, request, **options):
        commands.append(request["command"])
        return ask(remote, request, **options)

    monkeypatch.setattr(HarnessClient, "ask", listen)
    test = "from pkg import core\n\n\ndef test_total():\n    assert core.total(200000)\n"
    files = {"pkg/__init__.py": "", "pkg/core.py": CORE, "tests/test_core.py": test}
    measured, _ = measure({"pkg/core.py": FASTER}, files=files, suite=NO_SUITE)
    chosen, timing = commands[: commands.index("time")], commands[commands.index("time") :]
    assert {"write", "survey"} <= set(chosen)
    assert "write" not in timing
    assert measure.procedure.suite_files.sha256 == measured.provenance.sha256 != ""
    assert measured.speedup > 5
    assert measured.provenance.source is Source.OWN_TESTS
    assert [result.benchmark for result in measured.results] == [
        "own_tests.tests_test_core_test_total.time_call('test_total')"
    ]


@pytest.mark.slow
def test_without_a_suite_and_without_anything_else_there_is_no_workload(measure):
    files = {"pkg/__init__.py": "", "pkg/core.py": CORE}
    with pytest.raises(Rejection) as caught:
        measure({"pkg/core.py": FASTER}, files=files, suite=NO_SUITE)
    assert caught.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD


SILENT = FILES | {"benchmarks/bench.py": "def time_nothing():\n    pass\n"}


@WHERE_NO_SUITE_SERVES
@pytest.mark.slow
def test_snippets_are_timed_if_no_suite_or_test_reaches_the_change(measure):
    body = "It is faster:\n```python\nfrom pkg import core\n%timeit core.total(20000)\n```\n"
    measured, _ = measure({"pkg/core.py": FASTER}, files=SILENT, body=body, engine=EngineName.DOCKER)
    assert measured.speedup > 5
    assert measured.provenance.source is Source.SNIPPETS
    assert measured.provenance.adapted[0].startswith("pull request")
    assert [result.benchmark for result in measured.results] == ["snippets.Snippet1.time_snippet"]


@WHERE_NO_SUITE_SERVES
@pytest.mark.slow
def test_a_models_benchmark_is_timed_if_nothing_else_reaches_the_change(measure):
    class Sandbox:
        name = "sandbox-rules"
        materials = ()

        def draft(self, _instructions, material):
            self.materials = (*self.materials, material)
            return Draft.model_validate_json(write_benchmark(material))

    writer = Sandbox()
    measured, _ = measure({"pkg/core.py": FASTER}, files=SILENT, writer=writer, engine=EngineName.DOCKER)
    assert measured.speedup > 5
    assert measured.provenance.source is Source.MODEL
    assert measured.provenance.adapted == ("written.py: written by sandbox-rules",)
    assert {result.benchmark.partition("(")[0] for result in measured.results} == {"written.Written.time_total"}
    (material,) = writer.materials
    assert CORE.strip() in material
    # nor what the patch makes of it
    assert "n * (n - 1)" not in material
