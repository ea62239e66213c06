"""The browser that looks at pages: `.ci/install-browser` installs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

PLAYWRIGHT = Path(__file__).parents[1] / "end_to_end"
"""The folder whose `node_modules` has playwright-core and axe-core."""
SERIOUS = ("serious", "critical")
"""Impacts of violations, in axe's words, that no page may have."""


def look_at(folder: Path, pages: Sequence[str], pictures: Path) -> None:
    """Open *pages* of *folder* in three widths and two colour schemes, and leave screenshots in *pictures*.

    Asserts that no page asks anybody, reports an error, is wider than the window or has a serious barrier.
    """
    require_browser()
    pictures = Path(os.environ.get("FC_SCREENSHOTS") or pictures).absolute()
    pictures.mkdir(exist_ok=True, parents=True)
    look = ["node", str(Path(__file__).with_name("pages.mjs")), str(PLAYWRIGHT), str(folder), str(pictures), *pages]
    looked = subprocess.run(look, capture_output=True, text=True, timeout=300, check=False)
    assert looked.returncode == 0, looked.stderr
    seen = json.loads(looked.stdout)
    assert (seen["asked"], seen["errors"], seen["overflow"]) == ([], [], {}), seen
    barriers = [found for found in seen["violations"] if found["impact"] in SERIOUS]
    assert not barriers, barriers


def require_browser() -> None:
    """Skip where there is none; in CI, fail."""
    missing = _missing()
    if missing and os.environ.get("CI"):
        pytest.fail(f"{missing}, and in CI pages are looked at")
    if missing:
        pytest.skip(f"{missing}; run .ci/install-browser")


def _missing() -> str:
    if shutil.which("node") is None:
        return "no node on this machine"
    if not Path(os.environ.get("FC_CHROMIUM", "/usr/bin/chromium")).exists():
        return "no chromium on this machine"
    for package in ("playwright-core", "axe-core"):
        if not (PLAYWRIGHT / "node_modules" / package).is_dir():
            return f"{package} is not installed"
    return ""
