"""Functions of one's own about a pull request, computed once and kept in Postgres."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Protocol, Self, overload

from sqlalchemy import Row

from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError
from formulacode_dagster.operating.store import hooks
from formulacode_dagster.operating.store.database import Database
from resources.database import open_database

LONGEST_KEY = 1_000
"""Characters of arguments that the key holds verbatim; Postgres indexes no more than 2,700 bytes."""

Key = tuple[str, str, str]
_UNDER_WAY: ContextVar[tuple[Key, ...]] = ContextVar("hooks_under_way", default=())


class Entity(Protocol):
    """Entities that a hook may be called for."""

    @property
    def cache_key(self) -> str:
        """The name under which results about it are kept."""
        ...


def _origin_of(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the module and the qualified name of *function*, or of its class if it has none."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return named.__module__, named.__qualname__


@dataclass(frozen=True)
class _Hook:
    name: str
    function: Callable[..., Any]
    version: str

    def arguments(self, entity: Entity, positional: tuple[Any, ...], named: dict[str, Any]) -> str:
        """All but the entity, defaults included, as one text: equal calls are equal however they are written."""
        bound = inspect.signature(self.function).bind(entity, *positional, **named)
        bound.apply_defaults()
        values = dict(list(bound.arguments.items())[1:])
        try:
            text = json.dumps({"version": self.version, "arguments": values}, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise FormulaCodeError(
                f"the arguments of hook {self.name!r} cannot be written as JSON, and its result kept under them",
                why=str(error),
                remedy="Pass text, finite numbers, booleans, None, and lists and dictionaries of them",
            ) from error
        return text if len(text) <= LONGEST_KEY else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass
class HookRegistry:
    """Hooks by name. Their results are kept in *database* (one, its URL, or None for that of the settings).

    A result is found again by the entity's `cache_key`, the hook's name and version, and the arguments. Safe to use
    from several threads and tasks, of which only one computes; of several processes each may, and the result that was
    stored first is everybody's.
    """

    database: Database | str | None = None
    _hooks: dict[str, _Hook] = field(default_factory=dict, init=False, repr=False)
    _computing: dict[Key, Future[Any]] = field(default_factory=dict, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _opening: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _opened: Database | None = field(default=None, init=False, repr=False)

    def register(self, name: str, function: Callable[..., Any], *, version: str = "1") -> None:
        """Call *function*, sync or async, by *name*; it takes the entity first, and returns a JSON value.

        Its code is not part of the key: raise *version* when it changes, and results of the one before are ignored.
        Raises ConfigurationError if another function has that name; one that is defined again takes its own place.
        """
        taken = self._hooks.get(name)
        if taken is not None and _origin_of(taken.function) != _origin_of(function):
            raise ConfigurationError(
                f"the hook {name!r} is {'.'.join(_origin_of(taken.function))}",
                why=f"{'.'.join(_origin_of(function))} would share its results",
                remedy="Register it under another name",
            )
        self._hooks[name] = _Hook(name, function, version)

    @overload
    def cached(self, function: Callable[..., Any], *, version: str = "1") -> Callable[..., Any]: ...
    @overload
    def cached(self, *, version: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
    def cached(self, function: Callable[..., Any] | None = None, *, version: str = "1") -> Callable[..., Any]:
        """Decorate *function* so that it is computed once for each entity and arguments, as the hook of its name.

        `@hooks.cached`, or `@hooks.cached(version="2")` after its code changed. Raises as `register`.
        """
        if function is None:
            return partial(self.cached, version=version)
        self.register(function.__name__, function, version=version)
        return wraps(function)(partial(self.call, function.__name__))

    def call(self, name: str, entity: Entity, /, *arguments: Any, **named: Any) -> Any:
        """The result of hook *name* for *entity*; inside a running event loop an awaitable of it.

        The first call computes it and every later one reads it, in any process. The hook's exceptions are raised and
        not stored. Raises ConfigurationError for an unknown name, FormulaCodeError if arguments or result cannot be
        written as JSON, or if the hook waits for itself.
        """
        answer = self._answer(name, entity, arguments, named)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(answer)
        return answer

    def forget(self, name: str, entity: Entity | None = None) -> int:
        """Drop the stored results of hook *name*, or those for one entity; return their number."""
        with self._database().transaction() as connection:
            return hooks.forget(connection, name, entity.cache_key if entity is not None else None)

    def close(self) -> None:
        """Give back the connections that were opened for a URL or the settings."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _answer(self, name: str, entity: Entity, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if name not in self._hooks:
            raise ConfigurationError(f"no hook is called {name!r}", remedy="Register it first")
        hook = self._hooks[name]
        key = (entity.cache_key, name, hook.arguments(entity, arguments, named))
        if key in _UNDER_WAY.get():
            raise FormulaCodeError(f"hook {name!r} asks for its own result for {entity.cache_key}")
        while True:
            with self._lock:
                other = self._computing.get(key)
                mine: Future[Any] = Future()
                if other is None:
                    self._computing[key] = mine
            if other is None:
                return await self._compute(mine, key, hook, (entity, *arguments), named)
            finished, _ = await asyncio.wait([asyncio.wrap_future(other)])
            (ended,) = finished
            # whoever was asked first may have been cancelled: then it is our turn
            if not ended.cancelled():
                return ended.result()

    async def _compute(
        self, mine: Future[Any], key: Key, hook: _Hook, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        token = _UNDER_WAY.set((*_UNDER_WAY.get(), key))
        work = asyncio.ensure_future(self._find_or_make(key, hook, arguments, named))
        try:
            await asyncio.wait([work])
            if work.exception() is not None:
                mine.set_exception(work.exception())
            else:
                mine.set_result(work.result())
            return work.result()
        finally:
            _UNDER_WAY.reset(token)
            work.cancel()
            with self._lock:
                del self._computing[key]
            mine.cancel()

    async def _find_or_make(self, key: Key, hook: _Hook, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        kept = await asyncio.to_thread(self._read, key)
        if kept is not None:
            return kept.result
        if inspect.iscoroutinefunction(hook.function):
            made = await hook.function(*arguments, **named)
        else:
            made = await asyncio.to_thread(hook.function, *arguments, **named)
            if inspect.isawaitable(made):
                made = await made
        return (await asyncio.to_thread(self._write, key, made)).result

    def _read(self, key: Key) -> Row[tuple[Any]] | None:
        with self._database().transaction() as connection:
            return hooks.get(connection, *key)

    def _write(self, key: Key, result: Any) -> Row[tuple[Any]]:
        with self._database().transaction() as connection:
            return hooks.put(connection, *key, result)

    def _database(self) -> Database:
        if isinstance(self.database, Database):
            return self.database
        with self._opening:
            if self._opened is None:
                self._opened = open_database(self.database or "")
            return self._opened
