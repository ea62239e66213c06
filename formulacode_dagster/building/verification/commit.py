"""The verification `declared_commit`."""

from __future__ import annotations

from formulacode_dagster.models.image import Verification

from .facts import ImageFacts
from .origin import Tree
from .results import result_of


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
