"""Accuracy of the selection: the filter and the classifier on labelled commits, the filter on months too.

python -m bench.eval_classifier [--repositories DIR] [--mode diff_only …] [--only filter|classifier]

DIR holds bare mirrors as owner/name.git; without it the platform's own mirrors are used, and cloned if missing. The
model is LLM_MODEL, and cached answers are not paid for again; without a model, the sandbox's rules answer: the
baseline. The second judge is FC_CLASSIFICATION_JUDGE, else the same model with the other prompt order; both judge every
commit. Results are stored in the database, for the check `accuracy_on_labelled_set`. The last line is JSON. Ends with 1
if the filter misses its targets.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError
from formulacode_dagster.operating.store.completions import StoredCompletions
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.evaluations import add_evaluation
from formulacode_dagster.sources.git.history import Mirror
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.offline.mirrors import mirrors_in
from resources.database import open_database
from resources.mirrors import clone_url
from resources.settings import read_settings

from . import filter_recall
from .classifier_asking import asker
from .classifier_modes import Mode, questions
from .classifier_report import evaluation, report
from .classifier_scores import agreement
from .labelled import Entry, Example, read_examples, read_list


@dataclass(frozen=True)
class Mirrors:
    """Mirrors of the list's repositories."""

    folder: Path
    names: frozenset[str]
    of: Callable[[str], Mirror]


FILTER, CLASSIFIER = "filter", "classifier"


def main() -> int:
    """Measure, and print the figures: 1 if a target is missed, or a resource is unavailable."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, help="folder of bare mirrors owner/name.git")
    parser.add_argument("--mode", action="append", choices=list(Mode), help="beside full; all where none is named")
    parser.add_argument("--only", choices=(FILTER, CLASSIFIER), help="measure nothing else")
    options = parser.parse_args()
    try:
        return measure(options)
    except FormulaCodeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def measure(options: argparse.Namespace) -> int:
    """The work of `main`, with its *options*; raises FormulaCodeError."""
    entries = read_list()
    mirrors = mirrors_of(options.repositories, entries)
    listed = [entry for entry in entries if entry.repository in mirrors.names]
    print(f"{len(listed)} commits of {len({entry.repository for entry in listed})} repositories", file=sys.stderr)
    examples = list(read_examples(listed, mirrors.of))
    figures: dict[str, object] = {"commits": len(examples)}
    reached = True
    if options.only != CLASSIFIER:
        monthly = [name for name in filter_recall.REPOSITORIES if name in mirrors.names]
        merged = list(filter_recall.screen_months(mirrors.folder, monthly, mirrors.of))
        figures[FILTER] = passed = filter_recall.report(examples, merged)
        reached = bool(passed["reached"])
    if options.only != FILTER:
        modes = list(dict.fromkeys((Mode.FULL, *(options.mode or Mode))))
        with closing(open_database()) as database:
            figures[CLASSIFIER] = asyncio.run(evaluate(examples, modes, database, is_whole=len(listed) == len(entries)))
    print(json.dumps(figures))
    return 0 if reached else 1


async def evaluate(
    examples: Sequence[Example], modes: Sequence[Mode], database: Database, *, is_whole: bool = True
) -> dict[str, object]:
    """Ask the first judge in each of *modes*, and the second; print and return the result.

    It is stored if it *is_whole*: a part of the list is no valid result for months.
    """
    async with asker(StoredCompletions(database)) as judges:
        answers = {mode: await judges.ask(questions(examples, mode)) for mode in modes}
        second = await judges.ask_second(questions(examples, Mode.FULL))
    together = agreement(answers[Mode.FULL].verdicts, second.verdicts)
    figures = report(judges.model, answers, judges.second, together)
    if not is_whole:
        print("not kept: some of the list was left out", file=sys.stderr)
        return figures
    with database.transaction() as connection:
        add_evaluation(connection, evaluation(judges.model, answers, together))
    return figures


def mirrors_of(folder: Path | None, entries: Sequence[Entry]) -> Mirrors:
    """The mirrors of *folder*, those that the list wants and that are not there named; without one, the platform's own.

    Raises ConfigurationError if *folder* has none of them.
    """
    wanted = frozenset(entry.repository for entry in entries)
    if folder is None:
        settings = read_settings()
        cache = MirrorCache(settings.mirrors_root, clone_url(settings))
        return Mirrors(settings.mirrors_root, wanted, cache.ensure)
    paths = mirrors_in(folder)
    missing = sorted(wanted - paths.keys())
    if len(missing) == len(wanted):
        raise ConfigurationError(f"{folder} has none of the {len(wanted)} repositories", remedy="Mirror them there")
    if missing:
        print(f"not in {folder}, and left out: {', '.join(missing)}", file=sys.stderr)
    return Mirrors(folder, wanted & paths.keys(), lambda name: Mirror(name, paths[name]))


if __name__ == "__main__":
    sys.exit(main())
