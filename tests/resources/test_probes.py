from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.models.errors import OutsideSystemError
from resources.probes import Health, ProbeResult, probe, programs


def test_a_probe_that_raises_is_a_finding_with_what_to_do() -> None:
    def ask() -> tuple[bool, str]:
        raise OutsideSystemError("hub", "does not answer", remedy="Start it")

    assert probe("hub", ask) == ProbeResult("hub", Health.BROKEN, "hub: does not answer. Start it")
    assert probe("hub", lambda: (False, "no token")) == ProbeResult("hub", Health.WARNING, "no token")


def test_a_bug_is_not_taken_for_a_finding() -> None:
    with pytest.raises(ZeroDivisionError):
        probe("hub", lambda: (True, str(1 // 0)))


def test_missing_programs_are_named_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("git", "make"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = "cc not found on PATH. Install it with the system's package manager"
    assert probe("programs", programs) == ProbeResult("programs", Health.BROKEN, missing)
    (tmp_path / "cc").touch(mode=0o755)
    assert probe("programs", programs).health is Health.OK
