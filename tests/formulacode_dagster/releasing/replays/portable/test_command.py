"""`./replay` continues its file of results, and never overwrites those of another archive or machine."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.releasing.replays.portable import command

Replay = Callable[..., list[str]]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of two tasks without files."""
    tasks = [{"item": f"a/b#{number}", "task_id": f"a__b-{number}", "slim": None} for number in (1, 2)]
    manifest = {"files": {}, "tasks": tasks, "release": "formulacode@2026-03", "month": "2026-02"}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path


@pytest.fixture
def replay(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Replay:
    """Return the measured replays of `./replay option …`, whose sessions are scripted; *ends* stops before that one."""
    measured: list[str] = []

    def replay(*options: str, ends: int = 99) -> list[str]:
        def one(_: object, task: dict[str, Any], *rest: Any) -> dict[str, Any]:
            if len(measured) == ends:
                raise SystemExit(143)
            measured.append(rest[-1])
            return {"id": str(next(numbers)), "task_id": task["task_id"], "outcome": "measured"}

        measured.clear()
        monkeypatch.setattr(command, "_one", one)
        replay.status = command.main(
            ["--results", str(archive / "results.json"), *options], str(archive / "replay"), lambda _: b""
        )
        return list(measured)

    numbers = itertools.count()
    monkeypatch.setattr(command, "lay_tools", lambda *_: None)
    monkeypatch.setattr(command, "machine_facts", lambda: {"model": "a CPU", "kernel": "6.1"})
    return replay


def ids(archive: Path) -> list[str]:
    return [each["id"] for each in json.loads(json.loads((archive / "results.json").read_text())["results"])["replays"]]


def test_a_run_that_was_interrupted_is_continued(
    replay: Replay, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        replay("--times", "2", ends=3)
    assert ids(archive) == ["0", "1", "2"]
    assert replay("--times", "2") == ["a/b#2 (2 of 2)"]
    assert (replay.status, ids(archive)) == (0, ["0", "1", "2", "3"])
    assert "results.json, which has 3 replays: 1 left" in capsys.readouterr().err
    assert replay("--times", "2") == []
    assert replay("--only", "a/b#1", "--times", "3") == ["a/b#1 (3 of 3)"]
    assert ids(archive) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("archive_sha256", "0" * 64, "another archive"),
        ("machine", {"model": "a CPU", "kernel": "6.2"}, "another machine (kernel 6.2, now 6.1)"),
    ],
)
def test_results_of_another_archive_or_machine_stay(replay, archive, capsys, name, value, said) -> None:
    replay("--only", "a/b#1")
    file = archive / "results.json"
    body = json.dumps({**json.loads(json.loads(file.read_text())["results"]), name: value})
    file.write_text(json.dumps({"sha256": hashlib.sha256(body.encode()).hexdigest(), "results": body}))
    before = file.read_bytes()
    assert (replay(), replay.status, file.read_bytes()) == ([], 2, before)
    assert f"refused: {file} has results of {said}; name another file with --results" in capsys.readouterr().err


def test_results_that_cannot_be_written_are_refused_before_the_work(replay, archive, capsys) -> None:
    for place in ("missing/results.json", "manifest.json/results.json"):
        assert (replay("--results", str(archive / place)), replay.status) == ([], 2)
        assert "refused: [Errno" in capsys.readouterr().err


def test_a_file_of_a_run_that_measured_nothing_is_taken_on_any_machine(replay, archive, monkeypatch) -> None:
    with pytest.raises(SystemExit):
        replay(ends=0)
    assert ids(archive) == []
    monkeypatch.setattr(command, "machine_facts", lambda: {"model": "another CPU", "kernel": "6.1"})
    assert replay("--only", "a/b#1") == ["a/b#1"]


@pytest.mark.parametrize("content", ["", "[]", "mine", '{"sha256": "0", "results": "{}"}', '{"results": 1}'])
def test_a_file_that_is_no_results_stays(replay, archive, capsys, content: str) -> None:
    (archive / "results.json").write_text(content)
    assert (replay(), replay.status, (archive / "results.json").read_text()) == ([], 2, content)
    assert "results.json is not as ./replay wrote it; name another file with --results" in capsys.readouterr().err
