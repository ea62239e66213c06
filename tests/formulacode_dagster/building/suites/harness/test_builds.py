"""Builds of one package side by side: what is one sample of layouts, and what is another."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from formulacode_dagster.building.suites.harness import builds
from formulacode_dagster.building.suites.remote import HarnessClient

SOURCE = "static int table[9] = {1};\nint used(int n) { return n + table[n % 9]; }\nint other(void) { return 1; }\n"

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler")


@pytest.fixture(autouse=True)
def kept_in_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session has a folder for temporary files of its own, which goes with it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def remote(session):
    return HarnessClient(session, benchmark_dir="benchmarks")


@pytest.fixture
def shared_object(tmp_path):
    """Build a shared object from *source* in a folder of its own, with the linkers of a folder."""
    made = []

    def build(source=SOURCE, *, linkers="", options=()):
        folder = tmp_path / f"build{len(made)}"
        folder.mkdir()
        made.append(folder)
        (folder / "a.c").write_text(source)
        environment = {"PATH": "/usr/bin:/bin", "COMPILER_PATH": linkers}
        command = ["gcc", "-O2", "-g", "-fPIC", "-shared", *options, "-o", "a.so", str(folder / "a.c")]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        return (folder / "a.so").read_bytes()

    return build


@needs_compiler
def test_what_is_not_loaded_is_no_difference(shared_object):
    one, other = shared_object(), shared_object(SOURCE + "/* a comment */\n")
    assert one != other, "debug information names the folder"
    assert builds.loaded(one) == builds.loaded(other)
    assert builds.loaded(one) != builds.loaded(shared_object(SOURCE.replace("n + table", "n - table")))
    assert builds.loaded(b"no object") != builds.loaded(b"another")


@needs_compiler
@pytest.mark.parametrize("moved", [{"code": 1024, "data": 0}, {"code": 0, "data": 64}])
def test_a_linker_of_ours_moves_what_is_in_the_library(shared_object, remote, moved):
    plain = shared_object(linkers=remote.linkers(code=0, data=0, name="linkers"))
    assert builds.loaded(plain) != builds.loaded(shared_object(linkers=remote.linkers(**moved, name="moved")))
    assert b"used" in plain


@pytest.mark.slow
@needs_compiler
def test_code_stands_elsewhere_by_as_much_as_was_asked(shared_object, remote, tmp_path):
    def address(content):
        (tmp_path / "a.so").write_bytes(content)
        listed = subprocess.run(["nm", str(tmp_path / "a.so")], check=True, capture_output=True, text=True).stdout
        return next(int(line.split()[0], 16) for line in listed.splitlines() if line.endswith(" T used"))

    moved = shared_object(linkers=remote.linkers(code=2048, data=0, name="linkers"))
    assert address(moved) - address(shared_object(linkers=remote.linkers(code=0, data=0, name="unmoved"))) == 2048


def installed(site: Path, content: bytes, name: str = "_fast.so") -> Path:
    """A distribution with one shared object."""
    (site / "tiny-1.dist-info").mkdir(parents=True, exist_ok=True)
    (site / "tiny").mkdir(exist_ok=True)
    (site / "tiny" / name).write_bytes(content)
    (site / "tiny-1.dist-info" / "RECORD").write_text(f"tiny/{name},sha256=x,3\ntiny/__init__.py,sha256=y,0\n")
    return site / "tiny" / name


def test_a_kept_build_is_laid_where_it_was_installed(tmp_path, monkeypatch):
    site = tmp_path / "site"
    monkeypatch.setattr(builds.sysconfig, "get_paths", lambda: {"purelib": str(site), "platlib": str(site)})
    told = []
    for content in (b"one", b"two", b"one"):
        installed(site, content)
        builds.keep({}, lambda **fields: told.append(fields))
    assert told[0]["objects"] == told[2]["objects"] != told[1]["objects"]
    builds.lay(told[1]["folder"])
    assert (site / "tiny" / "_fast.so").read_bytes() == b"two"
    builds.lay(told[0]["folder"])
    assert (site / "tiny" / "_fast.so").read_bytes() == b"one"


def test_a_package_without_shared_objects_has_no_hash(remote, tmp_path, monkeypatch):
    monkeypatch.setattr(builds.sysconfig, "get_paths", lambda: {"purelib": str(tmp_path), "platlib": str(tmp_path)})
    assert builds.installed_objects() == []
    (tmp_path / "pure-1.dist-info").mkdir()
    (tmp_path / "pure-1.dist-info" / "RECORD").write_text("pure.py,,\n")
    told = []
    builds.keep({}, lambda **fields: told.append(fields))
    assert told[0]["objects"] == ""


@pytest.fixture
def package(tmp_path, monkeypatch, shared_object):
    """Install a distribution whose one object was linked by linkers of ours, with what was kept by them."""
    site = tmp_path / "site"
    monkeypatch.setattr(builds.sysconfig, "get_paths", lambda: {"purelib": str(site), "platlib": str(site)})

    def make(linkers, **build):
        content = shared_object(linkers=linkers, **build)
        return installed(site, content, "a.so")

    return make


def relinked(linkers, *, code):
    told = []
    builds.relink({"linkers": linkers, "code": code, "data": 0}, lambda **fields: told.append(fields))
    return told


@needs_compiler
def test_a_further_layout_takes_linking_alone(package, remote, tmp_path):
    linkers = remote.linkers(code=16, data=0, name="linkers")
    path = package(linkers)
    before = path.read_bytes()
    # the tree in which it was built is gone by then
    for folder in tmp_path.glob("build*"):
        shutil.rmtree(folder)
    (first,), (second,), (same,) = (relinked(linkers, code=code) for code in (512, 1024, 512))
    assert first["objects"] == same["objects"] != second["objects"]
    assert path.read_bytes() == before
    builds.lay(first["folder"])
    assert builds.loaded(path.read_bytes()) != builds.loaded(before)
    # another layout stands there by now: what was built is known to be what linking gives
    (again,) = relinked(linkers, code=1024)
    assert again["objects"] == second["objects"]


@needs_compiler
def test_what_was_changed_after_linking_is_not_linked_again(package, remote):
    linkers = remote.linkers(code=16, data=0, name="linkers")
    path = package(linkers)
    content = bytearray(path.read_bytes())
    place = content.index(b"used")
    content[place : place + 4] = b"USED"
    path.write_bytes(bytes(content))
    assert relinked(linkers, code=512) == []


@needs_compiler
def test_what_other_linkers_made_is_not_linked_again(package, remote):
    package("")
    assert relinked(remote.linkers(code=16, data=0, name="linkers"), code=512) == []
