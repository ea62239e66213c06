"""`fc-data` in the process of the test, where it costs no second of imports, or in one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FC_DATA = Path(sys.executable).with_name("fc-data")
_KEPT = ("PATH", "SSL_CERT_FILE")
FcData = Callable[..., subprocess.CompletedProcess[str]]
"""`call_fc_data(*arguments, **settings)`: how it ended and what it printed."""


@pytest.fixture
def call_fc_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[FcData]:
    """Run `fc-data` in the test's folder, with nothing set but what is given.

    Not for what starts an embedded Postgres, which ends with its process.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = dict(os.environ)
    monkeypatch.chdir(tmp_path)

    from formulacode_dagster.cli.app import main

    def call(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["fc-data", *arguments])
        os.environ.clear()
        kept = {name: before[name] for name in _KEPT if name in before}
        os.environ.update({**kept, "HOME": str(tmp_path), "FC_HOME": str(tmp_path / "home"), **settings})
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            os.environ.clear()
            os.environ.update(before)
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(arguments, ended.value.code, said.out, said.err)

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)


def run_fc_data(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `fc-data` as a process in *folder*, with nothing set but what is given: `call_fc_data` is faster."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "FC_HOME": str(folder / "home"), **settings}
    return subprocess.run(
        [str(FC_DATA), *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def complaint(answer: subprocess.CompletedProcess[str]) -> str:
    """The one line of a known error."""
    assert (answer.returncode, answer.stdout) == (1, ""), answer
    (line,) = answer.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")
