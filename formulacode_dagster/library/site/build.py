"""The site of a dataset, written into a folder: the registry, agents, months, releases, and a page for each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formulacode_dagster.library import Dataset, Task
from formulacode_dagster.models.agent_run import AgentResult, AgentRun
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import require_file_name
from formulacode_dagster.operating.files.atomic import disk_errors
from formulacode_dagster.releasing.dataset.index import IndexedMonth
from formulacode_dagster.releasing.reporting.plots import attempt_plot, bars, cost_plot, share_plot
from formulacode_dagster.releasing.results.checks import ORACLE
from formulacode_dagster.releasing.results.task_facts import of_release
from formulacode_dagster.sources.github.transport.addresses import PUBLIC_WEB

from .card import social_card
from .registry import RELEASES, month_table, release_view, task_table
from .results_page import (
    AGENTS,
    ALL,
    LEAST_TASKS,
    OUTCOMES,
    ScopedResult,
    SiteResults,
    agent_table,
    leaderboard,
    runs_table,
    scoped_results,
    slug_of,
)
from .run_page import RUNS, page_of, run_view
from .views import task_view

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC = (("static", "site.js"), ("static", "README.md"))
STYLE = "formulacode_dagster.releasing.reporting"
"""The package with the stylesheet, which the reports have too."""
RESULTS = "results.html"
DATA = "tasks.js"
TASKS = "tasks"
PAGES = (("index.html", "Tasks"), (RESULTS, "Agents"), ("months.html", "Months"))


@dataclass(frozen=True)
class BuiltSite:
    """Result of the build."""

    index: Path
    tasks: int
    months: int
    left_out: int = 0
    """Runs of agents in its months on tasks that it lacks, or has with another image or statement."""


@dataclass(frozen=True)
class _Site:
    """Content of a site, and the templates of its pages."""

    dataset: Dataset
    months: Sequence[IndexedMonth]
    tasks: Mapping[str, Task]
    told: SiteResults
    runs: Sequence[AgentRun]
    results: Sequence[ScopedResult]
    environment: Environment
    web: str

    def page(self, template: str, here: str, root: str = ".", **content: Any) -> str:
        """Return the page *here* of *content*."""
        return self.environment.get_template(template).render(here=here, root=root, **content)

    def of_all(self) -> list[AgentResult]:
        """Return the results of each agent on all tasks, the best first."""
        return [each.result for each in self.results if each.scope == (ALL, ALL)]


def write_site(
    dataset: Dataset,
    folder: Path,
    months: Sequence[str] = (),
    results: SiteResults | None = None,
    url: str = "",
    *,
    web: str = PUBLIC_WEB,
) -> BuiltSite:
    """Write the site of *dataset* (of these *months*, or of all) into *folder*, over a site that is there.

    With *results*, tasks show attempts and reviews, agents are compared and have pages, and months have funnels; runs
    on tasks with another image or statement are left out. *url* is the address at which the site will be, for the
    picture of its links; *web* that of the GitHub of the tasks.

    Raises ConfigurationError for a month that was not released and for a folder with other content, ItemFailure
    (`unreadable`) for a task whose id is no valid file name, OutsideSystemError when the disk is full.
    """
    shown = _months(dataset, months)
    tasks = {task_id: task for month in shown for task_id, task in dataset.of_month(month.month).items()}
    for task_id in tasks:
        require_file_name(task_id)
    told = results or SiteResults()
    runs = of_release(told.runs, (task.row for task in tasks.values()))
    environment = _environment(dataset, url, has_results=bool(runs))
    scoped = scoped_results(runs, shown, tasks) if runs else ()
    site = _Site(dataset, shown, tasks, told, runs, scoped, environment, web)
    with disk_errors(f"the site in {folder}"):
        _make_room(folder)
        written = set()
        for name, content in _files(site):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            written.add(path)
        _remove_others(folder, written)
    keys = {month.month for month in shown}
    left_out = sum(run.month in keys for run in told.runs) - len(runs)
    return BuiltSite(folder / "index.html", len(tasks), len(shown), left_out)


def _files(site: _Site) -> Iterator[tuple[str, str | bytes]]:
    for folder, name in STATIC:
        yield name, files(__package__).joinpath(folder, name).read_text("utf-8")
    yield "style.css", files(STYLE).joinpath("static", "style.css").read_text("utf-8")
    best = site.of_all()
    ranked = [row for row in best if row.score and row.agent != ORACLE]
    scores = [(row.contestant, row.score.value) for row in ranked if row.score]
    name = str(site.environment.globals["dataset"])
    yield "card.png", social_card(name, len(site.tasks), len(site.months), scores)
    yield from task_table(site.tasks, site.told.reviews).files().items()
    yield from _without_script(month_table(site.months).files())
    leader = ranked[0] if ranked else None
    tasks, months = len(site.tasks), len(site.months)
    yield "index.html", site.page("index.html.j2", "index.html", best=leader, tasks=tasks, months=months)
    changes = zip(site.months, [None, *site.months], bars([month.tasks for month in site.months]), strict=False)
    rows = list(changes)[::-1]
    yield "months.html", site.page("months.html.j2", "months.html", months=rows, funnels=site.told.funnels)
    for month in site.months:
        page = f"{RELEASES}/{month.month}.html"
        yield page, site.page("release.html.j2", page, "..", release=release_view(site.dataset, month))
    paged = set[str]()
    for run in site.runs:
        left = site.told.read_run(run)
        if left.changes or left.trajectory:
            paged.add(run.run_id)
            page = f"{RUNS}/{page_of(run)}.html"
            yield page, site.page("run.html.j2", page, "..", view=run_view(run, left), agent=slug_of(run.contestant))
    if site.runs:
        yield from _agent_files(site, best, paged)
    yield from _task_files(site, paged)


def _agent_files(site: _Site, best: Sequence[AgentResult], paged: Collection[str]) -> Iterator[tuple[str, str]]:
    yield from leaderboard(site.results).files().items()
    yield from _without_script(runs_table(site.runs).files())
    priced = [(row.dollars, row.score.value, row) for row in best if row.dollars is not None and row.score]
    pareto = {
        "svg": cost_plot([(dollars, score, row.is_on_front) for dollars, score, row in priced]),
        "agents": [(row.contestant, slug_of(row.contestant)) for _, _, row in priced],
    }
    yield (
        RESULTS,
        site.page(
            "results.html.j2", RESULTS, agents=len(best), pareto=pareto if priced else None, least_tasks=LEAST_TASKS
        ),
    )
    by_agent: dict[str, list[AgentRun]] = {}
    for run in site.runs:
        by_agent.setdefault(run.contestant, []).append(run)
    for row in best:
        table, page = agent_table(row.contestant, by_agent[row.contestant], site.tasks, paged), slug_of(row.contestant)
        yield from table.files().items()
        outcomes = Counter(each["outcome"] for each in table.rows)
        # both at once are for the leaderboard
        mine = [
            each
            for each in site.results
            if each.result.contestant == row.contestant and (each.month == ALL) != (each.stratum == ALL)
        ]
        agent = {
            "result": row,
            "page": page,
            "tasks": len(table.rows),
            "outcomes": {outcome: outcomes[outcome] for outcome in OUTCOMES},
            "scopes": [
                (each, score, share_plot(score.low, score.value, score.high) if score else None)
                for each, score in ((each, each.result.score) for each in mine)
            ],
        }
        yield f"{AGENTS}/{page}.html", site.page("agent.html.j2", f"{AGENTS}/{page}.html", "..", agent=agent)


def _task_files(site: _Site, paged: Collection[str]) -> Iterator[tuple[str, str]]:
    attempts: dict[str, list[AgentRun]] = {}
    for run in sorted(site.runs, key=lambda run: (run.reward is None, -(run.reward or 0.0), run.contestant)):
        attempts.setdefault(run.task_id, []).append(run)
    for task_id, task in site.tasks.items():
        runs = [
            (run, slug_of(run.contestant), page_of(run) if run.run_id in paged else "", _plot_of(run))
            for run in attempts.get(task_id, ())
        ]
        page = f"{TASKS}/{task_id}.html"
        reviews = site.told.reviews.get(task_id, ())
        yield page, site.page("task.html.j2", page, "..", task=task_view(task, site.web), runs=runs, reviews=reviews)


def _plot_of(run: AgentRun) -> Any:
    """The run beside the author; None if it was not timed."""
    low, value, high, author = run.speedup_low, run.speedup, run.speedup_high, run.oracle_speedup
    if value is None or author is None:
        return None
    return attempt_plot(value if low is None else low, value, value if high is None else high, author)


def _without_script(written: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """*written*, for a table that no page shows by a script."""
    return ((name, text) for name, text in written.items() if not name.endswith(".js"))


def _months(dataset: Dataset, months: Sequence[str]) -> list[IndexedMonth]:
    shown = [month for month in dataset.index.months if not months or month.month in months]
    if missing := sorted(set(months) - {month.month for month in shown}):
        raise ConfigurationError(
            f"{', '.join(missing)} was not released to {dataset.name}", remedy="Name months that its card lists"
        )
    return shown


def _make_room(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / DATA).exists():
        raise ConfigurationError(f"{folder} contains something other than a site", remedy="Name an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    # the file by which a site is known comes first: a build that was cut off can be repeated
    (folder / DATA).touch()
    (folder / TASKS).mkdir(exist_ok=True)


def _remove_others(folder: Path, written: set[Path]) -> None:
    """Remove the files of an earlier site that this one does not have."""
    old = [folder / name for name in (RESULTS, "results.js", "results.json", "results.csv", "runs.csv", "runs.json")]
    old += [path for name in (TASKS, AGENTS, RELEASES, RUNS) for path in (folder / name).glob("*.*")]
    for path in old:
        if path not in written:
            path.unlink(missing_ok=True)
    for name in (AGENTS, RUNS):
        if (folder / name).exists() and not any((folder / name).iterdir()):
            (folder / name).rmdir()


def _environment(dataset: Dataset, url: str, *, has_results: bool) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # a path would reveal the machine that wrote the site
    name = dataset.name.removeprefix("hub:") if dataset.is_on_hub else Path(dataset.name).name
    pages = [page for page in PAGES if has_results or page[0] != RESULTS]
    environment.globals.update({"dataset": name, "url": url.rstrip("/"), "pages": pages})
    return environment
