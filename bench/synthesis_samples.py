"""Input of `bench-synthesis`: pull requests of a folder of mirrors, or of samples and three that no rule repairs."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from formulacode_dagster.models.items import Stage
from formulacode_dagster.sources.offline.side_file import RepositoryFacts
from sandbox.github.tracker import read_tracker
from sandbox.samples.catalog import catalog
from sandbox.samples.generate import generate

LISTS = tuple(map(Path(__file__).with_name, ("yield_pull_requests.toml", "synthesis_pull_requests.toml")))
_BEFORE_IMAGES = (Stage.REPOSITORIES, Stage.PULL_REQUESTS, Stage.CLASSIFICATIONS, Stage.PROBLEM_STATEMENTS)
_PACKAGE = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    f'[project]\nname = "NAME"\nversion = "1.0"\nrequires-python = "==3.{sys.version_info.minor}.*"\n'
    '[tool.setuptools]\npackages = ["NAME"]\n',
    "NAME/__init__.py": "def total(n):\n    return sum(range(n))\n",
    "benchmarks/__init__.py": "",
    "benchmarks/bench_total.py": "import NAME\n\n\ndef time_total():\n    NAME.total(1000)\n",
    "asv.conf.json": '{"version": 1, "project": "NAME", "repo": ".", "benchmark_dir": "benchmarks"}\n',
}
_SETUP = {
    "keyed": "import os\nfrom setuptools import setup\n\nos.environ['KEYED_BUILD']\nsetup()\n",
    "hopeless": "raise SystemExit('there is no way')\n",
}
"""`setup.py` by repository: one that a variable mends, which no rule knows of, and one that nothing mends."""


def samples(folder: Path) -> tuple[Path, list[str]]:
    """A folder of mirrors made in *folder*, and pull requests of it: the samples' and those that no rule mends."""
    made = generate(folder / "samples")
    wanted = [pull.item for pull in catalog() if pull.expected and pull.expected.last_stage not in _BEFORE_IMAGES]
    for name, setup in _SETUP.items():
        _write(made.folder / "bench" / f"{name}.git", name, setup)
    firsts = [next(items) for _, items in groupby(sorted(wanted), key=lambda item: item.partition("#")[0])]
    return made.folder, [*firsts, "bench/keyed#1", "bench/keyed#2", "bench/hopeless#1"]


def listed(repositories: Path, per_repository: int) -> Iterator[str]:
    """For each mirror in *repositories*, pull requests of the lists next to this file, else its newest ones.

    Of a list they are taken from both its ends in turn: the newest, the oldest, the next.
    """
    texts = [path.read_text("utf-8") for path in LISTS]
    entries = {entry["name"]: entry for text in texts for entry in tomllib.loads(text)["repository"]}
    for path in sorted(repositories.glob("*/*.git")):
        name = f"{path.parent.name}/{path.stem}"
        if name in entries:
            numbers = _from_both_ends(entries[name]["pull_requests"])
        else:
            tracker = read_tracker(path, name, zlib.crc32(name.encode()), RepositoryFacts())
            numbers = [pull.number for pull in reversed(tracker.by_merge)]
        yield from (f"{name}#{number}" for number in numbers[:per_repository])


def _from_both_ends(numbers: Sequence[int]) -> list[int]:
    return [numbers[-1 - place // 2 if place % 2 else place // 2] for place in range(len(numbers))]


def _write(mirror: Path, name: str, setup: str) -> None:
    """A bare repository with two pull requests, squashed; its commits have fixed names and dates."""
    work = mirror.with_suffix("")
    files = {path.replace("NAME", name): text.replace("NAME", name) for path, text in _PACKAGE.items()}
    _git(mirror.parent, "init", "--quiet", "--initial-branch", "main", str(work))
    for day, (message, changed) in enumerate(
        [
            ("start", {**files, "setup.py": setup}),
            ("Sum faster (#1)", {f"{name}/__init__.py": "def total(n):\n    return n * (n - 1) // 2\n"}),
            ("Sum in one step (#2)", {f"{name}/__init__.py": "def total(n):\n    return (n * n - n) // 2\n"}),
        ],
        start=1,
    ):
        for path, text in changed.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
        _git(work, "add", "--all")
        _git(work, "commit", "--quiet", "--message", message, moment=f"2026-02-0{day}T12:00:00Z")
    _git(mirror.parent, "clone", "--quiet", "--bare", str(work), str(mirror))


def _git(folder: Path, *arguments: str, moment: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    names |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in names.items()}
    dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment} if moment else {}
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **names, **dates}, check=True)
