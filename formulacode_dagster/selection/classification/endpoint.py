"""One question over the wire: retries, waiting, and telling a busy endpoint from a dead one.

The content of the answer is not judged here.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import (
    ConfigurationError,
    FormulaCodeError,
    ItemFailure,
    OutsideSystemError,
    SuspectedOutage,
)
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.backoff import Backoff, retry_after

from .replies import Reply, reply_of
from .requests import Capabilities, Message

if TYPE_CHECKING:
    from openai import APIConnectionError, APIStatusError, AsyncOpenAI

SYSTEM = "llm"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
_RETRIED = frozenset({408, 409, 425, 429})
_MALFORMED = frozenset({400, 422})
_MODERATION = re.compile(r"content[ _-]?(?:filter|policy|management)|moderat|flagged", re.IGNORECASE)
"""Matches errors for a text that the endpoint's moderation rejects."""
_EXCERPT = 300


class ModelRetries(Frozen):
    """Retry limits. Seconds; an attempt that times out has cost its whole timeout, so there are fewer of those."""

    attempts: int = 4
    attempts_on_timeout: int = 2
    limits: int = 30
    """Refusals for a limit of its requests, which is no failed attempt."""
    backoff: Backoff = Backoff(first_seconds=0.5, longest_seconds=20.0, jitter=(0.75, 1.0))
    longest_retry_after: float = 300.0
    unanswered_until_dead: int = 5


class OpenAIEndpoint:
    """An OpenAI-compatible endpoint, through the `openai` client. Lives in one event loop."""

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        model: str,
        max_tokens: int,
        temperature: float | None = None,
        capabilities: Capabilities | None = None,
        timeout_seconds: float = 120.0,
        retries: ModelRetries | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        """*base_url* `` means OpenAI's own. *max_tokens* limits an answer; *timeout_seconds* one attempt at it.

        *temperature* None leaves it to the endpoint. *capabilities* that are known need no probe.
        *on_wait* hears of waits worth a line. Raises ConfigurationError when LLM_API_KEY or LLM_MODEL is missing, or
        the address is none.
        """
        _require_settings(base_url, api_key, model)
        self.model = model
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.capabilities = capabilities
        self._timeout = timeout_seconds
        self._retries = retries or ModelRetries()
        self._on_wait = on_wait
        self._secret = api_key
        self._resume_at = 0.0
        self._refused_connections = 0
        self._unanswered_items = 0
        # an empty address must not make the client take OPENAI_BASE_URL
        self._address = base_url or DEFAULT_BASE_URL
        self.place = _without_credentials(self._address)
        self._has_answered = False

    @cached_property
    def _client(self) -> AsyncOpenAI:
        """Made for the first question: a month that asks none has no use for it."""
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        from formulacode_dagster.operating.cancellation.tls import trusted

        return AsyncOpenAI(
            api_key=self._secret,
            base_url=self._address,
            timeout=self._timeout,
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(verify=trusted()),
        )

    async def close(self) -> None:
        """Close the connections, if there are any."""
        if "_client" in vars(self):
            await self._client.close()

    async def send(
        self,
        messages: Sequence[Message],
        name: str,
        schema: dict[str, Any],
        lose: Callable[[bool], None],
        capabilities: Capabilities,
    ) -> tuple[Reply, Capabilities]:
        """The reply to *messages*, asked to follow JSON *schema*, and the *capabilities* it was understood with.

        A field that is refused by name is left out or called by its other name. *lose* hears of each call that brought
        none, and whether it timed out or was broken off: the endpoint may have worked on it.

        Raises ItemFailure (`timeout`, `model_answer`, `model_request`, `moderated`) when this question got no reply;
        OutsideSystemError when the endpoint refuses us for good, cannot be reached, or has left several questions in a
        row without one.
        """
        import openai

        attempts, timeouts, limits, said, tried = 0, 0, 0, "", {capabilities}
        while attempts < self._retries.attempts and timeouts < self._retries.attempts_on_timeout:
            attempts += 1
            await self._turn()
            try:
                completion = await self._create(capabilities, messages, name, schema)
            except asyncio.CancelledError:
                # the request was sent, and an abandoned answer is paid for too
                with suppress(OutsideSystemError):
                    lose(True)
                raise
            except openai.APITimeoutError:
                timeouts += 1
                lose(True)
                said = f"no answer within {self._timeout:g} s"
            except openai.APIConnectionError as error:
                if _is_refused(error):
                    self._refused_connections += 1
                    said = self._clean(f"cannot connect: {error.__cause__ or error}")
                else:
                    # the request was sent, and the endpoint may have worked on it
                    self._refused_connections = 0
                    timeouts += 1
                    lose(True)
                    said = self._clean(f"the connection broke: {error.__cause__ or error}")
            except openai.APIStatusError as error:
                self._refused_connections = 0
                lose(False)
                other = capabilities.without(_message_of(error)) if error.status_code in _MALFORMED else None
                if other is not None and other not in tried:
                    tried.add(other)
                    capabilities, attempts = other, attempts - 1
                    continue
                said = self._require_transient(error)
                if error.status_code == 429 and limits < self._retries.limits:
                    limits, attempts = limits + 1, attempts - 1
                self._postpone(error, max(attempts, limits))
                continue
            except (openai.APIError, ValueError) as error:
                return reply_of(str(error), self._clean), capabilities
            else:
                self._refused_connections = self._unanswered_items = 0
                self._has_answered = True
                return reply_of(completion, self._clean), capabilities
            if attempts < self._retries.attempts and timeouts < self._retries.attempts_on_timeout:
                await asyncio.sleep(self._retries.backoff.seconds(attempts))
        raise self._given_up(attempts, said, timed_out=timeouts > 0)

    async def _create(
        self, capabilities: Capabilities, messages: Sequence[Message], name: str, schema: dict[str, Any]
    ) -> object:
        request = capabilities.request(messages, name, schema, max_tokens=self.max_tokens, temperature=self.temperature)
        return await self._client.chat.completions.create(model=self.model, **request)

    def _require_transient(self, error: APIStatusError) -> str:
        """Return the endpoint's error if a retry may help; raises otherwise."""
        status = error.status_code
        said = self._clean(f"HTTP {status}: {_message_of(error)}")
        if status in (400, 403) and _is_moderation(error):
            raise self._moderated(said)
        if status == 403 and self._has_answered:
            # the key works for other questions, so this one is rejected
            self._count_unanswered(said)
            raise SuspectedOutage(SYSTEM, FailureKind.MODERATED, f"{self.place} refuses this text", why=said)
        if status in (401, 403):
            # the body of a refusal repeats parts of the key
            raise OutsideSystemError(
                SYSTEM,
                f"{self.place} refuses the API key (HTTP {status})",
                remedy="Check LLM_API_KEY and LLM_BASE_URL",
            )
        if status == 402 or error.code == "insufficient_quota":
            raise OutsideSystemError(
                SYSTEM,
                f"{self.place} says the credit of this key is used up",
                why=said,
                remedy="Add credit, or use another LLM_API_KEY",
            )
        if status == 404:
            raise OutsideSystemError(
                SYSTEM,
                f"{self.place} has no model {self.model!r}",
                why=said,
                remedy="Check LLM_MODEL, and that LLM_BASE_URL ends where the API begins, usually in /v1",
            )
        if status >= 500 or status in _RETRIED:
            return said
        self._count_unanswered(said)
        raise SuspectedOutage(
            SYSTEM,
            FailureKind.MODEL_REQUEST,
            f"{self.place} refuses the request",
            why=said,
            remedy="If it is too long for the model, use one with a larger context",
        )

    def _moderated(self, said: str) -> ItemFailure:
        remedy = "Ask another LLM_MODEL, or decide by hand"
        return ItemFailure(FailureKind.MODERATED, f"{self.place} does not take this text", why=said, remedy=remedy)

    def _postpone(self, error: APIStatusError, attempts: int) -> None:
        """Make all questions wait as long as the endpoint asks, or as backoff says."""
        asked = retry_after(error.response.headers, time.time())
        if asked is not None and asked > self._retries.longest_retry_after:
            raise OutsideSystemError(
                SYSTEM,
                f"{self.place} requests a pause of {asked:,.0f} s (HTTP {error.status_code})",
                remedy="Run again then; answers that were paid for are kept",
            )
        wait = self._retries.backoff.seconds(attempts) if asked is None else asked
        self._resume_at = max(self._resume_at, time.monotonic() + wait)
        if self._on_wait is not None and wait >= 1:
            self._on_wait(f"the model answers HTTP {error.status_code}; waiting {wait:.0f} s")

    async def _turn(self) -> None:
        # all that wait would ask at once, and all but one be refused again
        while (left := self._resume_at - time.monotonic()) > 0:  # noqa: ASYNC110 - others move the moment
            await asyncio.sleep(left * random.uniform(1.0, 1.25))  # noqa: S311 - spreads retries, keeps no secret

    def _given_up(self, attempts: int, said: str, *, timed_out: bool) -> FormulaCodeError:
        if self._refused_connections >= self._retries.attempts:
            return OutsideSystemError(
                SYSTEM,
                f"{self.place} cannot be reached ({self._refused_connections} attempts in a row)",
                why=said,
                remedy="Check LLM_BASE_URL, and that the endpoint runs",
            )
        self._count_unanswered(said)
        return SuspectedOutage(
            SYSTEM,
            FailureKind.TIMEOUT if timed_out else FailureKind.MODEL_ANSWER,
            f"the model at {self.place} gave no answer in {attempts} attempts",
            why=said,
            remedy="Run again to ask again",
        )

    def _count_unanswered(self, said: str) -> None:
        self._unanswered_items += 1
        if self._unanswered_items >= self._retries.unanswered_until_dead:
            raise OutsideSystemError(
                SYSTEM,
                f"{self.place} did not answer the last {self._unanswered_items} questions",
                why=said,
                remedy="Check the endpoint's health, LLM_BASE_URL and LLM_MODEL, then run again",
            )

    def _clean(self, text: str) -> str:
        return " ".join(text.replace(self._secret, "***").split())[:_EXCERPT]


def _require_settings(base_url: str, api_key: str, model: str) -> None:
    missing = [name for name, value in (("LLM_API_KEY", api_key), ("LLM_MODEL", model)) if not value.strip()]
    if missing:
        raise ConfigurationError(
            f"the language model is not configured: {' and '.join(missing)} missing",
            remedy="Set them in .env, with LLM_BASE_URL for any OpenAI-compatible endpoint; `fc-data sandbox` has one",
        )
    if base_url and urlsplit(base_url).scheme not in ("http", "https"):
        raise ConfigurationError(
            f"LLM_BASE_URL is {_without_credentials(base_url)!r}, which is not a URL",
            remedy="Write it as http(s)://host[:port]/v1",
        )


def _without_credentials(address: str) -> str:
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _is_refused(error: APIConnectionError) -> bool:
    """Return True if there was no connection to send the request over."""
    # by name: openai has them from httpx or httpx2, depending on its version
    return not {"ConnectError", "ProxyError"}.isdisjoint(kind.__name__ for kind in type(error.__cause__).__mro__)


def _is_moderation(error: APIStatusError) -> bool:
    return _MODERATION.search(f"{error.code} {_message_of(error)}") is not None


def _message_of(error: APIStatusError) -> str:
    body = error.body
    return str(body["message"]) if isinstance(body, dict) and "message" in body else str(body or error.message)
