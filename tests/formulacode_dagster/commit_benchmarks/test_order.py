"""`fc-data benchmark`, as a person types it."""

from __future__ import annotations

import json
import shlex

import pytest
from pydantic import ValidationError

from formulacode_dagster.commit_benchmarks.order import Order
from tests.support.git_world import BareRepository

COMMAND = "benchmark --repository owner/name --commits v1.0..v2.0 --steps 20"
CONFIG = '{"version": 1, "project": "name", "repo": ".", "benchmark_dir": "benchmarks"}'
SUITE = {"asv.conf.json": CONFIG, "benchmarks/__init__.py": "def time_it():\n    pass\n"}


@pytest.mark.slow
def test_the_command_of_the_documentation_benchmarks_commits(tmp_path, call_fc_data, database_url):
    repository = BareRepository(tmp_path / "origin/owner/name.git")
    marks = [repository.add("A suite of nothing", files=SUITE), repository.add("Second"), repository.add("Third")]
    repository.ref("refs/tags/v1.0", marks[0])
    repository.ref("refs/tags/v2.0", marks[2])
    shas = repository.write()
    settings = {
        "FC_ENGINE": "process",
        "FC_DATABASE_URL": database_url,
        "GITHUB_CLONE_URL": (tmp_path / "origin").as_uri(),
    }
    ran = call_fc_data(*shlex.split(COMMAND), **settings)
    # neither commit can be installed: both are told, and the command says so
    assert (ran.returncode, ran.stderr) == (1, "")
    assert [shas[mark][:10] in ran.stdout for mark in marks] == [False, True, True]
    folder = tmp_path / "home/commit-benchmarks/owner__name"
    failures = [json.loads(line) for line in (folder / "failures.jsonl").read_text().splitlines()]
    assert {failure["commit"]: failure["reason"] for failure in failures} == {
        shas[mark]: "package_root" for mark in marks[1:]
    }
    assert json.loads((folder / "tuning.json").read_bytes())["governor"]["tuned"] in ("yes", "no", "unknown")
    ran = call_fc_data(*shlex.split(COMMAND), **settings)
    assert "0 of 2 worked on" in ran.stdout
    ran = call_fc_data(*shlex.split(COMMAND), "--bench", "(", **settings)
    assert (ran.returncode, "no regular expression" in ran.stderr) == (1, True)


@pytest.mark.parametrize("field", [{"as_of": "yesterday"}, {"steps": 0}, {"plan": {"rounds": 0}}])
def test_what_cannot_be_is_refused(field):
    with pytest.raises(ValidationError):
        Order(repository="a/b", commits=("main",), **field)
