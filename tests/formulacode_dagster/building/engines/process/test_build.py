"""How an image of folders is built, and how that fails."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from formulacode_dagster.building.engines import free_space
from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.process.layout import Layout
from formulacode_dagster.building.engines.process.tier_cache import KeptTier
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.recipe import OnFailure
from tests.support.images import LIMITS, PURE, Sample, command, make_sample, make_spec

pytestmark = pytest.mark.network


def test_building_the_same_spec_again_takes_what_is_there(
    engine: ProcessEngine, pure_image: BuiltImage, pure: Sample
) -> None:
    built = Path(pure_image.location).stat().st_ino
    manifest = Layout(Path(pure_image.location)).manifest
    os.utime(manifest, (0, 0))
    outcome = engine.build(pure_image.spec, Origins(pure.mirror))
    assert manifest.stat().st_mtime > 0, "housekeeping sees that it is at work"
    assert Path(outcome.location).stat().st_ino == built, "it is the same folder, and no other in its place"
    assert (outcome.digest, outcome.location) == (pure_image.digest, pure_image.location)
    assert "install-package" in outcome.log, "the log of the first build is kept"
    assert engine.exists(pure_image)
    assert not engine.exists(pure_image.model_copy(update={"digest": "sha256:0"}))


def test_a_forced_build_gives_the_same_content(
    tmp_path: Path, engine: ProcessEngine, pure_image: BuiltImage, pure: Sample
) -> None:
    again = engine.build(pure_image.spec, Origins(pure.mirror), force=True)
    assert again.digest == pure_image.digest


def test_builds_of_equal_locks_install_once_and_share_no_file(
    tmp_path: Path, engine: ProcessEngine, pure_image: BuiltImage, pure: Sample
) -> None:
    root = Path(pure_image.location).parents[1]
    (tier,) = (folder for folder in root.glob("tiers/*") if (folder / "venv" / "bin" / "python").exists())
    assert not list(tier.glob("venv/lib/python*/site-packages/tinypure*")), "kept before the package was installed"
    again = engine.build(pure_image.spec, Origins(pure.mirror), force=True)
    assert "$ install-environment" not in again.log
    assert "that of an earlier build with the same locks" in again.log
    assert again.digest == pure_image.digest
    of_tier = {path.stat().st_ino for path in tier.rglob("*") if path.is_file() and not path.is_symlink()}
    of_image = {path.stat().st_ino for path in Path(again.location).rglob("*") if path.is_file()}
    assert of_tier
    assert not of_tier & of_image


def test_builds_are_lent_bytecode_of_their_imports_and_leave_none(
    tmp_path: Path, engine: ProcessEngine, pure_image: BuiltImage, pure: Sample
) -> None:
    image = Path(pure_image.location)
    (tier,) = (image.parents[1] / "tiers").iterdir()
    setuptools = next(tier.glob("bytecode/venv/lib/python*/site-packages/setuptools"))
    assert list(setuptools.glob("__pycache__/build_meta.*.pyc"))
    assert not list(setuptools.rglob("*.py"))
    assert not list(image.glob("venv/**/*.pyc"))
    lent = KeptTier(tier, tier).lay_bytecode(shutil.copytree(image, tmp_path / "image", symlinks=True))
    assert {file.stat().st_nlink for file in lent} == {1}, "a build that writes to it reaches no other"
    with engine.session(pure_image, run_id="run") as session:
        setup = Path(session.repository, "setup.py")
        setup.write_text(
            "import importlib.util, os\n"
            "cached = importlib.util.find_spec('setuptools.build_meta').cached\n"
            "assert os.path.exists(cached), cached\n"
            "import setuptools\nsetuptools.setup()\n"
        )
        rebuilt = session.reinstall(timeout=120)
        assert rebuilt.ok, rebuilt.stderr
        assert not list(Path(session.repository).parent.glob("venv/**/*.pyc"))


def test_a_build_that_fails_keeps_its_whole_log_and_leaves_nothing(tmp_path: Path, lock: str) -> None:
    files = {**PURE, "setup.py": "print('first words')\nraise SystemExit('cannot build this')\n"}
    sample = make_sample(tmp_path / "broken", "broken", files, {"README.md": "x"})
    engine = ProcessEngine(tmp_path / "root", LIMITS)
    lines: list[str] = []
    with pytest.raises(BuildFailure, match="install-package of Acme__broken-5 failed") as caught:
        engine.build(make_spec(sample, lock), Origins(sample.mirror), progress=lines.append)
    assert caught.value.kind == "build"
    assert "cannot build this" in caught.value.log_tail
    assert "first words" in caught.value.log
    assert "$ install-environment" in caught.value.log
    assert "".join(f"{line}\n" for line in lines) == caught.value.log
    assert not list((tmp_path / "root").glob("images/*"))
    assert not list((tmp_path / "root").glob("building/*"))


def test_a_build_that_hangs_is_killed(tmp_path: Path, lock: str) -> None:
    mark = f"8{os.getpid()}7"
    files = {**PURE, "setup.py": f"import subprocess\nsubprocess.run(['setsid', 'sleep', '{mark}'])\n"}
    sample = make_sample(tmp_path / "hanging", "hanging", files, {"README.md": "x"})
    engine = ProcessEngine(tmp_path / "root", LIMITS.model_copy(update={"build_seconds": 4}))
    with pytest.raises(BuildFailure, match="was killed after 4 s") as caught:
        engine.build(make_spec(sample, lock), Origins(sample.mirror))
    assert caught.value.kind == "timeout"
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True, text=True).stdout
    assert f"sleep {mark}" not in found
    assert not list((tmp_path / "root").glob("building/*"))


def test_a_build_has_no_network_and_none_of_the_hosts_secrets(
    tmp_path: Path, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ProcessEngine(tmp_path / "root", LIMITS, environment={**os.environ, "GH_TOKENS": "secret-token"})
    if not engine.isolates_network:
        pytest.skip("this kernel gives no network namespace to an unprivileged user")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        knock = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('REA' + 'CHED')"
        spec = make_spec(
            make_sample(tmp_path / "nosy", "nosy", PURE, {"README.md": "x"}),
            lock,
            commands=[command("env"), command("python", "-c", knock, on_failure=OnFailure.RECORD)],
            build_environment={"CFLAGS": "-O1 -DX='a b'"},
        )
        log = engine.build(spec, Origins(tmp_path / "nosy.git")).log
    assert "Connection refused" in log
    assert "python ended with status 1" in log, "a failure that is let pass is in the log"
    assert "REACHED" not in log
    assert "secret-token" not in log
    assert "CFLAGS=-O1 -DX='a b'" in log


def test_code_of_a_build_is_never_run_with_passwords(tmp_path: Path, pure: Sample, lock: str) -> None:
    environment = {**os.environ, "UV_INDEX_OURS_PASSWORD": "hunter2"}
    engine = ProcessEngine(tmp_path / "root", LIMITS, environment=environment)
    spec = make_spec(pure, lock)
    with pytest.raises(ItemFailure, match=r"install-environment .* was not run: its code could read") as caught:
        engine.build(spec.model_copy(update={"wheels_only": False}), Origins(pure.mirror))
    assert caught.value.kind == "credentials"
    assert "hunter2" not in str(caught.value)
    assert engine.build(spec.model_copy(update={"wheels_only": True}), Origins(pure.mirror)).digest


def test_an_interpreter_that_is_not_here_is_the_items_failure(tmp_path: Path, pure: Sample, lock: str) -> None:
    engine = ProcessEngine(tmp_path / "root", LIMITS)
    with pytest.raises(ItemFailure, match=r"no Python 3\.99") as caught:
        engine.build(make_spec(pure, lock, python="3.99"), Origins(pure.mirror))
    assert caught.value.kind == "interpreter"


def test_interpreters_are_those_installed_that_the_instrument_runs_on(engine: ProcessEngine, tmp_path: Path) -> None:
    here = engine.interpreters()
    assert here is not None
    assert "{}.{}".format(*sys.version_info[:2]) in here
    assert "3.6" not in here


def test_an_index_that_does_not_answer_is_suspected_of_being_down(tmp_path: Path, pure: Sample, lock: str) -> None:
    environment = {
        "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "UV_HTTP_RETRIES": "0",
    }
    engine = ProcessEngine(tmp_path / "root", LIMITS, environment=environment)
    with pytest.raises(SuspectedOutage, match="package index gave no answer"):
        engine.build(make_spec(pure, lock), Origins(pure.mirror))


def test_a_lock_whose_hashes_are_wrong_fails_the_build(tmp_path: Path, pure: Sample) -> None:
    engine = ProcessEngine(tmp_path / "root", LIMITS)
    spec = make_spec(pure, f"setuptools==75.3.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(BuildFailure, match="install-environment") as caught:
        engine.build(spec, Origins(pure.mirror))
    assert "Hash mismatch" in caught.value.log


def test_a_folder_that_cannot_be_written_stops_the_stage(tmp_path: Path, pure: Sample, lock: str) -> None:
    root = tmp_path / "file"
    root.write_text("not a folder")
    with pytest.raises(OutsideSystemError, match="disk: cannot write"):
        ProcessEngine(root / "root", LIMITS).build(make_spec(pure, lock), Origins(pure.mirror))


def test_a_build_that_only_says_that_the_disk_is_full_is_suspected(
    tmp_path: Path, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space, "FULL_BYTES", 0)
    says_so = command("bash", "-c", "echo 'error: No space left on device'; exit 1")
    sample = make_sample(tmp_path / "says", "says", PURE, {"README.md": "x"})
    engine = ProcessEngine(tmp_path / "root", LIMITS)
    with pytest.raises(SuspectedOutage, match="no space left, as its log says") as caught:
        engine.build(make_spec(sample, lock, commands=[says_so]), Origins(sample.mirror))
    assert (caught.value.system, caught.value.kind) == ("disk", "no_space")


def test_a_disk_that_fills_up_during_the_build_stops_the_stage(tmp_path: Path, lock: str) -> None:
    filler = command("bash", "-c", "head -c 200000000 /dev/zero >filler")
    sample = make_sample(tmp_path / "big", "big", PURE, {"README.md": "x"})
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=130m", "none", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        engine = ProcessEngine(disk / "root", LIMITS)
        with pytest.raises(OutsideSystemError, match="no space left"):
            engine.build(make_spec(sample, lock, commands=[filler]), Origins(sample.mirror))
        assert not list(disk.glob("root/building/*"))
        outcome = engine.build(make_spec(sample, lock), Origins(sample.mirror))
        assert Path(outcome.location).exists(), "once there is space, the next run finishes the work"
    finally:
        subprocess.run(["umount", str(disk)], check=True)
