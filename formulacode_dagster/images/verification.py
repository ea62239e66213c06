"""Facts about a built image, established by the host. The first that does not hold ends the item."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formulacode_dagster.environments.suite_files import BASE_SUITE, SuiteFiles
from formulacode_dagster.measurement.remote import Remote, Surveyed
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, Verification
from formulacode_dagster.models.pull_request import PullRequest

from . import probe_benchmarks, probe_imports, sources
from .engine import Engine, Session
from .facts import ImageFacts, gather_facts
from .files import Area
from .planted import find_planted, installed, site_packages

IMPORT_SECONDS = 300.0
DISCOVERY_SECONDS = 600.0
RUN_SECONDS = 300.0
ENOUGH = 3
BENCHMARK_SECONDS = 60.0
SHOWN = 5
EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
_EXTENSION = re.compile(r"^(?P<module>.+?)(\.cpython-[^/]+|\.abi3)?\.so$")


@dataclass(frozen=True)
class Discovery:
    """What the suite holds: names of benchmarks, and why modules were lost."""

    names: tuple[str, ...]
    lost: Mapping[str, str]


def verify_image(
    engine: Engine,
    image: BuiltImage,
    *,
    mirror: Path,
    pr: PullRequest,
    run_id: str,
    suite: SuiteFiles = BASE_SUITE,
) -> tuple[tuple[Verification, ...], tuple[str, ...]]:
    """Verify *image* in the order of the gates, stopping at the first failure; also the benchmarks found.

    *suite* is laid over the checkout of the session, where it is not the one of the base commit.

    Raises OutsideSystemError when the engine is gone, ItemFailure (`mirror`) when the mirror lacks the commits.
    """
    done: list[Verification] = []
    found: list[str] = []
    for verification in _verifications(engine, image, mirror, pr, run_id, suite, found):
        done.append(verification)
        if not verification.ok:
            break
    return tuple(done), tuple(found)


def _verifications(
    engine: Engine,
    image: BuiltImage,
    mirror: Path,
    pr: PullRequest,
    run_id: str,
    suite: SuiteFiles,
    found: list[str],
) -> Iterator[Verification]:
    spec = image.spec
    with tempfile.TemporaryDirectory(prefix="fc-verify-") as folder:
        objects = Path(folder) / "objects"
        objects.mkdir()
        facts = gather_facts(engine.files(image), objects=objects)
        base = sources.tree_of(mirror, spec.base_sha)
        yield declared_commit(facts, spec.base_sha, base)
        yield oracle_absent(
            stray=objects_in(objects) - sources.reachable_objects(mirror, spec.base_sha),
            facts=facts,
            base=base,
            merge=sources.tree_of(mirror, pr.facts.merge_commit_sha),
            changed=[file.path for file in pr.change.files],
        )
        yield nothing_planted(find_planted(facts, spec.lock))
    with engine.session(image, run_id=run_id) as session:
        modules = modules_of_package(facts, spec.package_name)
        yield imports(modules, import_errors(session, modules))
        remote = Remote(session, benchmark_dir=spec.benchmark_dir)
        if suite.files is not None:
            remote.write(suite.files)
        discovery = discover(session, spec.benchmark_dir)
        found.extend(discovery.names if discovery else ())
        yield benchmarks(discovery)
        yield one_benchmark_runs(run_some(remote))


def declared_commit(facts: ImageFacts, base_sha: str, base: Mapping[str, tuple[str, str]]) -> Verification:
    """HEAD is *base_sha*, and the checkout holds exactly the files of *base* (mode and blob by path)."""
    checkout = facts.checkout
    problems = [] if facts.head == base_sha else [f"HEAD is {facts.head or 'nowhere'}, not {base_sha}"]
    for path, (mode, blob) in base.items():
        fact = checkout.get(path)
        if fact is None:
            problems.append(f"{path} is missing")
        elif blob not in (fact.blob, fact.unix_blob) or (fact.target is not None) != (mode == "120000"):
            problems.append(f"{path} is not what the commit holds")
    problems += [f"{path} is not in the commit" for path in checkout if path not in base]
    return _verdict("declared_commit", problems, f"HEAD is {base_sha} and {len(base)} files equal it")


def oracle_absent(
    *,
    stray: Iterable[str],
    facts: ImageFacts,
    base: Mapping[str, tuple[str, str]],
    merge: Mapping[str, tuple[str, str]],
    changed: Sequence[str],
) -> Verification:
    """The store holds no object that the base cannot reach, and no file equals one that the pull request made.

    *stray* are the objects beyond the base's history, *base* and *merge* the trees before and after.
    """
    problems = [f"object {sha} is not in the history of the base" for sha in sorted(stray)]
    if (Area.REPOSITORY, ".git/objects/info/alternates") in facts.texts:
        problems.append("the object store borrows from another")
    known = {blob for _, blob in base.values()} | {EMPTY_BLOB}
    solution = {merge[path][1]: path for path in changed if path in merge and merge[path][1] not in known}
    for area in Area:
        for path, fact in facts.files[area].items():
            if solved := solution.get(fact.blob) or solution.get(fact.unix_blob):
                problems.append(f"{area}: {path} is {solved} as the pull request left it")
    return _verdict("oracle_absent", problems, f"nothing after the base; {len(changed)} changed files are as before")


def nothing_planted(planted: Sequence[str]) -> Verification:
    """No file that runs unasked or stands in for another."""
    return _verdict("nothing_planted", planted, "every installed file is its wheel's, and none runs unasked")


def imports(modules: Sequence[str], errors: Mapping[str, str] | None) -> Verification:
    """The package and every compiled extension import; *errors* is None when they were not all tried in time."""
    if not modules:
        return Verification(name="imports", ok=False, detail="no installed package holds a module")
    if errors is None:
        return Verification(name="imports", ok=False, detail=f"importing {', '.join(modules[:SHOWN])} did not end")
    problems = [f"{name}: {error}" for name, error in errors.items()]
    return _verdict("imports", problems, f"{len(modules)} modules import: {', '.join(modules[:SHOWN])}")


def benchmarks(discovery: Discovery | None) -> Verification:
    """At least one benchmark is found; modules that were lost are named in any case."""
    if discovery is None:
        return Verification(name="benchmarks", ok=False, detail="discovery did not end")
    lost = "; ".join(f"{module} lost: {error}" for module, error in list(discovery.lost.items())[:SHOWN])
    detail = f"{len(discovery.names)} benchmarks" + (f"; {lost}" if lost else "")
    return Verification(name="benchmarks", ok=bool(discovery.names), detail=detail)


def run_some(remote: Remote) -> Sequence[Surveyed] | str:
    """Benchmarks run once each until ENOUGH ran or RUN_SECONDS are over; why, when the suite broke off."""
    try:
        return remote.survey(basenames=(), limit=BENCHMARK_SECONDS, budget=RUN_SECONDS, enough=ENOUGH).benchmarks
    except ItemFailure as failure:
        return str(failure)


def one_benchmark_runs(surveyed: Sequence[Surveyed] | str) -> Verification:
    """At least one benchmark runs to its end and gives a time."""
    if isinstance(surveyed, str):
        return Verification(name="one_benchmark_runs", ok=False, detail=surveyed)
    ran = [one for one in surveyed if one.outcome == "ran"]
    if ran:
        detail = f"{len(ran)} benchmarks run, {ran[0].name} among them"
        return Verification(name="one_benchmark_runs", ok=True, detail=detail)
    failed = [one for one in surveyed if one.outcome != "skipped"]
    # the last line of a traceback is the one that says what happened
    words = {one.name: (one.message.splitlines() or [""])[-1] for one in failed}
    problems = [f"{one.name} {one.outcome}: {words[one.name]}" for one in failed]
    return _verdict("one_benchmark_runs", problems or ["every benchmark is skipped"], "")


def modules_of_package(facts: ImageFacts, package_name: str) -> tuple[str, ...]:
    """What must import: *package_name*, else the package's top modules, then all its compiled extensions."""
    site = site_packages(facts)
    local = [one for one in installed(facts, Area.ENVIRONMENT, site) if one.is_local]
    paths = sorted(path.removeprefix(f"{site}/") for one in local for path in one.record if path.startswith(f"{site}/"))
    tops = {path.partition("/")[0] for path in paths if path.endswith("/__init__.py") and path.count("/") == 1}
    tops |= {path.removesuffix(".py") for path in paths if "/" not in path and path.endswith(".py")}
    extensions = [match["module"].replace("/", ".") for path in paths if (match := _EXTENSION.match(path))]
    wanted = [package_name] if package_name else sorted(tops)
    return tuple(dict.fromkeys([*wanted, *(name for name in extensions if _is_module(name))]))


def import_errors(session: Session, modules: Sequence[str]) -> dict[str, str] | None:
    """Import *modules* in *session*; errors by module, or None when the answer is missing."""
    answer = _probe(session, Path(probe_imports.__file__), modules, IMPORT_SECONDS)
    return None if answer is None else dict(answer["errors"])


def discover(session: Session, benchmark_dir: str) -> Discovery | None:
    """The benchmarks below *benchmark_dir* of the session's checkout; None when the answer is missing."""
    root = f"{session.repository}/{benchmark_dir}"
    answer = _probe(session, Path(probe_benchmarks.__file__), [root], DISCOVERY_SECONDS, cwd=session.repository)
    return None if answer is None else Discovery(tuple(answer["names"]), dict(answer["lost"]))


def objects_in(folder: Path) -> set[str]:
    """Ids of all objects in a copied object store, tags left out: they are names, not content."""
    with tempfile.TemporaryDirectory(prefix="fc-objects-") as scratch:
        # The image's own configuration could name programs to run; a fresh repository has none.
        environment = sources.git_environment() | {"GIT_OBJECT_DIRECTORY": str(folder)}
        subprocess.run(["git", "init", "--quiet", "--bare", "--template=", scratch], env=environment, check=True)
        done = subprocess.run(
            ["git", "-C", scratch, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)"],
            env=environment,
            capture_output=True,
            check=True,
            timeout=sources.GIT_SECONDS,
        )
    pairs = (line.split() for line in done.stdout.decode().splitlines())
    return {sha for kind, sha in pairs if kind != "tag"}


def _probe(
    session: Session, script: Path, arguments: Sequence[str], timeout: float, cwd: str | None = None
) -> dict[str, Any] | None:
    nonce = secrets.token_hex(16)
    path = session.put(script.name, script.read_bytes())
    done = session.run([session.python, path, nonce, *arguments], timeout=timeout, cwd=cwd)
    if done.timed_out:
        return None
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if line.startswith(nonce):
            answer: dict[str, Any] = json.loads(line.removeprefix(nonce))
            return answer
    return None


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _verdict(name: str, problems: Sequence[str], otherwise: str) -> Verification:
    if not problems:
        return Verification(name=name, ok=True, detail=otherwise)
    more = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    return Verification(name=name, ok=False, detail="; ".join(problems[:SHOWN]) + more)
