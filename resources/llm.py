"""The model: any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from formulacode_dagster.models.completion import CompletionCache, Forgetful
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.progress import listener
from formulacode_dagster.selection.classification.budget import Budget
from formulacode_dagster.selection.classification.classifier import Judges as ClassificationJudges
from formulacode_dagster.selection.classification.language_model import Book, LanguageModel
from formulacode_dagster.selection.statements.judging import Judges
from formulacode_dagster.selection.statements.model_writing import Models

from .base import SettingsResource, setting
from .language_models import language_model, monthly_budget


class LLMResource(SettingsResource):
    """Hands out the async client with its budget. Its key is LLM_API_KEY."""

    llm_model: str | None = setting("llm_model")
    llm_base_url: str | None = setting("llm_base_url")
    llm_max_tokens: int | None = setting("llm_max_tokens")
    llm_temperature: float | None = setting("llm_temperature")
    llm_seconds: int | None = setting("llm_seconds")
    llm_tokens_per_month: int | None = setting("llm_tokens_per_month")
    llm_dollars_per_month: float | None = setting("llm_dollars_per_month")
    llm_dollars_per_million_in: float | None = setting("llm_dollars_per_million_in")
    llm_dollars_per_million_out: float | None = setting("llm_dollars_per_million_out")

    def preflight(self) -> tuple[bool, str]:
        """Ask the endpoint for its models, and each that is set a question: in which form it understands one."""
        import httpx

        settings = self.settings
        url, model = settings.llm_base_url, settings.llm_model
        key = settings.llm_api_key.get_secret_value()
        if not key or not model:
            return False, f"{url}: LLM_API_KEY and LLM_MODEL must be set before anything is classified"
        try:
            answer = httpx.get(f"{url.rstrip('/')}/models", headers={"Authorization": f"Bearer {key}"}, timeout=20)
        except httpx.HTTPError as error:
            raise OutsideSystemError(
                "llm", f"{url} does not answer", why=str(error), remedy="Start it, or fix LLM_BASE_URL"
            ) from error
        if answer.status_code in (401, 403):
            raise OutsideSystemError("llm", f"{url} refuses LLM_API_KEY", remedy="Set a valid key")
        if not answer.is_success:
            return False, f"{url} answers {answer.status_code}; model {model}"
        writers = (settings.classification_judge, settings.statement_writer, settings.workload_writer)
        named = dict.fromkeys(filter(None, (model, *writers, *settings.statement_judge_names)))
        understood = "; ".join(f"model {name}: {run_loop(self._understood(name))}" for name in named)
        return True, f"{url} answers {answer.status_code}; {understood}"

    async def _understood(self, name: str) -> str:
        """In which form *name* is asked for answers, by a question of two fields."""
        model = self.language_model(Forgetful(), month="preflight", spent=Cost(), book=lambda _: None, model=name)
        try:
            capabilities, _ = await model.probe()
        finally:
            await model.close()
        temperature = self.settings.llm_temperature
        told = f"temperature {temperature:g}" if capabilities.takes_temperature else "a temperature of its own"
        return f"{capabilities.mode}, {capabilities.token_field}, {told}"

    def language_model(
        self,
        cache: CompletionCache,
        *,
        month: str,
        spent: Cost,
        book: Book,
        model: str = "",
        stage: Stage = Stage.CLASSIFICATIONS,
        budget: Budget | None = None,
    ) -> LanguageModel:
        """A client that pays for nothing twice, with what *month* has left of its budget; close it after use.

        It tells *book* what it spends, and of its waiting as *stage*. *model* is LLM_MODEL unless another is named, and
        *budget* its own unless that is shared with others.
        """
        return language_model(
            self.settings,
            cache,
            period=month,
            model=model,
            spent=spent,
            budget=budget,
            book=book,
            on_wait=lambda text: listener().note(stage, text),
        )

    @asynccontextmanager
    async def classification_judges(
        self, cache: CompletionCache, month: str, spent: Cost, book: Book
    ) -> AsyncIterator[ClassificationJudges]:
        """Who judges the month's candidates: LLM_MODEL, and whom FC_CLASSIFICATION_JUDGE names, out of one budget."""
        name = self.settings.classification_judge
        async with AsyncExitStack() as stack:
            first = self.language_model(cache, month=month, spent=spent, book=book)
            stack.push_async_callback(first.close)
            if not name:
                yield ClassificationJudges(first)
            elif name == first.name:
                yield ClassificationJudges(first, first)
            else:
                second = self.language_model(
                    cache, month=month, spent=spent, book=book, model=name, budget=first.budget
                )
                stack.push_async_callback(second.close)
                yield ClassificationJudges(first, second)

    @asynccontextmanager
    async def workload_writer(
        self, cache: CompletionCache, month: str, spent: Cost, book: Book
    ) -> AsyncIterator[LanguageModel | None]:
        """Who writes benchmarks where nothing else executes a change, as FC_WORKLOAD_WRITER says; nobody without."""
        name = self.settings.workload_writer
        if not name:
            yield None
            return
        model = self.language_model(cache, month=month, spent=spent, book=book, model=name, stage=Stage.MEASUREMENTS)
        try:
            yield model
        finally:
            await model.close()

    @asynccontextmanager
    async def statement_models(
        self, cache: CompletionCache, month: str, spent: Cost, book: Book
    ) -> AsyncIterator[Models]:
        """Who writes and judges the month's problem statements, as FC_STATEMENT_WRITER and FC_STATEMENT_JUDGES say.

        All spend out of one budget.
        """
        settings = self.settings
        judges = settings.statement_judge_names
        async with AsyncExitStack() as stack:
            budget = monthly_budget(settings, month, spent)

            def connected(name: str) -> LanguageModel:
                model = self.language_model(
                    cache,
                    month=month,
                    spent=spent,
                    book=book,
                    model=name,
                    stage=Stage.PROBLEM_STATEMENTS,
                    budget=budget,
                )
                stack.push_async_callback(model.close)
                return model

            yield Models(
                writer=connected(settings.statement_writer) if settings.statement_writer else None,
                judges=Judges([connected(name) for name in judges]) if judges else None,
            )
