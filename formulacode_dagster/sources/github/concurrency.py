"""Calls made at the same time, of which the first error is the error of the whole."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_or_raise(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of *calls*, in their order.

    The first error cancels the rest and is raised as it is: callers catch errors of the domain, not groups of them.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
