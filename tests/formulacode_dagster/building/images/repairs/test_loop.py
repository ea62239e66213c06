"""Builds that fail until a rule, a neighbour's recipe or the package's own metadata says what they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.images.repairs.attempts import Recipe, Task
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.building.images.submodules import submodule_mirrors
from formulacode_dagster.building.planning.plan import plan_environment
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.building.suites.overlays import first_suite
from formulacode_dagster.models.attempt import BuildAttempt, Rung
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Command, Fix, OnFailure
from formulacode_dagster.sources.git.mirror import MirrorCache
from tests.support.images import LIMITS, PURE, make_sample

pytestmark = pytest.mark.network

MERGED_AT = datetime(2026, 6, 4, tzinfo=UTC)
MONTH = Month.parse("2026-06")
ORACLE = {"README.md": "faster\n"}
OLD_API = {**PURE, "tinypure/__init__.py": "import pkg_resources\n\n\ndef total(n):\n    return sum(range(n))\n"}


@dataclass
class Workshop:
    """Engine, resolver and mirrors of one test, and the attempts that were kept."""

    root: Path
    resolver: Resolver
    kept: list[BuildAttempt] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = ProcessEngine(self.root / "engine", LIMITS)
        self.cache = MirrorCache(self.root / "mirrors", f"file://{self.root}/origins")

    def task(self, name: str, files: dict[str, str], oracle: dict[str, str] = ORACLE) -> Task:
        sample = make_sample(self.root / "origins" / "Acme" / name, name, files, oracle)
        pr = sample.pull_request()
        facts = pr.facts.model_copy(update={"merged_at": MERGED_AT, "month": MONTH.key})
        pr = pr.model_copy(update={"facts": facts})
        mirror = self.cache.ensure(facts.repository, commits=(sample.base, sample.merge))
        plan: Callable[..., Environment] = partial(
            plan_environment, mirror, pr, month=MONTH, interpreters=frozenset({"3.11"}), resolver=self.resolver
        )
        environment = plan()
        return Task(
            pr=pr,
            environment=environment,
            mirror=mirror,
            anchor_sha=sample.anchor,
            os_image="fc-os:py{python}",
            replan=lambda fixes: plan(fixes=fixes),
            submodules=partial(submodule_mirrors, self.cache),
            suite=first_suite(mirror, pr, environment.benchmark_dir, suite_sha=environment.suite_sha),
        )

    def build(self, task: Task, neighbour: Sequence[Fix] = (), ineffective: Sequence[Fix] = ()) -> BuiltImage:
        self.kept.clear()
        image, log = build_until_it_holds(
            self.engine,
            task,
            run_id="run",
            recipes=[Recipe(Rung.NEAREST, tuple(neighbour))] if neighbour else (),
            ineffective=ineffective,
            first_attempt=4,
            keep=self.kept.append,
        )
        assert "$ install-package" in log
        return image

    @property
    def story(self) -> list[tuple[int, str, str]]:
        """Number, stage and rule of the attempts kept."""
        return [(attempt.attempt, attempt.stage, attempt.rule) for attempt in self.kept]


@pytest.fixture(scope="session")
def resolver(tmp_path_factory: pytest.TempPathFactory) -> Resolver:
    return Resolver(tmp_path_factory.mktemp("resolver"))


@pytest.fixture
def workshop(tmp_path: Path, resolver: Resolver) -> Workshop:
    return Workshop(tmp_path, resolver)


def test_a_rule_repairs_a_build_and_the_next_commit_starts_from_it(workshop: Workshop) -> None:
    first = workshop.build(workshop.task("first", OLD_API))
    assert workshop.story == [(4, "imports", ""), (5, "done", "pkg_resources")]
    failed, done = workshop.kept
    assert (failed.kind, failed.rc is None or failed.rc >= 0) == ("imports", True)
    assert "No module named 'pkg_resources'" in failed.log
    assert (done.rc, done.kind) == (0, "")
    assert first.attempts == 2
    assert [fix.rule for fix in first.spec.fixes] == ["pkg_resources"]
    assert first.spec.fixes[0].evidence.endswith("No module named 'pkg_resources'")

    second = workshop.build(workshop.task("second", OLD_API), neighbour=first.spec.fixes)
    assert workshop.story == [(4, "done", "recipe_of_a_neighbour")]
    assert second.attempts == 1


def test_a_recipe_that_fails_is_left_for_a_plain_build(workshop: Workshop) -> None:
    broken = Command(argv=("false",), on_failure=OnFailure.STOP, source="test")
    image = workshop.build(workshop.task("plain", PURE), [Fix(rule="r", evidence="e", commands=(broken,))])
    assert workshop.story == [(4, "task", "recipe_of_a_neighbour"), (5, "done", "")]
    assert workshop.kept[0].rc == 1
    assert image.spec.fixes == ()


def test_what_setup_py_computes_is_taken_from_the_metadata_that_it_wrote(workshop: Workshop) -> None:
    files = {name: text for name, text in PURE.items() if name != "pyproject.toml"}
    files["setup.py"] = (
        "import string\nfrom setuptools import setup\n"
        "needs = ['s' + c + 'x' for c in string.ascii_lowercase if c == 'i']\n"
        "setup(name='tinypure', version='1.0', packages=['tinypure'], install_requires=needs)\n"
    )
    files["tinypure/__init__.py"] = "import six\n\n\ndef total(n):\n    return sum(range(n))\n"
    image = workshop.build(workshop.task("computed", files))
    assert workshop.story == [(4, "imports", ""), (5, "done", "metadata_of_the_build")]
    assert image.spec.fixes[0].requirements == ("six",)
    assert image.spec.fixes[0].evidence == "Requires-Dist: six"


def test_a_module_lost_to_an_import_is_won_by_one_more_attempt(workshop: Workshop) -> None:
    files = {**PURE, "benchmarks/bench_more.py": "import toolz\n\n\ndef time_more():\n    pass\n"}
    image = workshop.build(workshop.task("lost", files))
    assert workshop.story == [(4, "done", ""), (5, "done", "missing_module")]
    assert "bench_more.time_more" in image.benchmarks
    assert image.attempts == 2


def test_an_image_that_holds_is_never_lost_for_a_better_one(workshop: Workshop) -> None:
    files = {**PURE, "benchmarks/bench_more.py": "import toolz\n\n\ndef time_more():\n    pass\n"}
    task = workshop.task("kept", files)

    def refuse(_: Sequence[Fix]) -> Environment:
        raise ItemFailure(FailureKind.LOCK, "no solution")

    image = workshop.build(Task(**{**vars(task), "replan": refuse}))
    assert workshop.story == [(4, "done", ""), (5, "plan", "missing_module")]
    assert workshop.kept[1].spec.fixes[0].requirements == ("toolz",)
    assert len(image.benchmarks) == 2
    assert workshop.engine.exists(image)

    in_vain = workshop.kept[1].spec.fixes[0].model_copy(update={"evidence": "of another commit"})
    workshop.build(task, ineffective=[in_vain])
    assert workshop.story == [(4, "done", "")], "what won nothing is not tried again"


@pytest.mark.parametrize(
    ("benchmark", "stage"),
    [
        ("from tinypure.testing import sizes\n\n\ndef time_it():\n    sizes()\n", "benchmarks"),
        ("import tinypure\n\n\ndef time_it():\n    tinypure.sizes()\n", "one_benchmark_runs"),
    ],
)
def test_a_suite_that_the_base_has_not_is_no_reason_to_lose_its_image(
    workshop: Workshop, benchmark: str, stage: str
) -> None:
    files = {name: text for name, text in PURE.items() if not name.startswith(("benchmarks/", "asv"))}
    oracle = {
        "asv.conf.json": PURE["asv.conf.json"],
        "benchmarks/bench.py": benchmark,
        "tinypure/__init__.py": "def total(n):\n    return n * (n - 1) // 2\n\n\ndef sizes():\n    return [1]\n",
        "tinypure/testing.py": "def sizes():\n    return [1]\n",
    }
    image = workshop.build(workshop.task("later", files, oracle))
    assert workshop.story == [(4, stage, ""), (5, "done", "without_suite")]
    assert (image.spec.has_suite, image.benchmarks) == (False, ())
    assert "no suite: no asv configuration" in str(image.verifications)


def test_a_suite_of_the_base_that_does_not_run_fails_its_image(workshop: Workshop) -> None:
    files = {**PURE, "benchmarks/bench_total.py": "from tinypure.testing import sizes\n"}
    with pytest.raises(ItemFailure, match=r"tinypure\.testing"):
        workshop.build(workshop.task("broken", files))
    assert [stage for _, stage, _ in workshop.story] == ["benchmarks"]


def test_a_later_suite_that_hides_a_benchmark_fails_its_image(workshop: Workshop) -> None:
    files = {name: text for name, text in PURE.items() if not name.startswith(("benchmarks/", "asv"))}
    hiding = "import sys\n\n\ndef time_it():\n    pass\n\n\nvars(sys.modules[__name__]).pop('time_it')\n"
    oracle = {"asv.conf.json": PURE["asv.conf.json"], "benchmarks/bench.py": hiding}
    with pytest.raises(ItemFailure, match="were not found"):
        workshop.build(workshop.task("hiding", files, oracle))
    assert [stage for _, stage, _ in workshop.story] == ["benchmarks"]
