"""Deliver a message to every channel; a dead channel does not affect the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError, OutsideSystemError
from formulacode_dagster.operating.cancellation.backoff import Backoff

from .alert import Alert
from .channels import Channel

TRIES = 3
WAITS = Backoff(first_seconds=1.0, longest_seconds=5.0)


def deliver(
    alert: Alert, channels: Sequence[Channel], *, sleep: Callable[[float], None] = time.sleep
) -> tuple[FormulaCodeError, ...]:
    """Send *alert* by all of *channels*, three times at most; returns why each failed that could not take it."""
    failures = (_failure(alert, channel, sleep) for channel in channels)
    return tuple(failure for failure in failures if failure is not None)


def _failure(alert: Alert, channel: Channel, sleep: Callable[[float], None]) -> FormulaCodeError | None:
    for tries in range(1, TRIES + 1):
        try:
            channel.send(alert)
        except ConfigurationError as error:
            return error
        except OutsideSystemError as error:
            if tries == TRIES:
                return error
            sleep(WAITS.seconds(tries))
        else:
            return None
    return None
