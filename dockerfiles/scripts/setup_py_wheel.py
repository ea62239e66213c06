"""Makes a wheel of what `setup.py install` installs, for packages that no wheel can be built of.

A script for Python 3.7 and later, run in the folder of the setup.py: `python setup_py_wheel.py FOLDER`. Installed from
a wheel, an old package has the same record of its files as any other.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

# pip's way to install what predates wheels: distutils learns from setuptools to write down what it installs.
RUN = """
import setuptools, sys
__file__ = sys.argv[0] = "setup.py"
with open(__file__, "rb") as stream:
    exec(compile(stream.read(), __file__, "exec"))
"""
SCHEMES = ("scripts", "headers", "data")


def install(stage: Path) -> None:
    """Install into *stage*; exits with the status of setup.py when that fails."""
    places = ["--install-lib=/lib"] + [f"--install-{name}=/{name}" for name in SCHEMES]
    command = [sys.executable, "-c", RUN, "install", f"--root={stage}", "--no-compile"]
    command += ["--single-version-externally-managed", f"--record={stage}.record", *places]
    done = subprocess.run(command, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def find_metadata(library: Path) -> Path:
    """The `egg-info`, a folder or a file; exits when there is not just one."""
    found = sorted(library.glob("*.egg-info"))
    if len(found) != 1:
        sys.exit(f"setup.py install left {len(found)} egg-info behind, not one: {', '.join(one.name for one in found)}")
    return found[0]


def generated(entry_points: str) -> set[str]:
    """Names of the programs that an installer makes of *entry_points*."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(entry_points)
    return {name for section in ("console_scripts", "gui_scripts") if section in parser for name in parser[section]}


def contents(stage: Path, distribution: str, programs: set[str]) -> dict[str, tuple[bytes, int]]:
    """Bytes and mode of the installed files, by their names in the wheel."""
    files = {}
    for path in sorted(stage.rglob("*")):
        folder, _, name = path.relative_to(stage).as_posix().partition("/")
        if path.is_dir() or ".egg-info" in name.partition("/")[0]:
            continue
        content = path.read_bytes()
        if folder == "scripts":
            if name in programs:
                continue
            # so that the installer writes the interpreter of the environment instead of the one that built
            content = re.sub(rb"\A#!\S*python\S*", b"#!python", content)
        elif folder not in (*SCHEMES, "lib"):
            sys.stdout.write(f"left out, as it is outside the environment: /{folder}/{name}\n")
            continue
        target = name if folder == "lib" else f"{distribution}.data/{folder}/{name}"
        files[target] = (content, path.stat().st_mode & 0o777)
    return files


def main() -> None:
    """Install, and pack what was installed."""
    into = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder, "stage")
        install(stage)
        egg_info = find_metadata(stage / "lib")
        texts = {path.name: path.read_text(errors="replace") for path in egg_info.glob("*.txt")}
        metadata = (egg_info / "PKG-INFO" if egg_info.is_dir() else egg_info).read_text(errors="replace")
        headers = Parser().parsestr(metadata, headersonly=True)
        name = re.sub(r"[-_.]+", "_", headers["Name"])
        distribution = "{}-{}".format(name, headers["Version"].replace("-", "_"))
        info = f"{distribution}.dist-info"
        files = contents(stage, distribution, generated(texts.get("entry_points.txt", "")))
    for kept in ("entry_points.txt", "top_level.txt"):
        if kept in texts:
            files[f"{info}/{kept}"] = (texts[kept].encode(), 0o644)
    files[f"{info}/METADATA"] = (metadata.encode(), 0o644)
    # The environment has one folder for both kinds of library, so that the tag of neither matters.
    wheel = "Wheel-Version: 1.0\nGenerator: formulacode\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
    files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)
    lines = []
    for target, (content, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{target},sha256={digest},{len(content)}\n")
    files[f"{info}/RECORD"] = ("".join([*lines, f"{info}/RECORD,,\n"]).encode(), 0o644)
    with zipfile.ZipFile(into / f"{distribution}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for target, (content, mode) in files.items():
            entry = zipfile.ZipInfo(target)
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
