"""Scripted agents on a whole release without a harness: the author, one that does nothing, half an agent, a cheat."""

from __future__ import annotations

import pytest

from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.releasing.results import sums
from formulacode_dagster.releasing.results.agent_runners import ScriptRunner
from formulacode_dagster.releasing.results.released import ReleasedTask
from tests.support.agent_runs import release_runs
from tests.support.exports import PYTHON, TOUCHED_GRADER
from tests.support.sampling import TAKES_MINUTES

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]

HALF = """cat >shapes/__init__.py <<'END'
from shapes._fast import total


def squares(n):
    found = []
    for i in range(n):
        if i % 16 or i * i not in found:
            found.append(i * i)
    return found
END
"""
"""About the square root of the author's speed-up."""
BROKEN = "exit 3\n"


@TAKES_MINUTES
@pytest.mark.timeout(1700)
def test_each_scripted_agent_gets_what_it_deserves(rows, tmp_path, database):
    tasks = [ReleasedTask("formulacode@2026-03", rows[PYTHON])]
    agents = {"oracle": "oracle", "nop": "nop"}
    for name, script in (("half", HALF), ("cheat", TOUCHED_GRADER), ("broken", BROKEN)):
        file = tmp_path / f"{name}.sh"
        file.write_text(script)
        agents[name] = str(file)
    done = {
        name: run_loop(release_runs(tasks, ScriptRunner(agent), tmp_path / f"runs-{name}", database).run())
        for name, agent in agents.items()
    }
    rewards = {name: sums.plain_mean(sums.by_task(each.ended, sums.reward)) for name, each in done.items()}
    assert rewards["oracle"] > 0.8
    assert 0.2 < rewards["half"] < 0.8
    assert (rewards["nop"], rewards["cheat"], rewards["broken"]) == (0.0, 0.0, None)
    assert {name for name, each in done.items() if each.left} == {"broken"}
