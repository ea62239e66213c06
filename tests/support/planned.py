"""A month with two pull requests of one repository, planned and not built."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from formulacode_dagster.building.planning.plan import plan_environment
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.operating.store.artifacts import CHANGES, ENVIRONMENTS, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.blobs import put_blob
from formulacode_dagster.operating.store.database import Database
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource
from tests.records import make_merged, make_pull_request
from tests.support.git_world import BareRepository, git
from tests.support.images import PURE

MONTH = Month.parse("2026-06")
MINOR = sys.version_info.minor
ONLY_THIS = f'version = "1.0"\nrequires-python = ">=3.{MINOR},<3.{MINOR + 1}"'


KEYED = {
    "setup.py": "import os\nfrom setuptools import setup\n\n"
    "if os.environ.get('TINY_KEY') != '1':\n    raise SystemExit('say which key')\nsetup()\n",
}
"""A build that no rule mends."""


def plan_month(
    database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch, *, engine: str, files: Mapping[str, str]
) -> None:
    """Set the settings to a home in *folder* and to *engine*, and plan Acme/tiny#5 and #6, with *files* on top."""
    settings = {"FC_HOME": str(folder), "FC_ENGINE": engine, "GITHUB_CLONE_URL": f"file://{folder}/origins"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    (folder / "origins" / "Acme").mkdir(parents=True)
    made = BareRepository(folder / "origins" / "Acme" / "tiny.git")
    project = PURE["pyproject.toml"].replace('version = "1.0"', ONLY_THIS)
    marks = [
        made.add("base", files={**PURE, "pyproject.toml": project, **files}),
        made.add("first (#5)", files={"tinypure/__init__.py": "def total(n): ...\n"}),
        made.add("second (#6)", files={"tinypure/__init__.py": "def total(n):\n    return 0\n"}),
    ]
    shas = made.write()
    cache, resolver = MirrorsResource().cache(), ContainersResource().resolver()
    with database.transaction() as connection:
        for number, (base, merge) in enumerate(pairwise(marks), start=5):
            pr = _pull_request(made.path, number, shas[base], shas[merge])
            sha256 = put_blob(connection, "patch", b"a patch")
            MERGED_PULL_REQUESTS.save(connection, [pr.facts])
            CHANGES.save(connection, [pr.change.model_copy(update={"patch_sha256": sha256})])
            mirror = cache.ensure("Acme/tiny", commits=(pr.change.base_sha, pr.facts.merge_commit_sha))
            interpreters = frozenset({f"3.{MINOR}"})
            planned = plan_environment(mirror, pr, month=MONTH, interpreters=interpreters, resolver=resolver)
            ENVIRONMENTS.save(connection, [planned])


def _pull_request(mirror: Path, number: int, base: str, merge: str) -> PullRequest:
    facts = make_merged(
        month=MONTH.key,
        repository_id=7,
        repository="Acme/tiny",
        number=number,
        merged_at=MONTH.start + timedelta(days=number),
        head_sha=merge,
        merge_commit_sha=merge,
    )
    return make_pull_request(facts, base_sha=base, merge_tree_sha=git(mirror, "rev-parse", f"{merge}^{{tree}}"))
