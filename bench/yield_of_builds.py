"""Share of real performance pull requests that are built, verified and timed without a model.

Each pull request of a list goes through the platform's own parts: its change from the mirror, the plan of its
environment, the build with its repairs, the verification by the host, and a run of its benchmarks on the base. Every
loss is shown with its stage and reason. For timed ones it reports which source of workloads reaches the change, what
each source contributes by itself, and the minutes of both; `--until-aimed` skips sources after the first that does.
With `--measure` each is measured and judged instead, by the first source that reaches the change, as in a month:
verdict, speed-up, whether the tests of faster ones pass, and minutes; with `--replays 3` faster and correct ones are
measured three times more, by their own rule, from their row and their image: as before, with the time of one core for
each container, and next to a process of low priority that never waits.

python bench/yield_of_builds.py --repositories DIR --pull-requests bench/yield_pull_requests.toml

DIR holds bare mirrors as owner/name.git. The engine and its limits are those of the settings (FC_ENGINE …). With
`--results FILE` an interrupted run continues: results with the same plan are reused. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from found_workloads import stem
from yield_report import Results, Trial, figures, table
from yield_trials import Laboratory, mirrored

if TYPE_CHECKING:
    from formulacode_dagster.building.engines.protocol import Engine


def main() -> None:
    """Try every pull request of the list, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repositories", type=Path, required=True, help="folder of bare mirrors owner/name.git")
    parser.add_argument("--pull-requests", type=Path, default=Path(__file__).with_name("yield_pull_requests.toml"))
    parser.add_argument("--only", action="append", default=[], help="owner/repo or owner/repo#123; may be repeated")
    parser.add_argument("--at-once", type=int, default=1, help="pull requests worked on at the same time")
    parser.add_argument("--logs", type=Path, help="folder for log and found workloads of every trial, for bench/aa.py")
    parser.add_argument("--results", type=Path, help="file of JSON lines, one a trial, to go on from")
    parser.add_argument("--until-aimed", action="store_true", help="leave out what comes after the source that aims")
    parser.add_argument(
        "--measure", action="store_true", help="measure and judge each, and run the tests of what is faster"
    )
    parser.add_argument("--replays", type=int, default=0, help="how often what is faster and right is measured again")
    parser.add_argument("--again", action="store_true", help="try those again that the results have as timed")
    options = parser.parse_args()
    if options.replays and not options.measure:
        parser.error("--replays needs --measure: what was not measured cannot be measured again")
    repositories = options.repositories.absolute()
    entries = tomllib.loads(options.pull_requests.read_text("utf-8"))["repository"]
    wanted = [item for item in listed(entries, repositories) if is_wanted(item, options.only)]
    apart = {entry["name"]: entry["apart"] for entry in entries if "apart" in entry}
    results = Results(options.results)
    if wanted:
        laboratory, _ = laboratory_of(
            repositories,
            None if options.again else results,
            every_source=not options.until_aimed,
            measure=options.measure,
            replays=options.replays,
        )

    def trial(item: str) -> Trial:
        print(f"{item} …", file=sys.stderr, flush=True)
        result = laboratory.trial(item)
        print(f"{item}: {result.stage} {result.reason} {result.detail[:200]}", file=sys.stderr, flush=True)
        if options.logs is not None:
            options.logs.mkdir(parents=True, exist_ok=True)
        for ending, text in ((".log", result.log), (".workloads.py", result.laid)):
            if options.logs is not None and text:
                (options.logs / f"{stem(item)}{ending}").write_text(text, "utf-8")
        if options.logs is not None and result.found is not None:
            result.found.keep(options.logs)
        results.add(result)
        return result

    pool = ThreadPoolExecutor(options.at_once)
    try:
        for future in [pool.submit(trial, item) for item in wanted]:
            future.result()
    finally:
        pool.shutdown(cancel_futures=True)
    trials = results.of(wanted)
    print("\n".join(table(trials)))
    print(json.dumps(figures(trials, apart)))


def listed(entries: list[Mapping[str, Any]], repositories: Path) -> Iterator[str]:
    """The items of the list whose repository is in the folder; says which ones are not."""
    for entry in entries:
        if not (repositories / f"{entry['name']}.git").is_dir():
            print(f"{entry['name']} is not in {repositories}: left out", file=sys.stderr)
            continue
        yield from (f"{entry['name']}#{number}" for number in entry["pull_requests"])


def is_wanted(item: str, only: list[str]) -> bool:
    """Return True if *item* is selected by itself, by its repository, or by default."""
    return not only or item in only or item.partition("#")[0] in only


def laboratory_of(
    repositories: Path, results: Results | None, *, every_source: bool, measure: bool = False, replays: int = 0
) -> tuple[Laboratory, Engine]:
    """Everything a trial needs, with the engine that the settings name for these repositories."""
    from resources.containers import ContainersResource
    from resources.sampling import SamplingResource

    containers = ContainersResource()
    names = mirrored(repositories)
    engine, why = containers.engine_for_repositories(names)
    one_core, _ = ContainersResource(cpus=1.0).engine_for_repositories(names) if replays else (None, "")
    print(why, file=sys.stderr)
    results = results or Results(None)
    plan = SamplingResource().plan() if measure else None
    laboratory = Laboratory(
        repositories,
        containers,
        engine,
        results,
        every_source=every_source,
        plan=plan,
        replays=replays,
        one_core=one_core,
    )
    return laboratory, engine


if __name__ == "__main__":
    main()
