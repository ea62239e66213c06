"""The browser that looks at pages: `.ci/install-browser` installs it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

PLAYWRIGHT = Path(__file__).parents[1] / "end_to_end"
"""The folder whose `node_modules` has playwright-core."""


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
    if not (PLAYWRIGHT / "node_modules" / "playwright-core").is_dir():
        return "playwright-core is not installed"
    return ""
