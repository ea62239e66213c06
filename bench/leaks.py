"""How many leaks the gates of problem statements miss, by kind, and how many clean statements they stop.

    python -m bench.leaks

Counts what the gates without a model see, and what the second look of `nothing_leaks` sees. Intervals are 95 %,
Clopper-Pearson. Ends with 1 when a kind that rules can see is missed, or more than one clean text in ten is stopped.
The last line is JSON.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict

from tests.formulacode_dagster.problems.leaks.cases import NEEDS_A_JUDGE, all_cases
from tests.formulacode_dagster.problems.leaks.judging import gates_see, second_look_sees

from .intervals import clopper_pearson

MOST_FALSE_ALARMS = 0.10
CLEAN = "clean"


def main() -> int:
    """Judge all cases, and print the figures."""
    seen: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for case in all_cases():
        seen[case.kind or CLEAN].append((gates_see(case), second_look_sees(case)))
    print(f"{'kind':24} {'texts':>5} {'missed':>6}  {'95 %':>13}  {'second look':>11}")
    report: dict[str, dict[str, float]] = {}
    for kind, judged in seen.items():
        wrong = [sum(verdicts[judge] == (kind == CLEAN) for verdicts in judged) for judge in (0, 1)]
        low, high = clopper_pearson(wrong[0], len(judged))
        report[kind] = {
            "texts": len(judged),
            "wrong": wrong[0],
            "low": low,
            "high": high,
            "second_look_wrong": wrong[1],
        }
        note = " needs a judge: unguarded without a model" if kind in NEEDS_A_JUDGE else ""
        what = " (false alarms)" if kind == CLEAN else ""
        print(f"{kind + what:24} {len(judged):5} {wrong[0]:6}  {low:6.1%} {high:6.1%}  {wrong[1]:11}{note}")
    missed = sum(int(row["wrong"]) for kind, row in report.items() if kind != CLEAN and kind not in NEEDS_A_JUDGE)
    false_alarms = report[CLEAN]["wrong"] / report[CLEAN]["texts"]
    reached = missed == 0 and false_alarms <= MOST_FALSE_ALARMS
    print(json.dumps({"kinds": report, "missed_by_rules": missed, "false_alarms": false_alarms, "reached": reached}))
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
