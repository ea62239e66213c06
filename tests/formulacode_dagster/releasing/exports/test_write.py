"""The export of a row, and rows that cannot be exported."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from formulacode_dagster.library import Dataset
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.files.atomic import PARTIAL
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.tables import month_tables
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords
from formulacode_dagster.releasing.exports.formats import (
    AGENT_DIFF,
    HarnessFormat,
    build_context,
    collect_script,
    solution,
)
from formulacode_dagster.releasing.exports.write import export_task, export_tasks
from tests.records import make_image, make_spec
from tests.support.exports import row_of
from tests.support.release import task_row

PATCH = b"diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-a = 1\n+faster = 2\n"
PUSHED = {"image_name": "registry.test:5000/acme/tasks:fast-5", "image_digest": "sha256:" + "1" * 64}


@pytest.fixture
def row():
    """A row that can be exported."""
    image = make_image(spec=make_spec(package_name="fast.core", run_environment={"A": "1"}))
    return row_of("python", image, PATCH, PUSHED["image_name"], PUSHED["image_digest"])


def test_a_harbor_task_runs_the_image_by_digest_without_a_network(row, tmp_path):
    (folder,) = export_tasks([row], HarnessFormat.HARBOR, tmp_path)
    assert folder == tmp_path / row["task_id"]
    dockerfile = (folder / "environment/Dockerfile").read_text()
    assert dockerfile.startswith(f"FROM registry.test:5000/acme/tasks@{PUSHED['image_digest']}\n")
    assert [file.name for file in (folder / "environment").iterdir()] == ["Dockerfile"]
    task = tomllib.loads((folder / "task.toml").read_text())
    assert task["environment"]["network_mode"] == "no-network"
    assert (task["agent"]["user"], task["verifier"]["user"]) == ("formulacode", "root")
    # the grader's container gets the agent's changes, and nothing else of its container
    assert task["verifier"]["environment_mode"] == "separate"
    assert [each["source"] for each in task["artifacts"]] == [AGENT_DIFF]
    (hook,) = task["verifier"]["collect"]
    assert (hook["command"], hook["user"]) == (collect_script(), "root")
    assert f"--diff {AGENT_DIFF} " in (folder / "tests/test.sh").read_text()
    assert row["final_md"] in (folder / "instruction.md").read_text()
    assert (folder / "tests/oracle.patch").read_bytes() == PATCH
    assert os.access(folder / "tests/test.sh", os.X_OK)
    told = json.loads((folder / "tests/task.json").read_text())
    assert (told["patched_paths"], told["packages"]) == (["f.py"], ["fast"])
    assert told["environment"]["A"] == told["environment"]["OMP_NUM_THREADS"] == "1"
    # the source of its workload is listed, with name and hash
    provenance = json.loads(row["procedure"])["provenance"]
    assert (told["suite"], told["suite_provenance"]) == ("base", provenance)
    assert (task["metadata"]["workload_source"], task["metadata"]["workload_sha256"]) == ("base_suite", "")
    # nothing of the solution is where an agent could read it
    for path in ("environment/Dockerfile", "instruction.md", "task.toml"):
        assert "faster = 2" not in (folder / path).read_text()


@pytest.mark.parametrize("format_", [HarnessFormat.FC_EVAL, HarnessFormat.TERMINAL_BENCH])
def test_a_task_in_a_terminal_has_its_instruction_whole_and_no_network(row, tmp_path, format_):
    statement = 'Make `it` \N{SNAKE} faster:\n\n\ttwice\u2028\x7f # "at" {{ least }}\\n'
    changes = {"final_md": statement, "task_id": "Acme__Fast___5"}
    (folder,) = export_tasks([{**row, **changes}], format_, tmp_path)
    # what compose and Docker take in names
    assert folder == tmp_path / "acme__fast__5"
    task = yaml.safe_load((folder / "task.yaml").read_text())
    assert task["instruction"].startswith(f"{statement}\n")
    assert "/opt/formulacode/bin/install-package" in task["instruction"]
    assert (
        task["parser_name"] == {HarnessFormat.FC_EVAL: "formulacode", HarnessFormat.TERMINAL_BENCH: "pytest"}[format_]
    )
    assert task["max_test_timeout_sec"] > 2 * 900
    (service,) = yaml.safe_load((folder / "docker-compose.yaml").read_text())["services"].values()
    assert (service["network_mode"], service["cpus"], service["pids_limit"]) == ("none", 2, 256)
    lines = (folder / "Dockerfile").read_text().splitlines()
    assert (lines[0], lines[-1]) == (f"FROM registry.test:5000/acme/tasks@{PUSHED['image_digest']}", "USER formulacode")
    assert f"--tell {format_} " in (folder / "run-tests.sh").read_text()
    # every agent of fc-eval's gets the container as it was
    assert (folder / "run-setup.sh").exists() is (format_ is HarnessFormat.FC_EVAL)


def test_every_format_grades_by_the_same_files_what_started_from_the_same(row, tmp_path):
    folders = {format_: export_task(row, format_, tmp_path / format_) for format_ in HarnessFormat}
    graded = [{path.name: path.read_bytes() for path in (each / "tests").iterdir()} for each in folders.values()]
    assert graded[0].keys() == {"task.json", "oracle.patch", "grader.pyz", "harness.pyz", "test.sh"}
    scripts = dict(zip(folders, (files.pop("test.sh") for files in graded), strict=True))
    assert graded[0] == graded[1] == graded[2]
    # where the agent's container grades, there is no other one to bring changes from
    assert scripts[HarnessFormat.FC_EVAL] == scripts[HarnessFormat.TERMINAL_BENCH]
    assert (
        scripts[HarnessFormat.HARBOR].replace(f" --diff {AGENT_DIFF}".encode(), b"") == scripts[HarnessFormat.FC_EVAL]
    )
    recipes = [(build_context(each) / "Dockerfile").read_text() for each in folders.values()]
    common = slice("# What grading starts from", '>"$BASH_ENV"\n')
    assert len({recipe[recipe.index(common.start) : recipe.index(common.stop)] for recipe in recipes}) == 1


@pytest.mark.parametrize("format_", HarnessFormat)
def test_only_images_whose_container_is_kept_by_hold_have_it(row, tmp_path, format_):
    folder = export_task(row, format_, tmp_path / "task")
    compose = folder / "docker-compose.yaml"
    is_held = compose.exists() and "bin/hold" in compose.read_text()
    assert ("bin/hold" in (build_context(folder) / "Dockerfile").read_text()) is is_held
    assert is_held is (format_ is not HarnessFormat.HARBOR)


@pytest.mark.parametrize("format_", HarnessFormat)
def test_the_solution_is_the_authors_patch_byte_by_byte(row, tmp_path, format_):
    patch = PATCH.replace(b"faster = 2", b"faster = '\xe9 $HOME END'  ")
    latin = {"patch": patch.decode("latin-1"), "patch_encoding": "latin-1"}
    measured = row["procedure"].replace(hashlib.sha256(PATCH).hexdigest(), hashlib.sha256(patch).hexdigest())
    folder = export_task({**row, **latin, "procedure": measured}, format_, tmp_path / "task")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "f.py").write_text("a = 1\n")
    subprocess.run(["bash", solution(folder)], env={**os.environ, "FC_REPOSITORY": str(checkout)}, check=True)
    assert (checkout / "f.py").read_bytes() == b"faster = '\xe9 $HOME END'  \n"


def test_a_task_is_written_over_itself_and_over_nothing_else(row, tmp_path):
    export_task(row, HarnessFormat.HARBOR, tmp_path / "task")
    export_task(row, HarnessFormat.HARBOR, tmp_path / "task")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("years of work")
    with pytest.raises(ConfigurationError, match="contains something other"):
        export_task(row, HarnessFormat.HARBOR, tmp_path / "mine")
    assert (tmp_path / "mine/thesis.tex").exists()


def test_an_export_that_was_cut_off_leaves_the_earlier_task_and_can_be_repeated(row, tmp_path, monkeypatch):
    folder = tmp_path / "tasks" / "task"
    write_bytes = Path.write_bytes

    def full(path, content):
        if path.name == "task.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_bytes(path, content)

    for statement in ("first", "second"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_bytes", full)
            with pytest.raises(OutsideSystemError, match="No space left"):
                export_task({**row, "final_md": statement}, HarnessFormat.HARBOR, folder)
        assert not folder.exists() or "first" in (folder / "instruction.md").read_text()
        # as a kill leaves it
        (folder.parent / f"{PARTIAL}new-task" / "tests").mkdir(parents=True)
        export_task({**row, "final_md": statement}, HarnessFormat.HARBOR, folder)
        assert statement in (folder / "instruction.md").read_text()
        assert [path.name for path in folder.parent.iterdir()] == ["task"]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"procedure": None}, "no_procedure"),
        ({"image_name": None}, "image_missing"),
        ({"patch": "another"}, "mismatch"),
        ({"task_id": "../acme"}, "unreadable"),
        ({"procedure": '"version":"4"', "to": '"version":"0"'}, "rule_unknown"),
    ],
)
def test_a_row_that_nobody_else_could_run_is_refused_by_kind(row, tmp_path, changes, kind):
    if "to" in changes:
        changes = {"procedure": row["procedure"].replace(changes["procedure"], changes["to"])}
    with pytest.raises(ItemFailure) as refused:
        export_task({**row, **changes}, HarnessFormat.HARBOR, tmp_path / "task")
    assert refused.value.kind == kind
    assert not (tmp_path / "task").exists()


def test_the_command_exports_what_it_can_of_a_month_and_names_the_rest(row, tmp_path, call_fc_data):
    records = [TaskRecords(row=task_row(5, **row)), TaskRecords(row=task_row(6))]
    FolderDestination(tmp_path / "data").release(Month.parse(row["month"]), month_tables(records))
    done = call_fc_data("export", "--month", row["month"], "--format", "harbor", "--from", "data", "out")
    assert done.returncode == 0
    assert "1 of 2 tasks for harbor" in done.stdout
    assert [path.name for path in (tmp_path / "out").iterdir()] == [row["task_id"]]
    assert "acme__fast-6 has no measurement procedure" in done.stderr
    done = call_fc_data("evaluate", f"out/{row['task_id']}", "--agent", "nobody")
    assert (done.returncode, "there is no agent nobody" in done.stderr) == (1, True)
    with pytest.raises(ConfigurationError, match="there is no format abc"):
        Dataset.load(tmp_path / "data")[row["task_id"]].export("abc", tmp_path / "abc")
