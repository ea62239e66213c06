"""`make bench-aa`: what it asks, keeps and prints. What a task measures is tested with what it measures by."""

from __future__ import annotations

import dataclasses
import importlib
import json
import random
import sys
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.reasons import FailureKind
from tests.records import make_image, make_spec

ROOT = Path(__file__).parents[2]


@pytest.fixture
def aa(monkeypatch, tmp_path):
    """The bench as a script sees it, with scripted outcomes in the place of measured ones."""
    monkeypatch.syspath_prepend(ROOT / "bench")
    module = importlib.import_module("aa")
    monkeypatch.setattr(module, "asked", [], raising=False)
    failing: set[int] = set()

    class Scripted:
        def __init__(self, folder, sample_seconds, mirrors):
            self.seconds, self.mirrors = sample_seconds, mirrors

        def run(self, task, arms):
            module.asked.append((task, arms))
            if task.repository == "acme/broken":
                return None
            if task.number in failing:
                raise ItemFailure(FailureKind.TIMEOUT, "it took too long")
            is_found = task.effect >= 1.2
            return module.Outcome(
                task=task, arms=arms, verdict="faster" if is_found else "unchanged", speedup=task.effect, control=1.0,
                unit="build" if task.is_compiled else "process", rounds=8 if is_found else 4, disturbed=False,
                spread=0.02 if arms is module.Arms.AT_ONCE else 0.06, round_cpu_seconds=4.0, cpu_seconds=16.0,
                seconds=20.0, machine="a machine", rule=module.rule_of(self.seconds),
            )  # fmt: skip

    monkeypatch.setattr(module, "Bench", Scripted)

    def run(*options):
        module.asked.clear()
        monkeypatch.setattr(sys, "argv", ["aa.py", "--kept", str(tmp_path / "kept.jsonl"), *options])
        module.main()
        return module.asked

    run.module, run.failing = module, failing
    return run


def printed(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_all_ways_to_run_the_arms_are_told_beside_each_other(aa, capsys):
    asked = aa("--tasks", "5", "--per-effect", "2", "--arms", "all")
    assert len(asked) == 3 * (5 + 4 * 2)
    told = printed(capsys)
    assert set(told) == {"at_once", "turns", "two_cores"}
    assert (told["at_once"]["round_sd_c"], told["turns"]["round_sd_py"]) == (0.02, 0.06)
    assert (told["at_once"]["sd_after_a_cpu_second_c"], told["turns"]["sd_after_a_cpu_second_c"]) == (0.04, 0.12)


def test_false_accepts_and_power_are_those_of_the_way_asked_for(aa, capsys):
    asked = aa("--tasks", "5", "--per-effect", "2")
    assert {arms.value for _, arms in asked} == {"at_once"}
    (told,) = printed(capsys).values()
    assert (told["tasks"], told["false_accepts"]) == (5, 0)
    assert told["power"] == {"1.05": "0 of 2", "1.1": "0 of 2", "1.2": "2 of 2", "2": "2 of 2"}
    assert told["false_accept_interval"][1] == pytest.approx(0.4507, abs=1e-3)


def test_what_is_kept_is_not_done_again_and_each_way_is_a_task_of_its_own(aa, capsys):
    aa("--tasks", "3", "--per-effect", "0", "--arms", "turns")
    assert aa("--tasks", "3", "--per-effect", "0", "--arms", "turns") == []
    others = {arms.value for _, arms in aa("--tasks", "3", "--per-effect", "0", "--arms", "all")}
    assert others == {"at_once", "two_cores"}
    assert printed(capsys)["turns"]["tasks"] == 3


def test_a_task_that_cannot_be_measured_is_named_and_the_others_go_on(aa, capsys):
    aa.failing.add(0)
    assert len(aa("--tasks", "6", "--per-effect", "0")) == 6
    answer = capsys.readouterr()
    assert json.loads(answer.out.splitlines()[-1])["at_once"]["tasks"] == 1
    assert answer.err.startswith("py comments is left out: it took too long\n")
    aa.failing.clear()
    assert len(aa("--tasks", "6", "--per-effect", "0")) == 5


def test_reordered_functions_are_in_another_order(aa):
    tasks = importlib.import_module("aa_tasks")
    (task,) = (task for task in tasks.tasks(5, 0) if task.kind == "c reordered functions")
    base = tasks.files(compiled=True)["tiny/core.c"]
    assert all(tasks.changed(task, random.Random(seed))["tiny/core.c"] != base for seed in range(40))  # noqa: S311 - an edit, not a secret


def test_a_false_accept_is_counted(aa):
    (task,) = aa.module.tasks(1, 0)
    outcome = aa.module.Outcome(
        task=task, arms=aa.module.Arms.TURNS, verdict="faster", speedup=1.2, control=1.0, unit="process", rounds=8,
        disturbed=False, spread=0.1, round_cpu_seconds=1.0, cpu_seconds=9.0, seconds=9.0, machine="a machine",
    )  # fmt: skip
    same = dataclasses.replace(outcome, verdict="unchanged")
    assert aa.module.figures([outcome, same])["false_accepts"] == 1


@pytest.fixture
def mirrors(aa, tmp_path):
    """A folder with one mirror that has Python and C, one without either, and what stands for their images."""
    folder = tmp_path / "mirrors"
    files = {
        "pkg/core.py": "def f():\n    pass", "pkg/fast.c": "int x;\n", "pkg/tests/test_core.py": "",
        "benchmarks/bench.py": "", "setup.py": "", "docs/conf.py": "",
    }  # fmt: skip
    tasks = importlib.import_module("aa_tasks")
    for name, content in {"acme/wheels": files, "acme/words": {"README": "words\n"}}.items():
        tasks.commit(tmp_path / "work" / name, content)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name / ".git").rename(folder / f"{name}.git")
    module = importlib.import_module("aa_mirrors")
    made = module.Mirrors.__new__(module.Mirrors)
    made._folder, made._found = folder, {}
    return made


def test_mirrors_take_the_edits_that_their_files_allow(mirrors):
    assert mirrors.kinds() == {"acme/wheels": ("py comments", "py helper", "c unrelated function", "c rebuild")}


def test_pull_requests_with_found_workloads_take_their_repositorys_edits(mirrors, tmp_path):
    found = importlib.import_module("found_workloads")
    suite = SuiteFiles("1 snippets", {"benchmarks/snippets.py": b"\xff\n"}, Source.SNIPPETS, "c0ffee")
    for item in ("acme/wheels#7", "acme/away#1"):
        found.FoundWorkloads.of(item, ["snippets.Snippet1.time_snippet"], suite).keep(tmp_path)
    mirrors._found = found.kept_in(tmp_path)
    assert mirrors.kinds()["acme/wheels#7"] == mirrors.kinds()["acme/wheels"]
    assert "acme/away#1" not in mirrors.kinds()
    assert mirrors._found["acme/wheels#7"].laid == suite


def test_one_place_more_leaves_the_tasks_of_the_others_as_they_are(aa):
    tasks = importlib.import_module("aa_tasks").tasks
    few = tasks(12, 0, {"acme/wheels": ("c rebuild",)})
    more = tasks(16, 0, {"acme/wheels": ("c rebuild",), "acme/words#1": ("py helper", "py comments")})
    assert set(few) <= set(more)
    assert [task.builds_a_mirror for task in few] == ([False] * 5 + [True]) * 2


def test_false_accepts_are_told_by_the_source_of_what_was_timed(aa):
    (task,) = aa.module.tasks(1, 0)
    outcome = aa.module.Outcome(
        task=task, arms=aa.module.Arms.AT_ONCE, verdict="faster", speedup=1.2, control=1.0, unit="process", rounds=8,
        disturbed=False, spread=0.1, round_cpu_seconds=1.0, cpu_seconds=9.0, seconds=9.0, machine="a machine",
        source="own_tests",
    )  # fmt: skip
    same = dataclasses.replace(outcome, verdict="unchanged", source="snippets")
    told = aa.module.figures([outcome, same])["by_source"]
    assert {name: (each["tasks"], each["false_accepts"]) for name, each in told.items()} == {
        "own_tests": (1, 1),
        "snippets": (1, 0),
    }


def test_what_was_judged_by_another_plan_or_rule_is_measured_again(aa, capsys, monkeypatch):
    asked = len(aa("--tasks", "5", "--per-effect", "0"))
    assert aa("--tasks", "5", "--per-effect", "0") == []
    assert len(aa("--tasks", "5", "--per-effect", "0", "--sample-seconds", "0.1")) == asked
    capsys.readouterr()
    monkeypatch.setattr(aa.module, "RULE_VERSION", "of tomorrow")
    assert len(aa("--tasks", "5", "--per-effect", "0")) == asked
    told = capsys.readouterr()
    assert f"{2 * asked} tasks in " in told.err
    assert json.loads(told.out.splitlines()[-1])["at_once"]["tasks"] == asked


def test_found_workloads_are_asked_of_mirrors(aa, capsys):
    with pytest.raises(SystemExit):
        aa("--found", "DIR")
    assert "--found needs --repositories" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["py comments", "py helper", "c unrelated function", "c rebuild"])
def test_an_edit_of_a_mirror_adds_unused_code_to_a_package_file(aa, mirrors, tmp_path, kind):
    task = aa.module.AaTask(0, kind, 1.0, "acme/wheels")
    image = make_image(spec=make_spec(base_sha="HEAD", package_name="pkg"))
    patch = mirrors.patch(task, image, random.Random(1), tmp_path / "scratch").decode()  # noqa: S311 - a draw
    path = "pkg/fast.c" if task.is_compiled else "pkg/core.py"
    assert f"--- a/{path}\n" in patch
    # what ended without a line break gets one
    removed = [line for line in patch.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert removed == ([] if task.is_compiled else ["-    pass"])


def test_tasks_without_effect_use_mirrors_and_skip_missing_images(aa, capsys, monkeypatch):
    class Mirrors:
        def __init__(self, folder, found):
            assert (folder, found) == (Path("DIR"), None)

        def kinds(self):
            return {"acme/broken": ("py helper",), "acme/wheels": ("py comments",)}

    monkeypatch.setattr(aa.module, "Mirrors", Mirrors)
    asked = aa("--tasks", "14", "--per-effect", "2", "--repositories", "DIR")
    assert [task.repository for task, _ in asked[:7]] == ["", "", "", "", "", "acme/broken", "acme/wheels"]
    assert not any(task.repository for task, _ in asked[14:]), "effects of a known size are of our own alone"
    (told,) = printed(capsys).values()
    assert (told["tasks"], told["repositories"]) == (12, {"acme/wheels": 2})


def test_tasks_by_source_cover_every_kind_of_edit_in_separate_places(aa, capsys):
    asked = [task for task, _ in aa("--tasks", "5", "--per-effect", "0", "--per-source", "7")]
    sources = importlib.import_module("aa_sources")
    assert len(asked) == len(set(asked)) == 5 + 7 * len(sources.LAID)
    snippets = [task for task in asked if task.source == Source.SNIPPETS]
    kinds = importlib.import_module("aa_tasks").NO_EFFECT
    assert [task.kind for task in snippets] == [*kinds, *kinds[:2]]
    assert aa("--tasks", "5", "--per-effect", "0", "--per-source", "7") == []


@pytest.mark.slow
def test_each_source_times_every_function_of_our_own_repository(aa, tmp_path):
    tasks, sources = importlib.import_module("aa_tasks"), importlib.import_module("aa_sources")
    engine, repository = ProcessEngine(tmp_path / "engine", ResourceLimits()), tmp_path / "repository"
    image = tasks.build(engine, repository, tasks.commit(repository, tasks.files(compiled=False)))
    names, size = tasks.timed(compiled=False)
    with engine.session(image, run_id="test") as session:
        remote = HarnessClient(session, benchmark_dir="benchmarks", environment=image.spec.run_environment)
        for source in sources.LAID:
            suite = sources.laid_by(source, names, size, image.spec)
            remote.write(suite.files)
            survey = remote.survey(lines={}, limit=20, budget=30)
            ran = [benchmark for benchmark in survey.benchmarks if benchmark.outcome == "ran"]
            assert (suite.source, len(ran)) == (source, len(names)), survey
