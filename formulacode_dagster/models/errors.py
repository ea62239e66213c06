"""The errors of the domain.

FormulaCodeError
 ├── ConfigurationError     a setting is missing or malformed: nothing can start
 ├── OutsideSystemError     GitHub, Postgres, the model, Docker, the Hub … does not answer: the stage stops at once
 ├── BusyError              another run holds the same month of the same stage
 ├── GateClosedError        a gate of an upstream asset failed for this month
 ├── ItemFailure            one item could not be processed; the others go on; may be tried again
 │    └── SuspectedOutage   … by what an outside system did, which may do it to everybody: then it is that system's
 ├── NotAsked               one item is outside what this run, with these settings, can or should do
 └── Rejection              one item was decided against: not an error, a verdict with a reason code
"""

from __future__ import annotations

from .items import Cost
from .reasons import FailureKind, RejectionReason, SkipReason


class FormulaCodeError(Exception):
    """Base of all errors: the message says what was attempted, why it failed, and what to do."""

    def __init__(self, what: str, *, why: str = "", remedy: str = "") -> None:
        self.what = what
        self.why = why
        self.remedy = remedy
        text = what if not why else f"{what}: {why}"
        super().__init__(text if not remedy else f"{text.rstrip('.')}. {remedy}")


class ConfigurationError(FormulaCodeError):
    """A setting is missing or malformed."""


class OutsideSystemError(FormulaCodeError):
    """An outside system is dead or refuses us for good; trying the next item would only repeat the failure."""

    def __init__(self, system: str, what: str, *, why: str = "", remedy: str = "") -> None:
        self.system = system
        super().__init__(f"{system}: {what}", why=why, remedy=remedy)


class BusyError(FormulaCodeError):
    """Another run is materializing the same month of the same stage."""


class GateClosedError(FormulaCodeError):
    """A blocking check of an upstream asset failed for this month, in this run or an earlier one."""


class ItemFailure(FormulaCodeError):
    """One item failed; `cost` is what it consumed anyway, `log` the whole log if there is one."""

    def __init__(
        self, kind: FailureKind, what: str, *, why: str = "", remedy: str = "", log_tail: str = "", cost: Cost = Cost()
    ) -> None:
        self.kind = kind
        self.log_tail = log_tail
        self.cost = cost
        self.log = ""
        super().__init__(what, why=why, remedy=remedy)


class SuspectedOutage(ItemFailure):
    """One item was lost to *system*, which may be down for all of them: three unlike ones in a row stop the stage."""

    def __init__(
        self, system: str, kind: FailureKind, what: str, *, why: str = "", remedy: str = "", log_tail: str = ""
    ) -> None:
        self.system = system
        super().__init__(kind, what, why=why, remedy=remedy, log_tail=log_tail)


class NotAsked(FormulaCodeError):
    """One item is skipped; *what* is a sentence."""

    def __init__(self, reason: SkipReason, what: str) -> None:
        self.reason = reason
        super().__init__(what)


class Rejection(FormulaCodeError):
    """One item was decided against; `log` explains the decision, if there is a log."""

    def __init__(self, reason: RejectionReason, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        self.log = ""
        super().__init__(f"rejected as {reason}", why=detail)
