"""The model: any OpenAI-compatible endpoint."""

from __future__ import annotations

from formulacode_dagster.models.completion import CompletionCache, Forgetful
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.selection.classification.model_access import ModelAccess, SessionAccount
from formulacode_dagster.selection.classification.stage import ClassificationTools
from formulacode_dagster.selection.statements.stage import StatementModels

from .base import SettingsResource, setting
from .language_models import model_access


class LLMResource(SettingsResource):
    """Provides access to the models, with their budget. The key is LLM_API_KEY."""

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
        writers = (
            settings.classification_judge,
            settings.statement_writer,
            settings.workload_writer,
            settings.hack_judge,
        )
        named = dict.fromkeys(filter(None, (model, *writers, *settings.statement_judge_names)))
        understood = "; ".join(f"model {name}: {run_loop(self._understood(name))}" for name in named)
        return True, f"{url} answers {answer.status_code}; {understood}"

    async def _understood(self, name: str) -> str:
        """Describe how *name* is called, determined by a request with two fields."""
        async with self.models(Forgetful()).connect(SessionAccount("preflight"), [name]) as (model,):
            capabilities, _ = await model.probe()
        temperature = self.settings.llm_temperature
        used = f"temperature {temperature:g}" if capabilities.takes_temperature else "a temperature of its own"
        return f"{capabilities.mode}, {capabilities.token_field}, {used}"

    def models(self, cache: CompletionCache) -> ModelAccess:
        """Return access to the endpoint's models; answers are taken from and stored in *cache*."""
        return model_access(self.settings, cache)

    def classification_tools(self, cache: CompletionCache) -> ClassificationTools:
        """Return the judges of candidates: LLM_MODEL, and FC_CLASSIFICATION_JUDGE if set."""
        settings = self.settings
        return ClassificationTools(self.models(cache), settings.llm_model, settings.classification_judge)

    def statement_models(self, cache: CompletionCache) -> StatementModels:
        """Return the models of problem statements: FC_STATEMENT_WRITER and FC_STATEMENT_JUDGES."""
        settings = self.settings
        return StatementModels(self.models(cache), settings.statement_writer, settings.statement_judge_names)
