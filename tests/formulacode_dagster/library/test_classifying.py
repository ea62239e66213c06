from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import pytest

from formulacode_dagster.library import PR, BatchEntry, ClassifyJudge, PerfClassifier
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.items import Cost, ItemState
from formulacode_dagster.operating.store.database import Database
from sandbox.model.app import MODEL, app
from sandbox.model.faults import Fault, ModelFaults
from sandbox.server import serving
from tests.records import make_merged

PATCH = b"diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1 +1 @@\n-a = 1\n+b = 2\n"
Serve = Callable[..., AbstractContextManager[Callable[[], int]]]


def pr(number: int, title: str = "Cache it") -> PR:
    # equal questions are one question, whichever pull request they are about
    facts = make_merged(repository="acme/wheels", number=number, title=f"{title} ({number})")
    return PR(repository="acme/wheels", issue_number=number, facts=facts, patch=PATCH)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    @contextmanager
    def served(faults: ModelFaults | None = None, **settings: str) -> Iterator[Callable[[], int]]:
        with serving(app(faults)) as url:
            for name, value in {
                "LLM_BASE_URL": f"{url}/v1",
                "LLM_MODEL": MODEL,
                "LLM_API_KEY": "any",
                **settings,
            }.items():
                monkeypatch.setenv(name, value)
            yield lambda: int(httpx.get(f"{url}/_sandbox/calls").json()["chat_completions"])

    return served


def judge_all(
    database: Database, prs: list[PR], ledger: Path | None = None, **how: object
) -> tuple[list[BatchEntry], Cost]:
    async def run() -> tuple[list[BatchEntry], Cost]:
        async with PerfClassifier(database=database) as classifier:
            judged = await classifier.classify_many(prs, ledger=ledger, max_concurrency=1, **how)
            return judged, classifier.spent

    return asyncio.run(run())


def test_a_batch_tells_how_each_ended_and_one_that_fails_stops_no_other(database: Database, serve: Serve) -> None:
    heard: list[str] = []
    prs = [pr(1), pr(2), pr(3, "Fix the sign")]
    with serve(ModelFaults(by_call={1: Fault.GARBAGE, 2: Fault.GARBAGE})):
        judged, spent = judge_all(database, prs, progress=lambda news: heard.append(str(news)))
    assert [each.entry.state for each in judged] == [ItemState.FAILED, ItemState.DONE, ItemState.REJECTED]
    assert [each.verdict and each.verdict.is_performance for each in judged] == [None, True, False]
    assert heard == [
        "1 of 3: acme/wheels#1 failed (model_answer)",
        "2 of 3: acme/wheels#2 done",
        "3 of 3: acme/wheels#3 rejected (not_performance)",
    ]
    assert judged[2].verdict is not None
    assert judged[2].entry.detail == judged[2].verdict.reason != ""
    assert spent == Cost.total(each.entry.cost for each in judged)


def test_a_ledger_is_gone_on_from_even_where_its_last_line_was_torn(
    database: Database, empty_database_url: str, serve: Serve, tmp_path: Path
) -> None:
    ledger = tmp_path / "judged.jsonl"
    with serve(ModelFaults(by_call={3: Fault.GARBAGE, 4: Fault.GARBAGE})) as calls:
        first, _ = judge_all(database, [pr(1), pr(2), pr(3)], ledger)
        assert calls() == 4
    assert [each.entry.state for each in first] == [ItemState.DONE, ItemState.DONE, ItemState.FAILED]
    ledger.write_bytes(ledger.read_bytes() + b'{"entry": {"stage": "classi')
    elsewhere = Database(empty_database_url)
    elsewhere.migrate()
    with serve() as calls:
        second, _ = judge_all(elsewhere, [pr(1), pr(2, "Another title: faster"), pr(3)], ledger)
        assert calls() == 2, "what failed, and what is not the same any more"
    elsewhere.close()
    assert second[0] == first[0]
    assert {each.entry.state for each in second} == {ItemState.DONE}
    lines = [BatchEntry.model_validate_json(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    assert [line.entry.item for line in lines] == [f"acme/wheels#{n}" for n in (1, 2, 3, 2, 3)]


@pytest.mark.parametrize(
    ("content", "number"),
    [
        pytest.param('[{"repository": "acme/wheels"}]', 1, id="another file, of one line"),
        pytest.param('{"a": 1}\n', 1, id="another file, of whole lines"),
        pytest.param('{"a": 1}\n{"entry": {"stage"', 1, id="another file, with what looks like a torn line"),
    ],
)
def test_another_file_is_no_ledger_and_stays_as_it_is(
    database: Database, serve: Serve, tmp_path: Path, content: str, number: int
) -> None:
    ledger = tmp_path / "prs.json"
    ledger.write_text(content, encoding="utf-8")
    with serve() as calls:
        with pytest.raises(ConfigurationError, match=rf"prs\.json is no ledger .*: line {number} "):
            judge_all(database, [pr(1)], ledger)
        assert calls() == 0
    assert ledger.read_text(encoding="utf-8") == content


def test_a_dead_endpoint_stops_the_batch_and_keeps_what_has_ended(
    database: Database, serve: Serve, tmp_path: Path
) -> None:
    ledger = tmp_path / "judged.jsonl"
    with serve(ModelFaults(by_call={2: Fault.OUT_OF_QUOTA})) as calls:
        with pytest.raises(OutsideSystemError, match="credit of this key is used up"):
            judge_all(database, [pr(1), pr(2), pr(3)], ledger)
        assert calls() == 2
    (line,) = ledger.read_text(encoding="utf-8").splitlines()
    assert BatchEntry.model_validate_json(line).entry.item == "acme/wheels#1"


def test_what_was_paid_for_is_kept_for_everybody(database: Database, serve: Serve) -> None:
    async def judge() -> tuple[Cost, str]:
        async with PerfClassifier(database=database) as classifier:
            verdict = await classifier.classify(pr(1))
        return classifier.spent, verdict.reason

    with serve() as calls:
        first, second = asyncio.run(judge()), asyncio.run(judge())
        assert calls() == 1
    assert first[0].model_calls == 2, "the probe and the question"
    assert second == (Cost(), first[1])


def test_the_second_judge_of_the_settings_is_asked_unless_nobody_is_wanted(database: Database, serve: Serve) -> None:
    async def opinions(**how: str) -> int:
        async with PerfClassifier(database=database, **how) as classifier:
            return len((await classifier.classify(pr(1))).opinions)

    async def alone() -> tuple[str, bool]:
        async with ClassifyJudge(database=database) as judge:
            opinion = await judge.judge(pr(1))
            return opinion.model, opinion.is_performance

    with serve(FC_CLASSIFICATION_JUDGE=MODEL) as calls:
        assert asyncio.run(opinions()) == 2
        assert asyncio.run(opinions(judge="")) == 0
        assert asyncio.run(alone()) == (MODEL, True)
        assert calls() == 2, "each way of asking once"


def test_a_name_alone_and_a_model_that_is_not_set_are_said_to_be_missing(
    database: Database, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def judge(subject: PR) -> None:
        async with PerfClassifier(database=database) as classifier:
            await classifier.classify(subject)

    with serve():
        with pytest.raises(ConfigurationError, match=r"acme/wheels#1 is only a name\. Judge what `await PR.fetch"):
            asyncio.run(judge(PR(repository="acme/wheels", issue_number=1)))
        monkeypatch.setenv("LLM_MODEL", "")
        with pytest.raises(ConfigurationError, match="LLM_MODEL missing"):
            asyncio.run(judge(pr(1)))
