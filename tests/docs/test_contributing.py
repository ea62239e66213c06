"""The example of CONTRIBUTING.md: a new stage that works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import ROOT

LISTED = """
from assets.all import STAGE_ASSETS
from formulacode_dagster.orchestration.build import build_definitions
from formulacode_dagster.operating.store.views import RELATIONS
names = {key.to_user_string() for key in build_definitions().resolve_asset_graph().get_all_asset_keys()}
print("extensions" in names, [column.name for column in RELATIONS["extensions"].columns])
"""


@pytest.mark.slow
def test_the_stage_of_the_example_works(tmp_path: Path) -> None:
    (diff,) = re.findall(r"```diff\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    assert diff.count("diff --git") == 5
    for name in ("assets", "formulacode_dagster", "resources", "sandbox", "sql", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "dagster.yaml", "workspace.yaml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    subprocess.run(["git", "apply"], cwd=tmp_path, input=diff, text=True, check=True)
    listed = subprocess.run([sys.executable, "-c", LISTED], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert listed.stdout == "True ['month', 'repository_id', 'number', 'files']\n"
    shape = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/assets/test_stage_shape.py"]
    subprocess.run(shape, cwd=tmp_path, check=True)
