"""Wheels whose metadata names requirements that today's installers refuse to read."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import uv

from formulacode_dagster.building.specs.recipes import script

READABLE = [
    "numpy",
    "numpy>=1.21",
    "numpy (>=1.21,<2)",
    "numpy >=1.21, !=1.22.*; python_version < '3.9'",
    "a.b-c[x, y] ~= 1.0.post1 ; extra == 'all'",
    "local==1.0+cu118",
    "pre>=1.0rc1.dev2",
    "by @ https://example.org/by.zip",
    "epoch===1!2.0",
]
UNREADABLE = [
    "fury (>=0.6scikit-learn) ; extra == 'all'",
    "pytz (>=2011k)",
    "two three",
    "broken (>=)",
    "any===thing",
    "empty ()",
]


def make_wheel(folder: Path, requirements: list[str]) -> Path:
    wheel = folder / "tool-1.0-py3-none-any.whl"
    lines = [
        "Metadata-Version: 2.1",
        "Name: tool",
        "Version: 1.0",
        *(f"Requires-Dist: {requirement}" for requirement in requirements),
    ]
    files = {
        "tool.py": b"WORD = 'there'\n",
        "tool-1.0.dist-info/METADATA": ("\n".join(lines) + "\n\nRequires-Dist: of the text ()>\n").encode(),
        "tool-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items()]
    files["tool-1.0.dist-info/RECORD"] = "".join([*record, "tool-1.0.dist-info/RECORD,,\n"]).encode()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def run(wheel: Path) -> str:
    command = [sys.executable, "-I", str(script("readable_metadata.py")), str(wheel)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def install(wheel: Path, into: Path) -> subprocess.CompletedProcess[str]:
    command = [uv.find_uv_bin(), "pip", "install", "--offline", "--no-deps", "--target", str(into), str(wheel)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("requirement", UNREADABLE)
def test_what_makes_an_installer_refuse_the_wheel_is_taken_out(tmp_path: Path, requirement: str) -> None:
    wheel = make_wheel(tmp_path, ["numpy>=1.21", requirement])
    refused = install(wheel, tmp_path / "refused")
    assert refused.returncode
    assert "Metadata for `tool` could not be parsed" in refused.stderr
    assert run(wheel) == f"left out of the metadata, as no installer reads it: {requirement}\n"
    done = install(wheel, tmp_path / "there")
    assert done.returncode == 0, done.stderr
    metadata = (tmp_path / "there/tool-1.0.dist-info/METADATA").read_bytes()
    text = metadata.decode()
    assert "Requires-Dist: numpy>=1.21\n" in text
    assert requirement not in text
    assert text.endswith("\n\nRequires-Dist: of the text ()>\n")
    record = (tmp_path / "there/tool-1.0.dist-info/RECORD").read_text()
    assert f"tool-1.0.dist-info/METADATA,sha256={digest(metadata)},{len(metadata)}" in record


def test_a_wheel_that_is_readable_stays_as_it_is(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, READABLE)
    before = wheel.read_bytes()
    assert run(wheel) == ""
    assert wheel.read_bytes() == before
    assert install(wheel, tmp_path / "there").returncode == 0
