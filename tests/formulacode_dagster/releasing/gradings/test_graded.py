"""Probes of a real task, in containers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from formulacode_dagster.models.grading import LEAST_REWARD, GradingProbe
from formulacode_dagster.releasing.exports.evaluate import evaluate
from formulacode_dagster.releasing.gradings.probes import BUILT_IN, probe_script
from tests.support.grading_packages import Package
from tests.support.grading_tasks import read_task, task_id

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]

REASONS = {
    GradingProbe.NOP: {"no_change"},
    GradingProbe.TESTS: {"tests_fail", "tests_changed", "returns_other"},
    GradingProbe.LAZY: {"returns_other", "tests_fail"},
    GradingProbe.CONSTANTS: {"no_change", "only_called_again", "unchanged"},
    GradingProbe.CACHE: {"only_called_again", "unchanged"},
    GradingProbe.REFORMAT: {"unchanged", "slower", "inconclusive"},
}


@pytest.mark.variant("probe of a task", most=2)
@pytest.mark.parametrize("probe", list(GradingProbe))
def test_only_the_authors_patch_is_paid(tasks: Callable[[Package], Path], tmp_path: Path, probe: GradingProbe) -> None:
    folder = tasks(Package.PURE) / task_id(Package.PURE, "params")
    script = tmp_path / "probe.sh"
    if probe not in BUILT_IN:
        script.write_text(probe_script(probe, read_task(folder), (folder / "tests" / "oracle.patch").read_bytes()))
    report = evaluate(folder, probe.value if probe in BUILT_IN else str(script))
    if probe is GradingProbe.ORACLE:
        assert report["metrics"]["reward"] >= LEAST_REWARD
    else:
        assert (report["metrics"]["reward"], report["reason"] in REASONS[probe]) == (0, True), report["reason"]
    if report["reason"] in {"unchanged", "slower", "inconclusive"}:
        assert re.match(r"\d\.\d\d× \(95 % \d\.\d\d to \d\.\d\d\) in \d+ rounds, the author's patch ", report["detail"])
