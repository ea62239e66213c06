"""The verifications in their order, each with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from formulacode_dagster.models.image import Verification

from .collecting import Collected, collect_tests, test_files, tests_collect
from .discovery import benchmarks, without_suite
from .evidence import Evidence
from .facts import ImageFacts
from .importing import import_modules, imports, modules_of, tops_of
from .leak_scan import versions_by_name
from .oracle import oracle_absent
from .origin import Tree
from .results import result_of
from .running import one_benchmark_runs
from .scan import forms_in, secrets_in
from .tamper_scan import find_planted, from_index


def no_credentials(facts: ImageFacts, said: Mapping[str, str]) -> Verification:
    """Neither the files nor the image's configuration *said* (variables, labels, history) hold a credential.

    Text in the form of a credential is searched for in all files that neither the commit nor a wheel brought, the
    values of this machine's own secrets everywhere. No value is ever reported.
    """
    secrets = facts.scan.watch.secrets
    problems = [
        f"{area}: {path} holds {what}"
        for (area, path), credentials in facts.scan.credentials.items()
        for what in credentials
    ]
    for where, text in said.items():
        content = text.encode(errors="replace")
        problems += [f"{where} holds {what}" for what in (*secrets_in(content, secrets), *forms_in(content))]
    held = f"no token, key or password; none of {len(secrets)} secrets of this machine"
    return result_of("no_credentials", problems, held)


def declared_commit(facts: ImageFacts, base_sha: str, base: Tree) -> Verification:
    """HEAD is *base_sha*, and the checkout holds exactly the files of *base*."""
    checkout = facts.checkout
    problems = [] if facts.head == base_sha else [f"HEAD is {facts.head or 'nowhere'}, not {base_sha}"]
    for path, (mode, blob) in base.items():
        fact = checkout.get(path)
        if fact is None:
            problems.append(f"{path} is missing")
        elif blob not in (fact.blob, fact.unix_blob) or (fact.target is not None) != (mode == "120000"):
            problems.append(f"{path} differs from the commit")
    problems += [f"{path} is not in the commit" for path in checkout if path not in base]
    return result_of("declared_commit", problems, f"HEAD is {base_sha} and {len(base)} files equal it")


Verify = Callable[[Evidence], Verification]


def _declared_commit(evidence: Evidence) -> Verification:
    return declared_commit(evidence.facts, evidence.truth.base_sha, evidence.truth.tree)


def _imports(evidence: Evidence) -> Verification:
    modules = modules_of(evidence.facts, evidence.local, evidence.subject.image.spec.package_name)
    return imports(import_modules(evidence.remote, modules), tops_of(evidence.facts, evidence.local))


def _benchmarks(evidence: Evidence) -> Verification:
    if not evidence.spec.has_suite:
        return without_suite("benchmarks", evidence.base)
    return benchmarks(evidence.survey, evidence.reading)


def _one_benchmark_runs(evidence: Evidence) -> Verification:
    if not evidence.spec.has_suite:
        return without_suite("one_benchmark_runs", evidence.base)
    return one_benchmark_runs(evidence.survey)


def _tests_collect(evidence: Evidence) -> Verification:
    spec, tops = evidence.spec, tops_of(evidence.facts, evidence.local)
    collected: Collected | None = None
    if test_files(evidence.truth.tree, spec):
        collected = collect_tests(evidence.remote, evidence.session, spec, tops)
    return tests_collect(collected, tops, sorted(tops))


def _nothing_planted(evidence: Evidence) -> Verification:
    spec = evidence.subject.image.spec
    variables, folder = evidence.image_config.variables, str(Path(evidence.subject.image.location).parent)
    own = evidence.own_name
    planted = find_planted(evidence.facts, spec.lock, variables, spec.test_lock, own=own, folder=folder)
    return result_of("nothing_planted", planted, "every installed file is its wheel's, and none runs unasked")


def _no_credentials(evidence: Evidence) -> Verification:
    return no_credentials(evidence.facts, evidence.image_config.by_place)


def _oracle_absent(evidence: Evidence) -> Verification:
    lines, objects = evidence.subject.origin.lines, evidence.repository.all_objects()
    local = versions_by_name((distribution.name, distribution.version) for distribution in evidence.local)
    brought = from_index(evidence.facts, evidence.subject.image.spec.instrument)
    return oracle_absent(evidence.facts, evidence.truth, objects, lines, brought, local)


VERIFICATIONS: dict[str, Verify] = {
    "declared_commit": _declared_commit,
    "imports": _imports,
    "benchmarks": _benchmarks,
    "one_benchmark_runs": _one_benchmark_runs,
    "tests_collect": _tests_collect,
    "nothing_planted": _nothing_planted,
    "no_credentials": _no_credentials,
    "oracle_absent": _oracle_absent,
}
VERIFICATION_NAMES: tuple[str, ...] = tuple(VERIFICATIONS)
