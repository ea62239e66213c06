"""Miss rate of the leak gates of problem statements, by kind, and their false alarms.

python -m bench.leaks

Counts the results of the gates without a model, and of the second check in `nothing_leaks`; if FC_STATEMENT_JUDGES
names models, also their results for the kinds that need a judge, and for the clean texts. Intervals: 95 %,
Clopper-Pearson. Ends with 1 if a kind that rules can detect is missed, or more than one clean text in ten is stopped by
rules. The last line is JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Iterable

from formulacode_dagster.measuring.measurement.statistics.chance import clopper_pearson
from formulacode_dagster.models.completion import Completion
from formulacode_dagster.selection.classification.model_access import SessionAccount
from formulacode_dagster.selection.statements.gates import Gates
from formulacode_dagster.selection.statements.judging import StatementJudges
from resources.llm import LLMResource
from tests.formulacode_dagster.selection.statements.leaks.cases import NEEDS_A_JUDGE, Case, all_cases
from tests.formulacode_dagster.selection.statements.leaks.judging import gates_see, second_look_sees
from tests.formulacode_dagster.selection.statements.leaks.tried import EARLIER, SECRETS, TRIED

MOST_FALSE_ALARMS = 0.10
CLEAN = "clean"


class Kept(dict[str, Completion]):
    """Answers of this run."""

    def put(self, completion: Completion) -> None:
        """Keep an answer."""
        self[completion.key] = completion


def main() -> int:
    """Judge all cases, and print the figures."""
    by_kind: defaultdict[str, list[Case]] = defaultdict(list)
    for case in all_cases():
        by_kind[case.kind or CLEAN].append(case)
    judged = asyncio.run(ask_judges(by_kind))
    print(f"{'kind':24} {'texts':>5} {'missed':>6}  {'95 %':>13}  {'second look':>11}  {'judges':>6}")
    report: dict[str, dict[str, float]] = {}
    for kind, cases in by_kind.items():
        is_clean = kind == CLEAN
        wrong = sum(gates_see(case) is is_clean for case in cases)
        again = sum(second_look_sees(case) is is_clean for case in cases)
        low, high = clopper_pearson(wrong, len(cases))
        report[kind] = {"texts": len(cases), "wrong": wrong, "low": round(low, 4), "high": round(high, 4)}
        report[kind] |= {"second_look_wrong": again, **({"judges_wrong": judged[kind]} if kind in judged else {})}
        unguarded = "  unguarded without a judge" if kind in NEEDS_A_JUDGE and kind not in judged else ""
        label = f"{kind} (false alarms)" if is_clean else kind
        by_judges = f"{judged.get(kind, ''):>6}{unguarded}"
        print(f"{label:24} {len(cases):5} {wrong:6}  {low:6.1%} {high:6.1%}  {again:11}  {by_judges}")
    missed = sum(int(row["wrong"]) for kind, row in report.items() if kind not in (CLEAN, *NEEDS_A_JUDGE))
    seen = [attempt.way for attempt in TRIED if Gates(SECRETS, earlier=[EARLIER]).judge(attempt.text, CLEAN)]
    unseen = "; ".join(f"{attempt.way} ({attempt.unseen})" for attempt in TRIED if attempt.way not in seen)
    print(f"tried by hand: rules stop {len(seen)} of {len(TRIED)}, not {unseen}")
    false_alarms = report[CLEAN]["wrong"] / report[CLEAN]["texts"]
    reached = missed == 0 and false_alarms <= MOST_FALSE_ALARMS
    print(
        json.dumps(
            {
                "kinds": report,
                "missed_by_rules": missed,
                "false_alarms": false_alarms,
                "tried": len(TRIED),
                "seen": len(seen),
                "reached": reached,
            }
        )
    )
    return 0 if reached else 1


async def ask_judges(by_kind: dict[str, list[Case]]) -> dict[str, int]:
    """Number of texts of the kinds that need a judge, and of the clean ones, that the configured judges get wrong."""
    async with LLMResource().statement_models(Kept()).connect(SessionAccount(CLEAN)) as models:
        if models.judges is None:
            return {}
        kinds = (*NEEDS_A_JUDGE, CLEAN)
        return {kind: await mistakes(models.judges, by_kind[kind], is_clean=kind == CLEAN) for kind in kinds}


async def mistakes(judges: StatementJudges, cases: Iterable[Case], *, is_clean: bool) -> int:
    """Number of *cases* stopped if *is_clean*, and passed otherwise."""
    wrong = 0
    for case in cases:
        leaks, _ = await judges.judge(case.text, case.secrets.patch, CLEAN)
        wrong += bool(leaks) is is_clean
    return wrong


if __name__ == "__main__":
    sys.exit(main())
