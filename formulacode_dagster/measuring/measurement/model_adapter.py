"""A synchronous adapter for a model that lives in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from formulacode_dagster.measuring.workloads.written import Draft
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.items import Cost
from formulacode_dagster.operating.cancellation.stopping import stop_request
from formulacode_dagster.operating.runner.work import Outcome, R
from formulacode_dagster.selection.statements.judging import Model


@dataclass
class SyncModelAdapter:
    """The writer of one pull request's benchmarks, and the cost of its drafts."""

    model: Model
    loop: asyncio.AbstractEventLoop
    cost: Cost = Cost()

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    def draft(self, instructions: str, material: str) -> Draft:
        """Return a draft; raises as `LanguageModel.ask`, and Stopped at once, however long the model takes."""
        asked = self.model.answer(instructions, material, Draft)
        answer = asyncio.run_coroutine_threadsafe(asked, self.loop)
        try:
            with stop_request().ending(answer.cancel):
                draft, cost = answer.result()
        except ItemFailure as failure:
            # added once, whether or not the pull request goes on without the draft
            self.cost, failure.cost = self.cost + failure.cost, Cost()
            raise
        self.cost += cost
        return draft


def with_cost(asked: SyncModelAdapter, work: Callable[[], Outcome[R]]) -> Outcome[R]:
    """Return the outcome of *work*, with the cost of what was *asked* added, however it ends. Raises as *work*."""
    try:
        outcome = work()
    except Rejection as rejection:
        outcome = Outcome(log=rejection.log, rejection=rejection)
    except ItemFailure as failure:
        failure.cost += asked.cost
        raise
    return replace(outcome, cost=outcome.cost + asked.cost)
