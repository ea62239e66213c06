"""Tasks without effect in real repositories: production images, and edits without a measurable effect."""

from __future__ import annotations

import random
import sys
import tomllib
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from aa_tasks import AaTask, commit, diff, git
from found_workloads import kept_in
from yield_of_builds import laboratory_of, listed

from formulacode_dagster.building.declarations.needs_of_tests import is_of_tests
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.sources.offline.side_file import RepositoryFacts
from sandbox.github.tracker import read_tracker

PULL_REQUESTS = Path(__file__).with_name("yield_pull_requests.toml")
PYTHON_KINDS = ("py comments", "py helper")
C_KINDS = ("c unrelated function", "c rebuild")
MOST_TRIES = 4
"""Pull requests of a repository that are tried until one has an image."""
NOT_BUILT = frozenset({"benchmarks", "benchmark", "bench", "asv_bench", "doc", "docs", "examples", "tools", "vendor"})


@dataclass(frozen=True)
class MirrorImage:
    """An image of a mirror's repository, and its timed benchmarks."""

    image: BuiltImage
    suite: SuiteFiles
    names: tuple[str, ...] = ()
    """The workloads that were found; none for any of the suite."""


class Mirrors:
    """The folder of bare mirrors owner/name.git, and the workloads that were found for pull requests of them."""

    def __init__(self, folder: Path, found: Path | None = None) -> None:
        self._folder = folder.absolute()
        self._found = kept_in(found) if found is not None else {}
        self._laboratory, self.engine = laboratory_of(self._folder, None, every_source=False)
        self._images: dict[str, MirrorImage | None] = {}

    def kinds(self) -> dict[str, tuple[str, ...]]:
        """Kinds of edits for each repository, by its file types; none without any.

        Pull requests whose workloads were found take those of their repository.
        """
        told = {}
        for path in sorted(self._folder.glob("*/*.git")):
            suffixes = {PurePosixPath(name).suffix for name in sources(path, "HEAD")}
            kinds = (*(PYTHON_KINDS if ".py" in suffixes else ()), *(C_KINDS if ".c" in suffixes else ()))
            if kinds:
                told[f"{path.parent.name}/{path.stem}"] = kinds
        return told | {item: told[name] for item in self._found if (name := item.partition("#")[0]) in told}

    def image(self, repository: str) -> MirrorImage | None:
        """Return the image of the base of one of its pull requests, with its suite; None, with a message, if none has
        one.
        """
        if repository not in self._images:
            items = [repository] if repository in self._found else self._items(repository)
            self._images[repository] = next(filter(None, map(self._built, items)), None)
            if self._images[repository] is None:
                print(f"{repository} is left out", file=sys.stderr, flush=True)
        return self._images[repository]

    def patch(self, task: AaTask, image: BuiltImage, generator: random.Random, folder: Path) -> bytes:
        """An edit of one source of the base that changes nothing; *folder* is scratch."""
        mirror, base = self._folder / f"{task.repository.partition('#')[0]}.git", image.spec.base_sha
        suffix = ".c" if task.is_compiled else ".py"
        paths = [path for path in sources(mirror, base) if path.endswith(suffix)]
        package = image.spec.package_name.partition(".")[0]
        path = generator.choice([path for path in paths if package in PurePosixPath(path).parts] or paths)
        before = git(mirror, "show", f"{base}:{path}").decode("utf-8", "surrogateescape")
        commit(folder, {path: before})
        changed: bytes = diff(folder, {path: unnoticed(task.kind, before, generator)})
        return changed

    def _built(self, item: str) -> MirrorImage | None:
        attempts: list[BuildAttempt] = []
        try:
            mirror, pr, _ = self._laboratory.change(item)
            task, _ = self._laboratory.task(mirror, pr, self._laboratory.planned(mirror, pr, ()))
            image, _ = build_until_it_holds(self.engine, task, run_id="bench", keep=attempts.append)
        except (ItemFailure, Rejection) as end:
            print(f"{item} has no image: {end}", file=sys.stderr, flush=True)
            return None
        found = self._found.get(item)
        return MirrorImage(image, found.laid, found.names) if found else MirrorImage(image, task.suite)

    def _items(self, repository: str) -> list[str]:
        """A few pull requests: the first of the list of `make yield`, or the newest that were merged."""
        entries = tomllib.loads(PULL_REQUESTS.read_text("utf-8"))["repository"]
        chosen = [entry for entry in entries if entry["name"] == repository]
        if chosen:
            return list(listed(chosen, self._folder))[:MOST_TRIES]
        path = self._folder / f"{repository}.git"
        tracker = read_tracker(path, repository, zlib.crc32(repository.encode()), RepositoryFacts())
        merged = [(pr.merged_at, pr.number) for pr in tracker.pull_requests.values() if pr.merged_at is not None]
        return [f"{repository}#{number}" for _, number in sorted(merged, reverse=True)[:MOST_TRIES]]


def sources(mirror: Path, revision: str) -> list[str]:
    """Python and C files of a package at *revision*: no tests, no benchmarks, nothing that only a build reads."""
    listing = git(mirror, "ls-tree", "-r", "-z", revision).decode("utf-8", "surrogateescape").split("\0")
    entries = [entry.partition("\t") for entry in listing if entry.startswith("100")]
    paths = [PurePosixPath(path) for _, _, path in entries]
    return [
        str(path)
        for path in paths
        if path.suffix in {".py", ".c"}
        and len(path.parts) > 1
        and NOT_BUILT.isdisjoint(path.parts)
        and not is_of_tests(path)
    ]


def unnoticed(kind: str, before: str, generator: random.Random) -> str:
    """*before* with something at its end that nothing runs."""
    number = generator.randrange(10**6)
    loop = "for (long i = 0; i < n; i++) n ^= n << 7; return n;"
    added = {
        "py comments": "".join(f"# {generator.random()}\n" for _ in range(generator.randrange(1, 9))),
        "py helper": f"\n\ndef unused_{number}(n):\n    return [i for i in range(n)]\n",
        "c unrelated function": f"long fc_spare{number}(long n) {{ {loop} }}\n",
        "c rebuild": f'const char fc_built{number}[] = "{generator.random()}";\n',
    }[kind]
    return before + ("" if before.endswith("\n") or not before else "\n") + added
