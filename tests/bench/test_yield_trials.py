"""The source that reaches a pull request in a trial of the yield."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.models.image import EngineName, ResourceLimits
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.sources.git.mirror import Mirror
from resources.containers import ContainersResource
from resources.setting_types import EngineChoice
from tests.support.git_world import BareRepository, patch_between
from tests.support.measurement import engine_of, image, pull_request
from tests.support.sampling import run_whole

__all__ = ["engine_of", "image", "pull_request"]

ROOT = Path(__file__).parents[2]
CORE = "def total(n):\n    return sum(range(n))\n"
FASTER = "def total(n):\n    return n * (n - 1) // 2\n"
BENCH = "def time_nothing():\n    pass\n"
FILES = {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/__init__.py": "", "benchmarks/bench.py": BENCH}


@pytest.fixture
def trial(tmp_path, monkeypatch, engine_of, image, pull_request):
    """The trial, from its image on, of the pull request that makes `total` faster, with these files and text."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    sources, report, measuring = (
        importlib.import_module(f"yield_{name}") for name in ("sources", "report", "measuring")
    )

    def run(files, body="", *, every_source=False, plan=None, replays=0, elsewhere=()):
        history = BareRepository(tmp_path / "fast.git")
        base, merge = (
            history.add("Base", files=files),
            history.add("Faster", files={"pkg/core.py": FASTER}),
        )
        shas = history.write()
        source = tmp_path / "source"
        for path, text in files.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(text)
        pr = pull_request("pkg/core.py")
        change = pr.change.model_copy(update={"base_sha": shas[base]})
        facts = pr.facts.model_copy(update={"merge_commit_sha": shas[merge], "body": body})
        pr = pr.model_copy(update={"facts": facts, "change": change})
        before, after = ({"pkg/core.py": text.encode()} for text in (CORE, FASTER))
        patch = patch_between(tmp_path / "patch.git", before, after)
        # of folders, only the repository's own code is run
        contained = image.model_copy(update={"engine": EngineName.DOCKER})
        with Mirror("acme/fast", history.path) as mirror:
            limits = ResourceLimits()
            if plan is not None:
                taken = (engine_of(source), limits, plan, contained, mirror, pr, patch, replays)
                one_core = engine_of(source)
                made = measuring.Measuring(*taken, one_core=one_core, elsewhere=elsewhere)
                return made.measured(report.Trial("acme/fast#1"), BASE_SUITE), one_core
            asked = every_source, elsewhere
            aiming = sources.Aiming(engine_of(source), limits, contained, mirror, pr, patch, *asked)
            return aiming.aimed(report.Trial("acme/fast#1"), BASE_SUITE)

    return run


@pytest.mark.slow
def test_code_without_suite_or_tests_is_reached_by_its_text(trial):
    timed = trial(FILES, "```python\nfrom pkg import core\ncore.total(1000000)\n```")
    assert (timed.source, timed.aimed > 0, timed.is_timed) == ("snippets", True, True)


@pytest.mark.slow
def test_every_source_is_told_apart_where_that_is_asked(trial):
    test = "from pkg import core\n\n\ndef test_total():\n    assert core.total(300000)\n"
    body = "```python\nfrom pkg import core\ncore.total(1000000)\n```"
    timed = trial({**FILES, "tests/test_core.py": test}, body, every_source=True)
    assert (timed.source, timed.aimed > 0) == ("own_tests", True)
    assert {name: each.aimed > 0 for name, each in timed.sources.items()} == {
        "base_suite": False,
        "later_suite": False,
        "scripts": False,
        "own_tests": True,
        "snippets": True,
    }
    assert all(each.seconds >= 0 for each in timed.sources.values())
    assert timed.sources["own_tests"].seconds > 0
    assert timed.workloads == ("own_tests.tests_test_core_test_total.time_call('test_total')",)
    assert "class tests_test_core_test_total(_Workload):" in timed.laid


@pytest.mark.slow
@pytest.mark.parametrize("plan", [None, SamplingPlan(seconds_per_sample=0.002)], ids=["told", "measured"])
def test_the_suite_of_another_repository_is_tried_too(trial, plan):
    bench = b"from pkg import core\n\n\ndef time_total():\n    core.total(100000)\n"
    suite = SuiteFiles("acme/suite", {"benchmarks/bench.py": bench}, Source.OTHER_REPOSITORY)
    timed = trial(FILES, elsewhere=(suite,), plan=plan)
    timed = timed if plan is None else timed[0]
    assert (timed.source, timed.suite, timed.workloads) == ("other_repository", "acme/suite", ("bench.time_total",))


@run_whole("yield")
@pytest.mark.slow
def test_what_is_measured_has_a_verdict_and_what_its_tests_say(trial, capsys):
    bench = "from pkg import core\n\n\ndef time_total():\n    core.total(100000)\n"
    test = "from pkg import core\n\n\ndef test_total():\n    assert core.total(4) == 6\n"
    timed, one_core = trial(
        {**FILES, "benchmarks/bench.py": bench, "tests/test_core.py": test},
        plan=SamplingPlan(seconds_per_sample=0.002),
        replays=3,
    )
    assert (timed.verdict, timed.source, timed.workloads) == ("faster", "base_suite", ("bench.time_total",))
    assert timed.replays == ("confirmed", "confirmed", "confirmed")
    assert len(one_core.sessions) == 3, "base, control and oracle of one replay"
    told = capsys.readouterr().err
    assert all(f"{condition}: confirmed" in told for condition in ("the same", "one core", "beside a busy process"))
    assert (timed.tests, timed.is_timed) == ("hold", True)
    assert (timed.found.names, timed.found.files) == (("bench.time_total",), None)
    assert timed.measuring_seconds > 0


def test_trials_take_engine_and_folders_from_the_settings(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    trials, report = importlib.import_module("yield_trials"), importlib.import_module("yield_report")
    containers = ContainersResource(home=str(tmp_path / "home"), engine=EngineChoice.process)
    history = BareRepository(tmp_path / "acme" / "fast.git")
    history.add("Base", files=FILES)
    history.write()
    lost = trials.Laboratory(tmp_path, containers, None, report.Results(None)).trial("acme/fast#1")
    assert (lost.stage, lost.reason, lost.is_timed) == ("change", "vanished", False)


def test_a_trial_that_was_asked_for_less_is_made_again(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    asked = importlib.import_module("yield_trials")._asked
    aimed = {asked(None, 0, True), asked(None, 0, False)}
    measured = {asked(SamplingPlan(), 0, False), asked(SamplingPlan(), 3, False)}
    assert len(aimed | measured) == 4
    assert asked(SamplingPlan(), 3, True) in measured


@pytest.mark.slow
def test_what_nothing_executes_is_timed_and_not_aimed(trial):
    timed = trial(FILES)
    assert (timed.aimed, timed.is_timed) == (0, True)
