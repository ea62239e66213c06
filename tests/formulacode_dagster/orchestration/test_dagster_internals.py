"""The private names of Dagster: in one module, and still there in the newest release."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import uv

ROOT = Path(__file__).parents[3]
INTERNALS = ROOT / "formulacode_dagster/orchestration/dagster_internals.py"


def private_imports(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [
        node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dagster._")
    ]


def test_one_module_imports_private_names_of_dagster() -> None:
    paths = [
        path for folder in ("assets", "formulacode_dagster", "resources") for path in (ROOT / folder).rglob("*.py")
    ]
    assert [path for path in paths if private_imports(path)] == [INTERNALS]


@pytest.mark.slow
@pytest.mark.network
def test_the_newest_dagster_still_has_them(tmp_path: Path) -> None:
    subprocess.run([uv.find_uv_bin(), "pip", "install", "--quiet", "--target", tmp_path, "dagster"], check=True)
    read = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); exec({INTERNALS.read_text()!r})"
    patched = "InstanceConcurrencyContext.interval_to_next_pending_claim_check, InstanceConcurrencyContext.claim"
    patched += ", dagster_dev().open_ipc_subprocess, dagster_dev().dev_command"
    subprocess.run([sys.executable, "-I", "-c", f"{read}; {patched}"], check=True)
