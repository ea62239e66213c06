"""What an agent did in a run, from a trajectory that anybody may have written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formulacode_dagster.library.site.build import write_site
from formulacode_dagster.library.site.results_page import SiteResults
from formulacode_dagster.library.site.run_page import MOST_STEPS, MOST_TEXT, RunFiles, page_of, run_view, steps_of
from formulacode_dagster.models.agent_run import Contamination, HackVerdict
from tests.support.agent_runs import DIFF, TRAJECTORY, agent_run
from tests.support.site import AS_RELEASED, HOSTILE, hostile_dataset

STEPS = [
    {"source": "user", "message": HOSTILE},
    {
        "source": "agent",
        "message": [{"type": "text", "text": "I"}, {"type": "text", "text": "look"}],
        "reasoning_content": "why",
        "tool_calls": [{"function_name": f"bash {HOSTILE}", "arguments": {"command": "ls"}}],
        "observation": {"results": [{"content": "f.py"}, {"content": None}, 7]},
    },
    "no step",
]


def test_steps_have_messages_calls_and_outputs_in_their_order() -> None:
    first, second = steps_of(json.dumps({"steps": STEPS}))
    assert (first.number, first.source, first.texts) == (1, "user", (("message", HOSTILE),))
    assert [kind.split()[0] for kind, _ in second.texts] == ["reasoning", "message", "call", "output"]
    assert [text for _, text in second.texts] == ["why", "I\nlook", '{\n "command": "ls"\n}', "f.py"]


@pytest.mark.parametrize("text", ["plain", "[]", "7", '{"steps": 3}', "[" * 100_000, '{"steps": [[], null]}'])
def test_any_other_text_is_shown_as_it_is(text: str) -> None:
    assert [step.texts[0][1][:5] for step in steps_of(text)] in ([text[:5]], [])


def test_long_trajectories_are_shortened_and_say_so() -> None:
    steps = [{"source": "agent", "message": "x" * (MOST_TEXT + 5)}] * (MOST_STEPS + 3)
    view = run_view(agent_run("a__b-1", 0.5), RunFiles(trajectory=json.dumps({"steps": steps})))
    assert (len(view.steps), view.left_out) == (MOST_STEPS, 3)
    assert "… 5 characters …" in view.steps[0].texts[0][1]


def test_runs_with_files_have_a_page_and_task_and_agent_link_to_it(tmp_path: Path) -> None:
    dataset = hostile_dataset(tmp_path / "data", tasks=2)
    marks = {**AS_RELEASED, "month": "2026-01", "hack": HackVerdict.HACK, "contaminated": Contamination.YES}
    runs = [agent_run(task_id, 0.5, HOSTILE, **marks) for task_id in dataset]
    left = {runs[0].run_id: RunFiles(DIFF.decode() + HOSTILE, json.dumps(TRAJECTORY | {"steps": STEPS}))}
    told = SiteResults(runs, read_run=lambda run: left.get(run.run_id, RunFiles()))
    site = write_site(dataset, tmp_path / "site", (), told).index.parent
    (page,) = (site / "runs").iterdir()
    assert page.stem == page_of(runs[0])
    text = page.read_text("utf-8")
    assert "<script>window" not in text
    assert text.count("&lt;script&gt;") >= 4
    assert 'class="added"' in text
    assert "The hack judge says: <strong>hack</strong>" in text
    assert "judged a hack" in (site / "tasks" / f"{runs[1].task_id}.html").read_text("utf-8")
    links = [f"../runs/{page.name}" in (site / "tasks" / f"{run.task_id}.html").read_text("utf-8") for run in runs]
    assert links == [True, False]
    (table,) = (site / "agents").glob("*.js")
    assert page.stem in table.read_text("utf-8")
    write_site(dataset, site)
    assert not (site / "runs").exists()
