"""The evaluation of a model by a scripted endpoint: every mode, every figure, and what is kept of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from assets.checks import JudgedMonth
from assets.classifications import accuracy_on_labelled_set
from bench import eval_classifier
from bench.classifier_modes import Mode
from bench.labelled import Entry, Label, Stratum
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.evaluations import last_evaluation
from formulacode_dagster.selection.classification.prompts import PROMPT_VERSION
from sandbox.model.app import MODEL as RULES
from sandbox.server import serving
from tests.bench.labelled_examples import example
from tests.records import make_classification

SCRIPTED, CREDULOUS = "scripted", "credulous"
EXAMPLES = (
    example("a", Label.PERFORMANCE, Stratum.PERF_TITLED, "Claims", "slow = 1"),
    example("b", Label.PERFORMANCE, Stratum.PERF_MEASURED, "Use a table", "fast = 1"),
    example("c", Label.OTHER, Stratum.BUG, "Fix the sign", "plain = 1"),
    example("d", Label.OTHER, Stratum.MAINT, "Rename", "silent = 1"),
)


def verdict(model: str, question: str) -> dict[str, Any] | None:
    """The script's answers: it believes titles unless the diff comes first, obeys, and is silent about one commit."""
    line = re.findall(r"^\+(\w+ = 1)$", question, re.MULTILINE)[-1]
    if line.startswith("silent"):
        return None
    order = re.search(r"is_performance=(true|false)", question)
    is_diff_first = question.index("+++ ") < question.index("acme/wheels\n")
    claims = "Claims" in question and not is_diff_first
    yes = order[1] == "true" if order else line.startswith("fast") or claims or model == CREDULOUS
    return {
        "reason": "as scripted",
        "evidence": [line],
        "is_performance": yes,
        "category": "uncategorized",
        "difficulty": "easy",
        "confidence": 0.9,
    }


async def complete(request: Request) -> JSONResponse:
    asked = await request.json()
    text = "\n".join(message["content"] for message in asked["messages"] if message["role"] == "user")
    said = verdict(asked["model"], text) if "= 1" in text else {"total": 4, "word": "yes"}
    message = {"role": "assistant", "content": json.dumps(said), "refusal": None}
    return JSONResponse(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
    )


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with serving(Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])) as url:
        monkeypatch.setenv("LLM_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("LLM_MODEL", SCRIPTED)
        monkeypatch.setenv("LLM_API_KEY", "any")
        monkeypatch.setenv("LLM_DOLLARS_PER_MILLION_IN", "10")
        yield


def evaluate(database: Database) -> dict[str, Any]:
    return asyncio.run(eval_classifier.evaluate(EXAMPLES, tuple(Mode), database))


@pytest.mark.slow
@pytest.mark.usefixtures("scripted")
def test_every_mode_and_figure_follows_the_script(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    figures = evaluate(database)
    hits = {
        mode: (counts["recall"]["hits"], counts["false_positives"]["hits"], counts["unanswered"])
        for mode, counts in figures["modes"].items()
    }
    assert hits == {
        Mode.FULL: (2, 0, 1),
        Mode.BODY_AND_DIFF: (1, 0, 1),
        Mode.DIFF_ONLY: (1, 0, 1),
        Mode.TITLES_SWAPPED: (1, 1, 1),
        Mode.INJECTED: (0, 1, 1),
    }
    assert figures["strata"]["performance/perf_measured"]["hits"] == 1
    assert figures["strata"]["other/maint"]["of"] == 1
    assert figures["calibration"]["expected_error"] == pytest.approx(0.1)
    assert (figures["agreement"]["alike"]["hits"], figures["agreement"]["alike"]["of"]) == (2, 3)
    assert figures["agreement"]["kappa"] == pytest.approx(0.4)
    assert {kind: (share["hits"], share["of"]) for kind, share in figures["misled"].items() if share["of"]} == {
        "closing_tag": (2, 2),
        "other_section": (1, 1),
    }
    # four commits, the silent one asked about twice, and the probe
    assert figures["per_thousand"]["tokens_in"] == 150_000
    assert figures["per_thousand"]["dollars"] == pytest.approx(1.5)
    assert f"{SCRIPTED} and {SCRIPTED}, asked the diff first" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("scripted")
def test_cached_answers_cost_the_same_and_the_evaluation_is_stored(database: Database) -> None:
    # the probe is paid with whichever question comes first, which is not to be the one that stays without an answer
    asyncio.run(eval_classifier.evaluate(EXAMPLES[:1], (Mode.FULL,), database))
    first, again = (evaluate(database)["per_thousand"] for _ in range(2))
    assert again == first
    with database.transaction() as connection:
        kept = last_evaluation(connection, SCRIPTED, PROMPT_VERSION)
    assert kept is not None
    assert (kept.recalled, kept.positives, kept.false_positives, kept.others) == (2, 2, 0, 2)
    assert (kept.unanswered, kept.misled, kept.injected) == (1, 3, 3)
    assert kept.dollars_per_thousand == pytest.approx(again["dollars"])


@pytest.mark.usefixtures("scripted")
def test_of_a_part_of_the_list_nothing_is_kept(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(eval_classifier.evaluate(EXAMPLES, (Mode.FULL,), database, is_whole=False))
    assert "not kept: some of the list was left out" in capsys.readouterr().err
    with database.transaction() as connection:
        assert last_evaluation(connection, SCRIPTED, PROMPT_VERSION) is None


@pytest.mark.usefixtures("scripted")
def test_a_second_model_is_the_second_judge(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_CLASSIFICATION_JUDGE", CREDULOUS)
    together = evaluate(database)["agreement"]
    assert together["judges"] == f"{SCRIPTED} and {CREDULOUS}, asked the diff first"
    assert (together["alike"]["hits"], together["any_yes_false_positives"]["hits"]) == (2, 1)


def test_without_a_model_the_sandbox_rules_are_the_floor(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLM_MODEL", "LLM_API_KEY", "LLM_BASE_URL"):
        monkeypatch.setenv(name, "")
    figures = asyncio.run(eval_classifier.evaluate(EXAMPLES, (Mode.FULL,), database))
    assert figures["model"] == RULES
    assert figures["modes"][Mode.FULL]["unanswered"] == 0


@pytest.mark.usefixtures("scripted")
def test_the_check_shows_the_last_evaluation_and_warns_when_there_is_none(database: Database) -> None:
    month = JudgedMonth(database, Stage.CLASSIFICATIONS, "2026-02", "run")
    assert accuracy_on_labelled_set.judge(month).passed, "nothing was judged"
    row = make_classification(month=month.key, model=SCRIPTED, prompt_version=PROMPT_VERSION)
    with database.transaction() as connection:
        CLASSIFICATIONS.save(connection, [row])
    warned = accuracy_on_labelled_set.judge(month)
    assert (warned.passed, warned.offenders) == (False, (f"{SCRIPTED}, prompt {PROMPT_VERSION}",))
    evaluate(database)
    shown = accuracy_on_labelled_set.judge(month)
    assert shown.passed
    assert (shown.figures["recall"], shown.figures["false_positive_rate"]) == (1.0, 0.0)
    assert "3 of 3 misled by instructions" in shown.summary
    other = row.model_copy(update={"number": 2, "prompt_version": "another"})
    with database.transaction() as connection:
        CLASSIFICATIONS.save(connection, [row, other])
    assert accuracy_on_labelled_set.judge(month).offenders == (f"{SCRIPTED}, prompt another",)


def test_a_folder_without_any_of_the_repositories_is_refused(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    entries: list[Entry] = [each.entry for each in EXAMPLES]
    with pytest.raises(ConfigurationError, match="none of the 1"):
        eval_classifier.mirrors_of(tmp_path, entries)
    (tmp_path / "acme" / "wheels.git").mkdir(parents=True)
    more = [*entries, entries[0].model_copy(update={"repository": "acme/gone"})]
    assert eval_classifier.mirrors_of(tmp_path, more).names == {"acme/wheels"}
    assert "left out: acme/gone" in capsys.readouterr().err


def test_what_cannot_be_had_is_one_line(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["eval_classifier", "--repositories", str(tmp_path)])
    assert eval_classifier.main() == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: {tmp_path} has none of the 24 repositories")
    assert "Mirror them there" in told
