"""The world of `bench/intake.py`: repositories, the pull requests that one month merged in them, and the truth.

Everything follows from the seed. Repositories are written by `git fast-import`, data outside git goes to
`sandbox.json`, and the expected result to `truth.json`: written from the plan, never read back from an API.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from formulacode_dagster.models.month import Month

MONTH = Month.parse("2026-02")
START, END = int(MONTH.start.timestamp()), int(MONTH.end.timestamp())
DAY = 86_400
GITHUB = "GitHub <noreply@github.com>"
LABELS = [f"area: {n:02}" for n in range(48)]
WORDS = ["cache", "index", "kernel", "chunk", "mask", "dtype", "buffer", "slice", "merge", "sort", "parse", "view"]
LINES = ["It did the same work for every row.", "Measured with asv on a quiet machine.", "See the discussion below."]


@dataclass(frozen=True)
class WorldSize:
    """Size of a world. `merged` are those of the month, in all repositories that remain reachable."""

    repositories: int = 100
    merged: int = 10_000
    largest: int = 5_200
    files: int = 3_000
    seed: int = 20260201

    @property
    def key(self) -> str:
        """Names the world: this code and its numbers."""
        code = Path(__file__).read_bytes() + json.dumps(asdict(self)).encode()
        return hashlib.sha256(code).hexdigest()[:12]


@dataclass
class Landing:
    """A pull request that is merged, some day, or never. Times are seconds since 1970."""

    opened: int
    merged: int | None
    labels: list[str] = field(default_factory=list)
    closing: int = 0
    files: int = 1
    two_parents: bool = False
    number: int = 0
    issues: list[int] = field(default_factory=list)
    title: str = ""


@dataclass(frozen=True)
class Known:
    """A repository at discovery, and its later state."""

    name: str
    name_now: str
    vanished: bool
    pulls: dict[int, dict[str, Any]]
    """By number: the expected facts of each pull request merged in the month."""


@dataclass(frozen=True)
class World:
    """A folder to serve, and the truth about it."""

    folder: Path
    size: WorldSize
    repositories: tuple[Known, ...]

    @property
    def expected(self) -> int:
        """Pull requests to be found; those of vanished repositories cannot be."""
        return sum(len(repository.pulls) for repository in self.repositories if not repository.vanished)

    def as_discovered(self) -> None:
        """No repository is renamed or gone yet."""
        self._shape(renamed=False, vanished=False)

    def as_taken_in(self) -> None:
        """Changes between discovery and intake: one repository was renamed, one is gone."""
        self._shape(renamed=True, vanished=True)

    def _shape(self, *, renamed: bool, vanished: bool) -> None:
        served = self.folder / "served"
        facts = json.loads((self.folder / "facts.json").read_text())
        shown = {}
        for repository in self.repositories:
            now = repository.name_now if renamed else repository.name
            for name in {repository.name, repository.name_now} - {now}:
                if (served / f"{name}.git").exists():
                    (served / f"{now}.git").parent.mkdir(exist_ok=True)
                    (served / f"{name}.git").rename(served / f"{now}.git")
            shown[now] = facts[repository.name] | {"is_gone": vanished and repository.vanished}
            if now != repository.name:
                shown[now]["former_names"] = [repository.name]
        partial = served / "sandbox.json.partial"
        partial.write_text(json.dumps({"repositories": shown}))
        partial.replace(served / "sandbox.json")


def open_world(home: Path, size: WorldSize) -> World:
    """The world of *size*, generated under *home* unless it is there already."""
    folder = home / f"intake-{size.key}"
    if not (folder / "truth.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _generate(folder, size)
    truth = json.loads((folder / "truth.json").read_text())
    repositories = tuple(
        Known(**landing | {"pulls": {int(number): facts for number, facts in landing["pulls"].items()}})
        for landing in truth
    )
    return World(folder, size, repositories)


def _generate(folder: Path, size: WorldSize) -> None:
    (folder / "served").mkdir(parents=True)
    chance = random.Random(size.seed)  # noqa: S311 - a reproducible world, no secret
    truth, facts = [], {}
    for index, merged in enumerate(_shares(size)):
        name = f"lab{index % 9}/project{index:03}"
        landings = _plan(chance, merged, special=index)
        if index == 0 and size.files:
            next(landing for landing in landings if _in_month(landing)).files = size.files
        issues = _number(landings, name)
        _write(folder / "served" / f"{name}.git", name, landings)
        facts[name] = {
            "is_archived": index in (2, 3),
            "stars": 600 + index,
            "size_kb": 100 + merged,
            "issues": issues,
            "pull_requests": [
                {"number": landing.number, "labels": landing.labels} for landing in landings if landing.labels
            ],
        }
        pulls = {landing.number: _told(landing) for landing in landings if _in_month(landing)}
        now = "lab9/renamed" if index == 4 else name
        truth.append(asdict(Known(name, now, index == 5, pulls)))
    (folder / "facts.json").write_text(json.dumps(facts))
    (folder / "truth.json").write_text(json.dumps(truth))


def _shares(size: WorldSize) -> list[int]:
    """Merged in the month, by repository: one large, the rest from a few to some hundred. The sixth vanishes."""
    chance = random.Random(size.seed + 1)  # noqa: S311 - as above
    weights = [chance.paretovariate(1.1) for _ in range(size.repositories - 2)]
    rest = size.merged - size.largest
    shares = [1 + int((rest - len(weights)) * min(weight, 12) / sum(min(w, 12) for w in weights)) for weight in weights]
    shares[0] += rest - sum(shares)
    return [shares[0], size.largest, *shares[1:4], 40, *shares[4:]]


def _plan(chance: random.Random, merged: int, *, special: int) -> list[Landing]:
    """The month's merges, opened up to two years before; and a longer past, of which most has long been merged."""
    found = []
    for position in range(merged):
        # A bot merges in bursts: a tenth of the month's merges of a large project fall into one hour.
        burst = merged > 1_000 and position % 10 == 0
        moment = START + 9 * DAY + chance.randrange(3_600) if burst else chance.randrange(START, END)
        landing = Landing(moment - _lag(chance), moment, two_parents=position % 10 == 3)
        landing.closing = 14 if special < 3 and position == 1 else int(chance.random() < 0.12)
        landing.labels = LABELS[: 40 if special < 3 and position == 2 else chance.randrange(3)]
        found.append(landing)
    for _ in range(min(3_000, max(160, 2 * merged))):
        opened = START - chance.randrange(1, 300 * DAY)
        found.append(Landing(opened, min(START - 1, opened + _lag(chance))))
    for _ in range(max(2, merged // 12)):
        opened = START - 20 * DAY + chance.randrange(48 * DAY)
        found.append(Landing(opened, None if chance.random() < 0.5 else END + chance.randrange(20 * DAY)))
    # The exact edges of the window, and the seconds next to it.
    edges = {0: START, 1: END - 1} if merged > 1 else {}
    for position, moment in edges.items():
        found[position].merged = moment
        found[position].opened = min(found[position].opened, moment)
    found += [Landing(START - DAY, START - 1), Landing(START, END)]
    return found


def _lag(chance: random.Random) -> int:
    """From opening to merging: half within three days, a quarter within a month, a quarter up to two years."""
    kind = chance.random()
    if kind < 0.5:
        return chance.randrange(600, 3 * DAY)
    return chance.randrange(3 * DAY, 30 * DAY) if kind < 0.75 else chance.randrange(30 * DAY, 730 * DAY)


def _in_month(landing: Landing) -> bool:
    return landing.merged is not None and START <= landing.merged < END


def _number(landings: list[Landing], name: str) -> list[dict[str, Any]]:
    """Numbers in order of opening, an issue right before the pull request that closes it."""
    issues: list[dict[str, Any]] = []
    number = 0
    for landing in sorted(landings, key=lambda each: each.opened):
        for _ in range(landing.closing):
            number += 1
            landing.issues.append(number)
            opened = datetime.fromtimestamp(landing.opened - 60, UTC).isoformat()
            body = f"{WORDS[number % len(WORDS)].title()} takes too long in {name}."
            issues.append(
                {"number": number, "title": f"Slow {number}", "body": body, "author": "user1", "created_at": opened}
            )
        number += 1
        landing.number = number
        picked = " ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 3, 7))
        landing.title = f"{picked.capitalize()} {number}"
    return issues


def _told(landing: Landing) -> dict[str, Any]:
    return {
        "title": landing.title,
        "merged_at": landing.merged,
        "labels": sorted(landing.labels),
        "issues": sorted(landing.issues),
        "changed_files": landing.files,
    }


def _write(path: Path, name: str, landings: list[Landing]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _git("init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(path))
    with (path / "config").open("a") as config:
        config.write("[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n[gc]\n\tauto = 0\n")
    _git("-C", str(path), "fast-import", "--quiet", stdin=b"".join(_stream(name, landings)))
    _git("-C", str(path), "pack-refs", "--all")


def _stream(name: str, landings: list[Landing]) -> Iterator[bytes]:
    config = json.dumps({"version": 1, "project": name, "benchmark_dir": "benchmarks"}).encode()
    yield _commit(1, "Begin", START - 900 * DAY, START - 900 * DAY, "owner", {"asv.conf.json": config})
    mark, tip = 1, 1
    for landing in sorted(landings, key=lambda each: (each.merged or each.opened, each.number)):
        author = f"user{landing.number % 37}"
        changed = {f"src/part{landing.number % 50}/file{n}.py": _content(landing, n) for n in range(landing.files)}
        body = "\n".join([LINES[landing.number % 3], *(f"Fixes #{number}" for number in landing.issues)])
        if landing.merged is None or landing.two_parents:
            mark += 1
            yield _commit(mark, f"Try {landing.number}", landing.opened, landing.opened, author, changed, tip)
            head = mark
            yield b"reset refs/pull/%d/head\nfrom :%d\n\n" % (landing.number, head)
            if landing.merged is not None:
                mark += 1
                said = f"Merge pull request #{landing.number} from {author}/topic\n\n{landing.title}\n\n{body}"
                yield _commit(mark, said, landing.opened, landing.merged, author, changed, tip, head)
                tip = mark
        else:
            mark += 1
            said = f"{landing.title} (#{landing.number})\n\n{body}"
            yield _commit(mark, said, landing.opened, landing.merged, author, changed, tip)
            tip = mark
    yield b"reset refs/heads/main\nfrom :%d\n\n" % tip


def _content(landing: Landing, n: int) -> bytes:
    return f"# {landing.number} {n}\n".encode() + b"".join(b"x%d = %d\n" % (i, landing.number * i) for i in range(12))


def _commit(
    mark: int, message: str, authored: int, committed: int, author: str, files: dict[str, bytes], *parents: int
) -> bytes:
    data = message.encode()
    lines = [
        b"commit refs/heads/main",
        b"mark :%d" % mark,
        f"author {author} <{author}@users.noreply.github.com> {authored} +0000".encode(),
        f"committer {GITHUB} {committed} +0000".encode(),
        b"data %d\n%s" % (len(data), data),
        *(b"%s :%d" % (b"merge" if index else b"from", parent) for index, parent in enumerate(parents)),
    ]
    for path, content in files.items():
        lines.append(f"M 100644 inline {path}\n".encode() + b"data %d\n%s" % (len(content), content))
    return b"\n".join(lines) + b"\n"


def _git(*arguments: str, stdin: bytes = b"") -> None:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], input=stdin, env=environment, check=True, capture_output=True)
