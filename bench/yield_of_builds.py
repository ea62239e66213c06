"""How many real performance pull requests are built, verified and timed with no model at all.

Each pull request of a list goes through the platform's own parts: its change from the mirror, the plan of its
environment, the build, the verification by the host, and one run of its benchmarks on the base. Every loss is shown
with its stage and reason.

    python bench/yield_of_builds.py --repositories DIR --pull-requests bench/yield_pull_requests.toml

DIR holds bare mirrors as owner/name.git. The engine and its limits are those of the settings (FC_ENGINE …).
The last line is JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from formulacode_dagster.environments.plan import plan_environment
from formulacode_dagster.environments.suite_files import SuiteFiles, first_suite, later_suites
from formulacode_dagster.git.mirror import Mirror, MirrorCache
from formulacode_dagster.images.build import build_task_image
from formulacode_dagster.images.engine import Engine
from formulacode_dagster.images.spec import plan_build
from formulacode_dagster.measurement.changed_code import changed_code
from formulacode_dagster.measurement.patch import changed_files
from formulacode_dagster.measurement.relevance import executes
from formulacode_dagster.measurement.remote import Remote
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import MergedPullRequest, PullRequest
from formulacode_dagster.sandbox.github.tracker import read_tracker
from formulacode_dagster.sandbox.side_file import RepositoryFacts

if TYPE_CHECKING:
    from resources.containers import ContainersResource

SURVEY_SECONDS = 100.0
DONE = "timed"


@dataclass(frozen=True)
class Trial:
    """How far one pull request came: the stage it ended in, and why."""

    item: str
    merged: str = ""
    stage: str = ""
    reason: str = ""
    detail: str = ""
    log: str = field(default="", repr=False)
    python: str = ""
    plan_seconds: float = 0.0
    build_seconds: float = 0.0
    image_mb: float = 0.0
    suite: str = ""
    discovered: int = 0
    timed: int = 0
    aimed: int = 0

    @property
    def is_timed(self) -> bool:
        """Whether it was built, verified, and at least one benchmark gave a time."""
        return self.stage == DONE


def main() -> None:
    """Try every pull request of the list, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, required=True, help="folder of bare mirrors owner/name.git")
    parser.add_argument("--pull-requests", type=Path, default=Path(__file__).with_name("yield_pull_requests.toml"))
    parser.add_argument("--only", action="append", default=[], help="owner/repo or owner/repo#123; may be repeated")
    parser.add_argument("--at-once", type=int, default=1, help="pull requests worked on at the same time")
    parser.add_argument("--logs", type=Path, help="folder for the whole log of every failure")
    options = parser.parse_args()
    repositories = options.repositories.absolute()
    wanted = [item for item in listed(options.pull_requests, repositories) if is_wanted(item, options.only)]
    from resources.defaults import default_resources

    containers: ContainersResource = default_resources()["containers"]
    engine, why = containers.process_config_and_initialize().chosen()
    print(why, file=sys.stderr)
    laboratory = Laboratory(repositories, containers.process_config_and_initialize(), engine)

    def trial(item: str) -> Trial:
        print(f"{item} …", file=sys.stderr, flush=True)
        result = laboratory.trial(item)
        print(f"{item}: {result.stage} {result.reason} {result.detail[:200]}", file=sys.stderr, flush=True)
        if options.logs is not None and result.log:
            options.logs.mkdir(parents=True, exist_ok=True)
            (options.logs / f"{item.replace('/', '__').replace('#', '-')}.log").write_text(result.log, "utf-8")
        return result

    with ThreadPoolExecutor(options.at_once) as pool:
        trials = list(pool.map(trial, wanted))
    print("\n".join(table(trials)))
    print(json.dumps(figures(trials)))


def listed(path: Path, repositories: Path) -> Iterator[str]:
    """The items of the list whose repository is in the folder; says which ones are not."""
    for entry in tomllib.loads(path.read_text("utf-8"))["repository"]:
        if not (repositories / f"{entry['name']}.git").is_dir():
            print(f"{entry['name']} is not in {repositories}: left out", file=sys.stderr)
            continue
        yield from (f"{entry['name']}#{number}" for number in entry["pull_requests"])


def is_wanted(item: str, only: list[str]) -> bool:
    """Whether *item* is asked for by itself, by its repository, or because nothing else is."""
    return not only or item in only or item.partition("#")[0] in only


class Laboratory:
    """Everything a trial needs."""

    def __init__(self, repositories: Path, containers: ContainersResource, engine: Engine) -> None:
        self._repositories = repositories
        self._containers = containers
        self._engine = engine
        self._cache = MirrorCache(Path(containers.home) / "mirrors", f"file://{repositories}")
        self._resolver = containers.resolver()

    def trial(self, item: str) -> Trial:
        """Take *item* as far as it goes."""
        trial = Trial(item)
        try:
            for reached in self._stages(item):
                trial = reached
        except Rejection as end:
            return replace(trial, reason=end.reason.value, detail=end.detail, log=end.log or end.detail)
        except ItemFailure as end:
            return replace(trial, reason=end.kind, detail=str(end), log=f"{end}\n\n{end.log or end.log_tail}")
        return trial

    def _stages(self, item: str) -> Iterator[Trial]:
        """The trial as it stands at the start of each stage, and at the end."""
        trial = Trial(item, stage="change")
        yield trial
        facts = self._facts(item)
        month = Month.parse(facts.month)
        mirror = self._cache.ensure(facts.repository, commits=(facts.merge_commit_sha, facts.head_sha))
        change, patch = mirror.change(facts)
        pr = PullRequest(facts=facts, change=change)
        trial = replace(trial, stage="environment", merged=facts.merged_at.date().isoformat())
        yield trial
        started = time.perf_counter()
        environment = plan_environment(
            mirror, pr, month=month, interpreters=self._engine.interpreters(), resolver=self._resolver
        )
        seconds = time.perf_counter() - started
        trial = replace(trial, stage="image", python=environment.python, plan_seconds=round(seconds, 1))
        yield trial
        anchor = mirror.anchor(change.base_sha, month.start)
        spec = plan_build(pr=pr, environment=environment, anchor_sha=anchor, os_image=self._containers.os_image)
        suite = first_suite(mirror, pr, spec.benchmark_dir, suite_sha=environment.suite_sha)
        image, _ = build_task_image(self._engine, spec, mirror=mirror.path, pr=pr, run_id="yield", suite=suite)
        trial = replace(
            trial,
            stage="timing",
            build_seconds=round(image.build_seconds, 1),
            image_mb=round(image.size_bytes / 1e6, 1),
            discovered=len(image.benchmarks),
        )
        yield trial
        yield self._timed(trial, image, mirror, pr, patch, suite)

    def _facts(self, item: str) -> MergedPullRequest:
        name, _, number = item.partition("#")
        tracker = read_tracker(self._repositories / f"{name}.git", name, zlib.crc32(name.encode()), RepositoryFacts())
        found = tracker.pull_requests.get(int(number))
        if found is None or found.merged_at is None or found.merge_sha is None:
            raise ItemFailure("vanished", f"the history of {name} holds no merge of #{number}")
        return MergedPullRequest(
            month=Month.of(found.merged_at).key,
            repository_id=found.repository_id,
            repository=name,
            number=found.number,
            title=found.title,
            body=found.body,
            created_at=found.created_at,
            merged_at=found.merged_at,
            base_ref=found.base_ref,
            head_sha=found.head_sha,
            merge_commit_sha=found.merge_sha,
            commit_count=found.commit_count,
        )

    def _timed(
        self, trial: Trial, image: BuiltImage, mirror: Mirror, pr: PullRequest, patch: bytes, first: SuiteFiles
    ) -> Trial:
        """Run every benchmark once on the base; a later suite is tried when none executes what the patch changes."""
        files = changed_files(patch)
        paths = {path for one in files for path in (one.base_path, one.oracle_path) if path}
        folder = image.spec.benchmark_dir
        commits = (pr.change.base_sha, pr.facts.merge_commit_sha)
        base, oracle = ({path: mirror.read(commit, path) or b"" for path in paths} for commit in commits)
        tried: list[Trial] = []
        with self._engine.session(image, run_id="yield") as session:
            remote = Remote(session, benchmark_dir=folder)
            names = changed_code(files, base=base, oracle=oracle, benchmark_dir=folder).names
            for suite in itertools.chain([first], later_suites(mirror, pr, folder, names)):
                if suite.files is not None:
                    remote.write(suite.files)
                survey = remote.survey(
                    basenames={PurePosixPath(path).name for path in paths},
                    limit=float(self._containers.limits.benchmark_seconds),
                    budget=SURVEY_SECONDS,
                )
                changed = changed_code(
                    files, base=base, oracle=oracle, benchmark_dir=folder, extensions=survey.extensions
                )
                ran = [one for one in survey.benchmarks if one.outcome == "ran"]
                aimed = sum(executes(one, changed.base) for one in ran) or (-1 if changed.untraceable else 0)
                words = [f"{one.name}: {one.outcome} {one.message}" for one in survey.benchmarks if one not in ran]
                words += [f"{name} lost: {message}" for name, message in survey.lost.items()]
                tried.append(
                    replace(trial, stage=DONE, suite=suite.name, timed=len(ran), aimed=aimed, log="\n".join(words))
                )
                if ran and aimed:
                    break
        best = max(tried, key=lambda one: (one.timed > 0, one.aimed != 0, one.timed))
        if not best.timed:
            raise ItemFailure("benchmarks_fail", "no benchmark gave a time", log_tail=best.log)
        return best


def table(trials: Sequence[Trial]) -> Iterator[str]:
    """One row per pull request, in Markdown."""
    columns = (
        "pull request",
        "merged",
        "Python",
        "ended in",
        "why",
        "plan s",
        "build s",
        "MB",
        "found",
        "timed",
        "aimed",
    )
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for one in trials:
        why = f"{one.reason} {one.detail[:120]}".strip().replace("|", "/").replace("\n", " ")
        aimed = "compiled" if one.aimed < 0 else str(one.aimed)
        cells = (one.item, one.merged, one.python, one.stage, why, one.plan_seconds, one.build_seconds, one.image_mb)
        yield f"| {' | '.join(map(str, (*cells, one.discovered, one.suite, one.timed, aimed)))} |"


def figures(trials: Sequence[Trial]) -> dict[str, object]:
    """The totals."""
    timed = [one for one in trials if one.is_timed]
    return {
        "pull_requests": len(trials),
        "repositories": len({one.item.partition("#")[0] for one in trials}),
        "built_and_timed": len(timed),
        "share_timed": round(len(timed) / len(trials), 3) if trials else 0.0,
        "timed_with_a_benchmark_aimed_at_the_change": sum(one.aimed > 0 for one in timed),
        "timed_with_an_untraceable_change": sum(one.aimed < 0 for one in timed),
        "losses": dict(Counter(f"{one.stage}: {one.reason}" for one in trials if not one.is_timed)),
    }


if __name__ == "__main__":
    main()
