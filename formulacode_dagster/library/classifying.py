"""The pipeline's judges of pull requests, for one in hand or for many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError

from formulacode_dagster.models.base import Frozen, first_fault
from formulacode_dagster.models.classification import Classification, JudgeOpinion
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.operating.files.atomic import disk_errors, write_atomically
from formulacode_dagster.operating.runner.fingerprint import fingerprint
from formulacode_dagster.operating.store.completions import StoredCompletions
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.selection.classification.budget import TokenBudget
from formulacode_dagster.selection.classification.classifier import ask_judge, classify
from formulacode_dagster.selection.classification.model_access import ModelAccess, SessionAccount
from formulacode_dagster.selection.classification.prompts import PROMPT_VERSION, PromptOrder
from formulacode_dagster.selection.classification.stage import ClassificationTools
from resources.database import open_database
from resources.language_models import model_access
from resources.settings import read_settings

from .client import PR

_SESSION = "this session"
_BEGINNING = b'{"entry"'
"""First characters of each line of a ledger."""
_Connected = TypeVar("_Connected")


class BatchEntry(Frozen):
    """How one pull request of a batch ended: a line of its ledger."""

    entry: LedgerEntry
    verdict: Classification | None = None


class Progress(Frozen):
    """Progress of a batch, after one more item."""

    done: int
    total: int
    last: BatchEntry

    def __str__(self) -> str:
        entry = self.last.entry
        return f"{self.done} of {self.total}: {entry.item} {entry.state}{f' ({entry.reason})' if entry.reason else ''}"


class _Session:
    """Models of the settings, and the database with their answers, so that nothing is paid for twice."""

    def __init__(self, database: Database | str | None) -> None:
        self._given = database
        self._open = AsyncExitStack()
        self._budget: TokenBudget | None = None

    @property
    def spent(self) -> Cost:
        """Cost of this session so far."""
        return self._budget.spent if self._budget is not None else Cost()

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def _connected(self) -> ModelAccess:
        database = self._given
        if not isinstance(database, Database):
            database = await asyncio.to_thread(open_database, database or "")
            self._open.push_async_callback(asyncio.to_thread, database.close)
        return model_access(read_settings(), StoredCompletions(database))

    async def _enter(self, models: AbstractAsyncContextManager[_Connected]) -> _Connected:
        try:
            return await self._open.enter_async_context(models)
        except ConfigurationError:
            await self._open.aclose()
            raise


class PerfClassifier(_Session):
    """Classifies pull requests: whether they improve performance, how, and how difficult that is.

    `async with PerfClassifier() as classifier` asks as the asset `classifications` does, evidence and all, without its
    symbolic filter: the models of the settings, unless others of `LLM_BASE_URL` are named. Answers are kept in
    *database* (one, its URL, or None for that of the settings) with those of the pipeline.
    """

    def __init__(self, *, model: str = "", judge: str | None = None, database: Database | str | None = None) -> None:
        """*model* is LLM_MODEL by default; *judge* is FC_CLASSIFICATION_JUDGE, none if empty."""
        super().__init__(database)
        self._names = model, judge

    def with_judge(self, judge: ClassifyJudge) -> PerfClassifier:
        """Return this classifier with the model of *judge* as its second."""
        return PerfClassifier(model=self._names[0], judge=judge.model, database=self._given)

    async def __aenter__(self) -> Self:
        settings = read_settings()
        model, judge = self._names
        first = model or settings.llm_model
        second = settings.classification_judge if judge is None else judge
        tools = ClassificationTools(await self._connected(), first, second)
        self._judges = await self._enter(tools.judges(SessionAccount(_SESSION)))
        self._budget = self._judges.first.budget
        self._asked = (first, second, settings.llm_temperature)
        return self

    async def classify(self, pr: PR) -> Classification:
        """The verdict on *pr*, with facts and patch as `PR.fetch` gives them.

        Raises ItemFailure with a `kind` when it got none, OutsideSystemError when the endpoint is dead,
        ConfigurationError for a PR that was not fetched.
        """
        verdict, _ = await classify(*_material(pr), self._judges)
        return verdict

    async def classify_many(
        self,
        prs: Sequence[PR],
        *,
        ledger: Path | str | None = None,
        progress: Callable[[Progress], object] | None = print,
        max_concurrency: int = 8,
    ) -> list[BatchEntry]:
        """Return how each of *prs* ended, in their order; a failed one does not stop the others.

        *ledger* is a file to which a line of JSON is added as each one ends. One that has a verdict there, for the same
        text, patch, models and prompt, is not requested again; a failed one is. *progress* is called for each, these
        too. Raises the errors that stop all of them, OutsideSystemError or ConfigurationError, after writing those that
        have ended; ConfigurationError at once for a *ledger* that is another file.
        """
        file = _LedgerFile(Path(ledger)) if ledger is not None else None
        at_once, ended = asyncio.Semaphore(max_concurrency), 0

        async def judge(pr: PR) -> BatchEntry:
            nonlocal ended
            async with at_once:
                inputs = self._inputs(pr)
                judged = file.find(pr.item, inputs) if file is not None else None
                if judged is None:
                    judged = await self._judge(pr, inputs)
                    if file is not None:
                        file.add(judged)
            ended += 1
            if progress is not None:
                progress(Progress(done=ended, total=len(prs), last=judged))
            return judged

        tasks = [asyncio.create_task(judge(pr)) for pr in prs]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _inputs(self, pr: PR) -> str:
        facts, patch = _material(pr)
        texts = facts.model_dump(mode="json", include={"title", "body", "labels", "linked_issues"})
        return fingerprint(Stage.CLASSIFICATIONS, texts, patch.hex(), *self._asked, PROMPT_VERSION)

    async def _judge(self, pr: PR, inputs: str) -> BatchEntry:
        facts, patch = _material(pr)
        about = {"stage": Stage.CLASSIFICATIONS, "month": facts.month, "item": pr.item, "inputs": inputs}
        try:
            verdict, cost = await classify(facts, patch, self._judges)
        except ItemFailure as failure:
            how = {"state": ItemState.FAILED, "reason": failure.kind, "detail": str(failure), "cost": failure.cost}
            return BatchEntry(entry=LedgerEntry.model_validate(about | how))
        how = {"state": ItemState.DONE, "detail": verdict.reason, "cost": cost}
        if not verdict.is_performance:
            how |= {"state": ItemState.REJECTED, "reason": RejectionReason.NOT_PERFORMANCE}
        return BatchEntry(entry=LedgerEntry.model_validate(about | how), verdict=verdict)


class ClassifyJudge(_Session):
    """A second opinion, of a judge that reads the diff first: `async with ClassifyJudge() as judge`.

    *model* is FC_CLASSIFICATION_JUDGE unless named, and without one LLM_MODEL; *database* as of `PerfClassifier`.
    """

    def __init__(self, *, model: str = "", database: Database | str | None = None) -> None:
        super().__init__(database)
        self._name = model

    @property
    def model(self) -> str:
        """Name of the model that judges."""
        settings = read_settings()
        return self._name or settings.classification_judge or settings.llm_model

    async def __aenter__(self) -> Self:
        access = await self._connected()
        (self._model,) = await self._enter(access.connect(SessionAccount(_SESSION), [self.model]))
        self._budget = self._model.budget
        return self

    async def judge(self, pr: PR) -> JudgeOpinion:
        """Verdict, category and difficulty of *pr*, with evidence; raises as `PerfClassifier.classify`."""
        return (await ask_judge(*_material(pr), self._model, PromptOrder.DIFF_FIRST)).opinion


class _LedgerFile:
    """Lines of JSON, the newest of an item last. A line that a killed process left unfinished is cut off."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigurationError for any other file, which stays as it is."""
        self._path = path
        content = path.read_bytes() if path.exists() else b""
        end = content.rfind(b"\n") + 1
        whole, unfinished = content[:end].splitlines(), content[end:]
        lines = [self._parsed(line, number) for number, line in enumerate(whole, start=1)]
        if unfinished:
            if not _BEGINNING.startswith(unfinished[: len(_BEGINNING)]):
                raise self._wrong(len(lines) + 1, "it is no entry")
            with disk_errors(str(path)):
                write_atomically(path, content[:end])
        self._judged = {line.entry.item: line for line in lines}

    def _parsed(self, line: bytes, number: int) -> BatchEntry:
        try:
            return BatchEntry.model_validate_json(line)
        except ValidationError as error:
            raise self._wrong(number, first_fault(error)) from error

    def _wrong(self, number: int, why: str) -> ConfigurationError:
        what = f"{self._path} is no ledger of a batch: line {number} cannot be read"
        return ConfigurationError(what, why=why, remedy="Name another file; this one was not changed")

    def find(self, item: str, inputs: str) -> BatchEntry | None:
        """The verdict on *item* for the same *inputs*."""
        judged = self._judged.get(item)
        return judged if judged is not None and judged.verdict is not None and judged.entry.inputs == inputs else None

    def add(self, judged: BatchEntry) -> None:
        """Write it down."""
        self._judged[judged.entry.item] = judged
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{judged.model_dump_json()}\n")


def _material(pr: PR) -> tuple[MergedPullRequest, bytes]:
    if pr.facts is None or pr.patch is None:
        raise ConfigurationError(f"{pr.item} is only a name", remedy="Judge what `await PR.fetch(…)` gives")
    return pr.facts, pr.patch
