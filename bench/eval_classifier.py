"""How well pull requests are selected: the symbolic filter on labelled commits and on whole months.

    python -m bench.eval_classifier [--repositories DIR]

DIR holds bare mirrors as owner/name.git; without it the platform's own mirrors are used, and cloned where they are not
there. The last line is JSON. Ends with 1 when the filter misses its targets.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.git.history import Mirror
from formulacode_dagster.git.mirror import MirrorCache
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.offline.mirrors import mirrors_in
from resources.mirrors import clone_url
from resources.settings import read_settings

from . import filter_recall
from .labelled import Entry, read_examples, read_list


@dataclass(frozen=True)
class Mirrors:
    """Where the repositories of the list are."""

    folder: Path
    names: frozenset[str]
    of: Callable[[str], Mirror]


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, help="folder of bare mirrors owner/name.git")
    entries = read_list()
    mirrors = mirrors_of(parser.parse_args().repositories, entries)
    listed = [entry for entry in entries if entry.repository in mirrors.names]
    print(f"{len(listed)} commits of {len({entry.repository for entry in listed})} repositories", file=sys.stderr)
    examples = list(read_examples(listed, mirrors.of))
    monthly = [name for name in filter_recall.REPOSITORIES if name in mirrors.names]
    merged = list(filter_recall.screen_months(mirrors.folder, monthly, mirrors.of))
    figures = filter_recall.report(examples, merged)
    print(json.dumps({"filter": figures}))
    return 0 if figures["reached"] else 1


def mirrors_of(folder: Path | None, entries: Sequence[Entry]) -> Mirrors:
    """The mirrors of *folder*, those that the list wants and that are not there named; without one, the platform's own.

    Raises ConfigurationError when *folder* has none of them.
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
