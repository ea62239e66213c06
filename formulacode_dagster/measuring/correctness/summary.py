"""Summaries of test runs of one pull request: one line, and test by test."""

from __future__ import annotations

from formulacode_dagster.models.correctness import Correctness

from .verdict import fate_of

SHOWN = 3


def summary_of_tests(row: Correctness) -> str:
    """One line for the ledger."""
    if row.problem:
        return f"no test could be run: {row.problem.partition(chr(10))[0]}"
    if row.broken:
        others = f" and {len(row.broken) - SHOWN} others" if len(row.broken) > SHOWN else ""
        return f"the author's patch breaks {', '.join(row.broken[:SHOWN])}{others}"
    text = f"{len(row.pass_to_pass)} tests pass as before, {len(row.fail_to_pass)} begin to, {len(row.flaky)} are flaky"
    if row.not_begun:
        text += f", {len(row.not_begun)} are left out as a run had no time for them"
    if row.no_time:
        text += ", time was up before the last was run once"
    covered = f"{row.covered_lines} of {row.changed_lines} changed lines executed"
    if row.untraceable:
        more = f" and {len(row.untraceable) - SHOWN} others" if len(row.untraceable) > SHOWN else ""
        covered += f", what executes {', '.join(row.untraceable[:SHOWN])}{more} is unknown"
    if row.mutants:
        covered += f", {sum(mutant.killed for mutant in row.mutants)} of {len(row.mutants)} mutants killed"
    return f"{text}, {covered}{', weak' if row.weak_tests else ''}"


def report_of_tests(row: Correctness) -> str:
    """Return a line for each test that reaches the change, with the output of those that do not always pass."""
    lines = [summary_of_tests(row), *(f"cannot be traced: {path}" for path in row.untraceable)]
    for test in row.tests:
        runs = " ".join([*test.base, "|", *test.oracle])
        lines += [f"{test.name}: {fate_of(test)} ({runs})", *(test.message.splitlines() if test.message else ())]
    for mutant in row.mutants:
        place = f"{mutant.path}:{mutant.line}:{mutant.column}"
        ending = "killed" if mutant.killed else "survived"
        lines.append(f"mutant {mutant.kind} at {place}: {ending}, {mutant.tests} tests execute the line")
    return "\n".join(lines)
