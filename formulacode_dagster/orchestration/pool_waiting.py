"""A run whose next step waits for a pool sleeps meanwhile.

Dagster's executor of one process asks how long it may sleep until it tries again, and is always told not at all (1.13's
`min([0, …])`): a month that waits for another one's measurements would keep a core busy beside them.
"""

from __future__ import annotations

import time
from typing import Any

# there is no public way to the wait of an executor
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext

MOST_SECONDS = 1.0
"""Between two looks at what else there is to do."""


def sleep_while_pools_are_full() -> None:
    """Let runs of this process sleep while their next step waits for a pool."""
    amended: Any = InstanceConcurrencyContext
    amended.interval_to_next_pending_claim_check = _seconds_to_next_claim


def _seconds_to_next_claim(context: InstanceConcurrencyContext) -> float:
    next_at: float = min(context._pending_timeouts.values(), default=0.0)
    return min(MOST_SECONDS, max(0.0, next_at - time.time()))
