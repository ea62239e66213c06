"""Output of the command line: progress bars, the funnel, an item's history. Only this module draws."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from formulacode_dagster.models.intake import ListedRepository, ListVerdict
from formulacode_dagster.models.items import Cost, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.runner.log_lines import WaitLines
from formulacode_dagster.operating.runner.progress import ProgressListener, duration
from formulacode_dagster.operating.store.ledger import Ending
from formulacode_dagster.releasing.reporting.forecast import Forecast
from formulacode_dagster.releasing.reporting.funnel import Funnel
from formulacode_dagster.sources.intake.repositories.tracked import Exclusion
from resources.probes import Health, ProbeResult

from .console import table_of

_COLOURS = {
    ItemState.DONE: "green",
    ItemState.REJECTED: "yellow",
    ItemState.FAILED: "red",
    ItemState.SKIPPED: "dim",
}
_HEALTH = {Health.OK: "green", Health.WARNING: "yellow", Health.BROKEN: "red"}
NOTE_WIDTH = 60
LINE_SECONDS = 15.0
"""Seconds between two lines of progress without bars."""
SILENT_SECONDS = 60.0
"""Seconds after which the last line is said again, with its age: a step may take many minutes."""
_CONTROLS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class _Note(ProgressColumn):
    """The newest line; while something waits, a countdown."""

    def render(self, task: Task) -> Text:
        reason, until = task.fields.get("waits_for", ("", 0.0))
        left = until - time.monotonic()
        text = f"waiting {duration(left)}: {reason}"[: 2 * NOTE_WIDTH] if left > 0 else task.fields["note"]
        return Text(text, style="dim")


class _Left(ProgressColumn):
    """Estimate of the remaining time, from the items so far."""

    def render(self, task: Task) -> Text:
        return Text(_left(task.finished_time or task.elapsed or 0.0, int(task.completed), int(task.total or 0)))


def _left(elapsed: float, done: int, total: int) -> str:
    return f"about {duration(elapsed / done * (total - done))} left" if 0 < done < total else ""


class Bars(ProgressListener):
    """A progress listener that draws one bar a stage.

    On a dumb terminal or in a log it writes a line as a stage starts and ends, and now and then in between.
    """

    def __init__(
        self,
        console: Console,
        *,
        clock: Callable[[], float] = time.monotonic,
        speedup_of: Callable[[str], str] | None = None,
    ) -> None:
        """*clock* returns seconds, which space the lines; *speedup_of* describes the first finished task, by name."""
        self._speedup_of = speedup_of
        self._console = console
        self._clock = clock
        self._begun: dict[Stage, float] = {}
        self._said_at = clock()
        self._draws = console.is_terminal and not console.is_dumb_terminal
        self._note_width = NOTE_WIDTH if self._draws else console.width
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓[/]"),
            TextColumn("{task.description:<20}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _Left(),
            _Note(),
            console=console,
            disable=not self._draws,
        )
        self._waits = WaitLines(lambda text: console.print(f"  {text}", markup=False, highlight=False))
        self._tasks: dict[Stage, TaskID] = {}
        self._done: dict[Stage, dict[ItemState, int]] = {}
        self._unchanged: dict[Stage, int] = {}
        self._newest: tuple[Stage, str, float] | None = None
        """The newest note of a running stage, and when it came."""
        self._over = threading.Event()

    def __enter__(self) -> Bars:
        self._progress.start()
        if not self._draws:
            threading.Thread(target=self._break_silences, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._progress.stop()

    def _break_silences(self) -> None:
        while not self._over.wait(LINE_SECONDS):
            self.break_silence()

    def break_silence(self) -> None:
        """Without bars, say again what a stage is at if nothing was said for `SILENT_SECONDS`."""
        newest, now = self._newest, self._clock()
        if newest is not None and not self._draws and now - self._said_at >= SILENT_SECONDS:
            stage, note, since = newest
            self._say(stage, f"{note}, for {duration(now - since)}", now)

    def stage_started(self, stage: Stage, month: str, pending: int, already_done: int) -> None:
        """Open the stage's bar, or lengthen it: a stage may have more than one leg."""
        self._done[stage] = {}
        self._begun[stage] = self._said_at = self._clock()
        self._unchanged[stage] = already_done
        if stage in self._tasks:
            task = self._tasks[stage]
            # a leg that was cut short leaves its rest to the next
            self._progress.update(task, total=self._progress.tasks[task].completed + pending)
        else:
            self._tasks[stage] = self._progress.add_task(stage.value, total=pending, note=month)
        if pending and not self._draws:
            self._console.print(f"  {stage.value}: {pending} to do", highlight=False)

    def item_finished(self, stage: Stage, item: str, state: ItemState, reason: str, _seconds: float) -> None:
        """Advance the bar."""
        counts = self._done[stage]
        counts[state] = counts.get(state, 0) + 1
        note = f"{item} {reason or state.value}"[: self._note_width]
        self._progress.update(self._tasks[stage], advance=1, note=note)
        if (stage, state) == (Stage.MEASUREMENTS, ItemState.DONE) and self._speedup_of is not None:
            describe, self._speedup_of = self._speedup_of, None
            self._console.print(
                f"  [bold green]first task:[/] {item} is {describe(item)} faster; fc-data why {item}", highlight=False
            )
        self._say_now_and_then(stage, note)

    def note(self, stage: Stage, text: str) -> None:
        """Show the newest line behind the bar."""
        if stage in self._tasks:
            note = text.strip()[: self._note_width]
            self._progress.update(self._tasks[stage], note=note)
            self._say_now_and_then(stage, note)

    def _say_now_and_then(self, stage: Stage, note: str) -> None:
        now = self._clock()
        self._newest = (stage, note, now)
        if not self._draws and now - self._said_at >= LINE_SECONDS:
            self._say(stage, note, now)

    def _say(self, stage: Stage, note: str, now: float) -> None:
        self._said_at = now
        task = self._progress.tasks[self._tasks[stage]]
        done, total = int(task.completed), int(task.total or 0)
        left = _left(now - self._begun[stage], done, total)
        line = ", ".join(part for part in (f"{done} of {total}", left, note) if part)
        self._console.print(f"  {stage.value}: {line}", markup=False, highlight=False)

    def waiting(self, stage: Stage, reason: str, seconds: float) -> None:
        """Count down behind the bar, or in a line every minute without bars."""
        if stage in self._tasks:
            self._progress.update(self._tasks[stage], waits_for=(reason, time.monotonic() + seconds))
        if not self._draws:
            self._waits.waiting(reason, seconds)

    def announce(self, text: str) -> None:
        """A line above the bars."""
        self._console.print(f"  {text}", markup=False, highlight=False)

    def warn(self, stage: Stage, text: str) -> None:
        """A line above the bars."""
        self._console.print(f"  [yellow]{stage.value}:[/] {escape(text)}", highlight=False)

    def stage_finished(self, stage: Stage) -> None:
        """Sum up behind the bar, or in a line without bars."""
        counts = ", ".join(f"{n} {state.value}" for state, n in self._done[stage].items() if n)
        text = "; ".join(part for part in (counts, f"{self._unchanged[stage]} unchanged") if part)
        self._progress.update(self._tasks[stage], note=text, waits_for=("", 0.0))
        self._newest = None
        if not self._draws:
            self._console.print(f"  {stage.value}: {text}", highlight=False)


def show_endings(console: Console, endings: Sequence[Ending]) -> None:
    """Table of the items of each stage by state; repositories and pull requests together."""
    table = Table(title="How items ended", title_justify="left", box=None)
    table.add_column("stage")
    for state in ItemState:
        table.add_column(state.value, justify="right")
    for stage in dict.fromkeys(ending.stage for ending in endings):
        counts = [
            sum(ending.count for ending in endings if (ending.stage, ending.state) == (stage, state))
            for state in ItemState
        ]
        table.add_row(stage.value, *(str(count) if count else "" for count in counts))
    if endings:
        console.print(table)


def show_funnel(console: Console, funnel: Funnel, planned: Forecast | None = None) -> None:
    """The funnel with bars next to what was *planned*, the losses with their reasons, and the costs."""
    table = Table(title=f"Funnel of {funnel.month}", title_justify="left", show_header=False, box=None)
    widest = max((step.count for step in funnel.steps), default=0) or 1
    expected = {step.name: step.count for step in planned.steps} if planned else {}
    for step in funnel.steps:
        count = expected.get(step.name)
        plan = f"planned {count.low:.0f} to {count.high:.0f}" if count and not count.is_known else ""
        table.add_row(step.title, str(step.count), "█" * round(30 * step.count / widest), plan)
    console.print(table)
    if funnel.losses:
        headings = ("stage", "state", "reason", "items", "for example")
        losses = table_of(*headings, title="Why the others were not")
        for loss in funnel.losses:
            colour = _COLOURS[loss.state]
            losses.add_row(
                loss.stage.value,
                f"[{colour}]{loss.state.value}[/]",
                escape(loss.reason),
                str(loss.count),
                escape(loss.examples[0]),
            )
        console.print(losses)
    console.print(f"Cost of {funnel.month}: {describe_cost(funnel.cost)}")


def describe_cost(cost: Cost) -> str:
    """One line: points, requests, tokens, dollars, seconds."""
    return (
        f"{cost.api_points} API points in {cost.api_requests} requests, "
        f"{cost.tokens_in + cost.tokens_out} tokens in {cost.model_calls} model calls, "
        f"${cost.dollars:.2f}, {cost.seconds:.1f} s of work"
    )


def show_story(console: Console, item: str, story: Sequence[LedgerEntry]) -> None:
    """Show every stage of one item: state, reason, detail, cost; the log's tail if it failed."""
    console.print(f"[bold]{item}[/]")
    for entry in story:
        colour = _COLOURS[entry.state]
        reason = escape(f" ({entry.reason})") if entry.reason else ""
        finished = f"{entry.finished_at:%Y-%m-%d %H:%M:%S}" if entry.finished_at else ""
        console.print(f"{entry.month}  {entry.stage.value:<19} [{colour}]{entry.state.value}{reason}[/]  {finished}")
        if entry.detail:
            console.print(f"    {plain(entry.detail)}", markup=False, highlight=False)
        spent = {name: value for name, value in entry.cost.model_dump().items() if value}
        if spent:
            console.print(f"    attempt {entry.attempt}, cost {spent}, run {entry.run_id}", style="dim", markup=False)
        if entry.log_tail:
            console.print(plain(entry.log_tail), style="dim", markup=False, highlight=False)


def show_listed(console: Console, lines: Sequence[tuple[ListedRepository, LedgerEntry | None]], month: str) -> None:
    """The allow and deny list; with a *month*, how each repository on it ended there."""
    if not lines:
        console.print("The list is empty: only the rules decide.", highlight=False)
        return
    headings = ("repository", "verdict", "since", "reason", *([month] if month else []))
    table = table_of(*headings, title="Decided by people")
    for line, entry in lines:
        colour = "green" if line.verdict is ListVerdict.ALLOW else "yellow"
        ended = "not seen yet" if entry is None else f"[{_COLOURS[entry.state]}]{entry.state.value}[/] {entry.reason}"
        table.add_row(
            escape(line.full_name),
            f"[{colour}]{line.verdict.value}[/]",
            f"{line.listed_at:%Y-%m-%d}",
            escape(line.reason),
            *([ended.rstrip()] if month else []),
        )
    console.print(table)


def show_exclusions(console: Console, exclusions: Sequence[Exclusion], month: str) -> None:
    """Why repositories are not tracked in *month*, with some of those it concerns."""
    table = table_of("reason", "repositories", "such as", title=f"Not tracked in {month}")
    for exclusion in exclusions:
        table.add_row(escape(exclusion.reason), str(exclusion.count), escape("; ".join(exclusion.examples)))
    console.print(table if exclusions else f"No data on {month}, or every repository is tracked.", highlight=False)


def plain(text: str) -> str:
    """*text* of a build or a model without the control sequences that would act on the terminal."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def show_findings(console: Console, findings: Sequence[ProbeResult]) -> None:
    """One line for each outside system."""
    for finding in findings:
        console.print(
            f"[{_HEALTH[finding.health]}]{finding.health.value:<8}[/] {finding.system:<10} {escape(finding.text)}"
        )
