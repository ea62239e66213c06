"""Each Python example of the README and the site runs as it stands, against an `astropy/astropy` on localhost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.models.measurement import Arm
from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.releasing.dataset.tables import month_tables
from formulacode_dagster.releasing.dataset.task_tables import SampleRecord, TaskRecords
from sandbox import hub
from sandbox.github import app
from sandbox.model.app import MODEL
from sandbox.model.app import app as model_app
from sandbox.server import serving
from tests.support.documents import blocks_of
from tests.support.release import task_row

EXAMPLES = [example for example in blocks_of("python") if "Synthesizer" not in example]
"""Images built by hand replace planned ones: in the tests of the synthesizer."""
FACTS: dict[str, Any] = {
    "astropy/astropy": {
        "issues": [
            {
                "number": 9,
                "title": "Sky coordinates are slow",
                "body": "@eve measured it",
                "created_at": "2024-01-01T00:00:00Z",
                "comments": [{"author": "bob", "body": "Same here", "created_at": "2024-01-02T00:00:00Z"}],
            }
        ],
        "pull_requests": [
            {
                "number": 16222,
                "title": "Faster sky coordinates",
                "body": "Fixes #9",
                "author": "ada",
                "created_at": "2024-03-01T00:00:00Z",
                "merged_at": "2024-03-10T00:00:00Z",
                "files": {"sky.py": "table = build_sky_table(catalogue, order=3)\n"},
            }
        ],
    }
}
SAID = {
    "asyncio.run(PR.fetch(": "astropy/astropy#16222 from github by ada\n",
    "links = await scrape_links": (
        "astropy/astropy#16222 from github by ada\n1 astropy/astropy#9 Sky coordinates are slow\n"
        "# Faster sky coordinates\n\nThe repository `astropy/astropy` (Astronomy in Python) is"
    ),
    "client.get_timeline": (
        "Faster sky coordinates 2024-03-10 00:00:00+00:00\nA sky.py 1 0\n2024-03-10 00:00:00+00:00 merged ada\n"
        "2024-03-10 00:00:00+00:00 closed ada\nSky coordinates are slow 1 comments before the merge\n"
    ),
    'dataset["astropy__astropy-16222"]': ("registry.example/astropy@sha256:1 2.0\n[('base', 0.5), ('oracle', 0.25)]\n"),
    "released.items()": ("astropy__astropy-16222 registry.example/astropy@sha256:1 26 bytes of patch\nshape: (0, 4)\n"),
    "records(start_date=": "that is all\n",
    "classifier.classify(pr)": ("True uncategorized easy ('table = build_sky_table(catalogue, order=3)',)\n"),
    "classify_many": (
        "1 of 1: astropy/astropy#16222 done\n2 calls\nastropy/astropy#16222 done uncategorized\n"
        "sandbox-rules True easy\n"
    ),
    "pool = TokenPool()": (
        "7 lines, 2 events, ['Sky coordinates are slow']\n# Faster sky coordinates\n\nThe repository `astropy/astropy`"
    ),
    "supabase_cached": (
        "thinking\nastropy/astropy in short astropy/astropy in short\nthinking again\n"
        "astropy astropy#16222 astropy astropy#16222\n"
    ),
    "ClassifyPRsRunner": "1 of 1: astropy/astropy#16222 done\ndone True\n0 pull requests\n",
    "with HookRegistry() as hooks": (
        "thinking about astropy/astropy#16222\nastropy/astropy in 3 words\nastropy/astropy in 3 words\n"
    ),
}
"""Beginning of an example's output, by a name that only it contains."""


@pytest.fixture
def environment(github_folder: Callable[..., Path], database_url: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    folder = github_folder(FACTS)
    with serving(app(folder)) as url, serving(hub.app(tmp_path / "hub")) as hub_url, serving(model_app()) as model:
        release_sky(hub_url)
        yield {
            "HF_ENDPOINT": hub_url,
            "LLM_BASE_URL": f"{model}/v1",
            "LLM_MODEL": MODEL,
            "LLM_API_KEY": "any",
            "PATH": os.environ["PATH"],
            "GITHUB_API_URL": url,
            "GITHUB_CLONE_URL": folder.as_uri(),
            "GH_TOKENS": "sandbox",
            "FC_HOME": str(tmp_path / "home"),
            "FC_DATABASE_URL": database_url,
        }


def release_sky(hub_url: str) -> None:
    """The dataset `formulacode/tasks` with one task, on the Hub at *hub_url*."""
    task = {"task_id": "astropy__astropy-16222"}
    times = {Arm.BASE: 0.5, Arm.ORACLE: 0.25}
    image = {"image_name": "registry.example/astropy:16222", "image_digest": "sha256:1"}
    samples = tuple(
        SampleRecord(**task, benchmark="time_sky", arm=arm, value=seconds, round=0, order=0, calls=1)
        for arm, seconds in times.items()
    )
    record = TaskRecords(row=task_row(1, **task, **image, speedup=2.0), samples=samples)
    HubDestination("formulacode/tasks", hub_url, "a-token").release(Month.parse("2026-02"), month_tables([record]))


def test_there_is_an_example_for_each_part() -> None:
    assert len(EXAMPLES) == len(SAID)
    for name in SAID:
        assert sum(name in example for example in EXAMPLES) == 1, name


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_an_example_does_what_it_says(
    name: str,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (example,) = [example for example in EXAMPLES if name in example]
    monkeypatch.chdir(tmp_path)
    for setting, value in environment.items():
        monkeypatch.setenv(setting, value)
    exec(compile(example, "example", "exec"), {"__name__": "__main__"})  # noqa: S102 - the code is our own
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith(SAID[name]), printed.out


@pytest.mark.slow
def test_an_example_runs_as_it_stands(environment: dict[str, str], tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", EXAMPLES[0]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert any(ran.stdout.startswith(text) for text in SAID.values()), ran.stdout
