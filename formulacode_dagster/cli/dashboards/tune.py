"""`fc-data tune`: missing system tuning on a machine that times benchmarks."""

from __future__ import annotations

from formulacode_dagster.cli.console import console, table_of

STYLES = {"yes": "[green]yes[/]", "no": "[red]no[/]", "unknown": "[dim]unknown[/]"}


def tune() -> None:
    """Report missing parts of pyperf's system tuning on this machine. Nothing is changed."""
    from formulacode_dagster.measuring.commit_benchmarks.tuning import Tuned, read_tuning

    findings = read_tuning()
    table = table_of("setting", "tuned", "is", "to tune it")
    for finding in findings:
        remedy = "" if finding.tuned is Tuned.YES else finding.remedy
        table.add_row(finding.name, STYLES[finding.tuned], finding.value, remedy)
    console.print(table)
    off = sum(finding.tuned is Tuned.NO for finding in findings)
    unknown = sum(finding.tuned is Tuned.UNKNOWN for finding in findings)
    console.print(f"{off} of {len(findings)} are off, {unknown} are not shown", highlight=False)
