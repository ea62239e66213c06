from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from formulacode_dagster.engines.failures import BuildFailure
from formulacode_dagster.engines.process.engine import ProcessEngine
from formulacode_dagster.engines.process.layout import Layout
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.recipe import OnFailure
from formulacode_dagster.specs.context import Origins
from tests.support.images import LIMITS, PURE, Sample, command, make_sample, make_spec

pytestmark = pytest.mark.network


def test_a_session_imports_the_built_package_the_lock_and_the_instrument(
    engine: ProcessEngine, pure_image: BuiltImage
) -> None:
    with engine.session(pure_image, run_id="run") as session:
        code = "import tinypure, setuptools, asv_runner; print(asv_runner.__file__); print(tinypure.__file__)"
        done = session.run([session.python, "-c", code], timeout=30)
        assert done.ok, done.stderr
        instrument, package = done.stdout.decode().splitlines()
        assert "/instrument/" in instrument
        assert "/site-packages/" in package
        assert instrument.startswith(str(Path(session.repository).parent)), "the session reached into the image"


def test_a_rebuild_sees_a_patch_that_only_touches_a_c_header(engine: ProcessEngine, compiled_image: BuiltImage) -> None:
    with engine.session(compiled_image, run_id="run") as session:
        ask = [session.python, "-c", "import tinyc; print(tinyc.answer())"]
        assert session.run(ask, timeout=30).stdout == b"41\n"
        Path(session.repository, "tinyc/answer.h").write_text("#define ANSWER 42\n")
        rebuilt = session.reinstall(timeout=120)
        assert rebuilt.ok, rebuilt.stderr
        assert session.run(ask, timeout=30).stdout == b"42\n"
    with engine.session(compiled_image, run_id="run") as session:
        assert session.run([session.python, "-c", "import tinyc; print(tinyc.answer())"], timeout=30).stdout == b"41\n"


def test_a_session_like_another_starts_from_what_that_one_holds(
    engine: ProcessEngine, compiled_image: BuiltImage
) -> None:
    with engine.session(compiled_image, run_id="run") as session:
        Path(session.repository, "tinyc/answer.h").write_text("#define ANSWER 42\n")
        assert session.reinstall(timeout=120).ok
        with engine.session(compiled_image, run_id="run", like=session) as copy:
            ask = [copy.python, "-c", "import tinyc; print(tinyc.answer()); open('mine', 'w')"]
            assert copy.run(ask, timeout=30, cwd=str(Path(copy.repository).parent)).stdout == b"42\n"
            assert not Path(session.repository).with_name("mine").exists()


def test_a_session_like_another_waits_for_nobody_who_has_the_image(
    engine: ProcessEngine, compiled_image: BuiltImage
) -> None:
    with (
        engine.session(compiled_image, run_id="run") as session,
        engine._lock(compiled_image.tag),
        engine.session(compiled_image, run_id="run", like=session) as copy,
    ):
        assert Path(copy.python).exists()


def test_a_rebuild_is_not_fooled_by_bytecode_of_a_source_with_equal_size_and_time(
    engine: ProcessEngine, pure_image: BuiltImage
) -> None:
    with engine.session(pure_image, run_id="run") as session:
        ask = [session.python, "-c", "import tinypure; print(tinypure.total(4))"]
        for number in (5, 6):
            Path(session.repository, "tinypure/__init__.py").write_text(f"def total(n):\n    return {number}\n")
            assert session.reinstall(timeout=120).ok
            assert session.run(ask, timeout=30).stdout == f"{number}\n".encode()


def test_a_rebuild_of_code_that_does_not_build_fails_and_leaves_the_old_package(
    engine: ProcessEngine, compiled_image: BuiltImage
) -> None:
    with engine.session(compiled_image, run_id="run") as session:
        Path(session.repository, "tinyc/answer.h").write_text("#error no\n")
        rebuilt = session.reinstall(timeout=120)
        assert not rebuilt.ok
        assert b"#error no" in rebuilt.stdout + rebuilt.stderr
        assert session.run([session.python, "-c", "import tinyc"], timeout=30).ok


def test_the_checkout_is_at_the_base_and_knows_nothing_that_came_later(
    engine: ProcessEngine, pure_image: BuiltImage, pure: Sample
) -> None:
    with engine.session(pure_image, run_id="run") as session:

        def git(*arguments: str) -> bytes:
            return session.run(["git", *arguments], timeout=30, cwd=session.repository).stdout

        assert git("rev-parse", "HEAD").decode().strip() == pure.base
        assert git("status", "--porcelain", "--ignored") == b""
        assert git("tag").split() == [b"v0.1", b"v1.0"], "only version tags that the base reaches"
        assert git("for-each-ref", "refs/formulacode", "refs/heads", "refs/remotes") == b""
        later = session.run(["git", "cat-file", "-e", pure.merge], timeout=30, cwd=session.repository)
        assert not later.ok


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


def test_builds_are_lent_bytecode_of_what_they_import_and_leave_none_behind(
    engine: ProcessEngine, pure_image: BuiltImage, pure: Sample
) -> None:
    image = Path(pure_image.location)
    (tier,) = (image.parents[1] / "tiers").iterdir()
    setuptools = next(tier.glob("bytecode/venv/lib/python*/site-packages/setuptools"))
    assert list(setuptools.glob("__pycache__/build_meta.*.pyc"))
    assert not list(setuptools.rglob("*.py"))
    assert not list(image.glob("venv/**/*.pyc"))
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


def test_an_image_whose_interpreter_is_not_listed_any_more_still_runs_and_is_built_again(
    engine: ProcessEngine, pure_image: BuiltImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formulacode_dagster.engines.process.engine.installed_interpreters", lambda _uv: {})
    with engine.session(pure_image, run_id="run") as session:
        assert session.compiler is None
        rebuilt = session.reinstall(timeout=120)
        assert rebuilt.ok, rebuilt.stderr


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


def test_code_cannot_change_the_harness_unnoticed(engine: ProcessEngine, pure_image: BuiltImage) -> None:
    with engine.session(pure_image, run_id="run") as session:
        path = session.put("judge.py", b"print('honest')\n")
        assert session.run([session.python, path], timeout=30).stdout == b"honest\n"
        forge = f"import os; os.chmod({session.harness!r}, 0o777); os.unlink({path!r}); open({path!r}, 'w').write('')"
        with pytest.raises(ItemFailure, match=r"changed judge\.py") as caught:
            session.run([session.python, "-c", forge], timeout=30)
        assert caught.value.kind == "harness_changed"


def test_a_session_starts_from_a_clean_environment(
    engine: ProcessEngine, pure_image: BuiltImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_TOKENS", "secret-token")
    with engine.session(pure_image, run_id="run") as session:
        done = session.run(["env"], timeout=30, environment={"ASKED": "1", "PYTHONPATH": "/mine"})
        assert b"secret-token" not in done.stdout
        assert b"ASKED=1\n" in done.stdout
        path = next(line for line in done.stdout.decode().splitlines() if line.startswith("PYTHONPATH="))
        assert path.endswith("/instrument:/mine")


def test_a_session_is_gone_when_it_closes_whatever_happens_inside(
    engine: ProcessEngine, pure_image: BuiltImage
) -> None:
    folders = []

    def use() -> None:
        with engine.session(pure_image, run_id="run") as session:
            folders.append(Path(session.repository).parent)
            session.run(["sh", "-c", "mkdir -p locked/in && chmod 000 locked"], timeout=30)
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        use()
    assert not folders[0].exists()


def test_clean_removes_sessions_of_killed_runs_and_nobody_elses(
    engine: ProcessEngine, pure_image: BuiltImage, tmp_path: Path
) -> None:
    program = f"""
import sys, time
from pathlib import Path
from formulacode_dagster.engines.process.engine import ProcessEngine
from formulacode_dagster.models.image import BuiltImage
image = BuiltImage.model_validate_json({pure_image.model_dump_json()!r})
engine = ProcessEngine(Path({str(Path(pure_image.location).parents[1])!r}))
with engine.session(image, run_id="killed") as session:
    print(session.repository, flush=True)
    time.sleep(600)
"""
    killed = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    left = Path(killed.stdout.readline().strip()).parent
    half_built = left.parents[1] / "building" / "half"
    half_built.mkdir(parents=True)
    with engine.session(pure_image, run_id="alive") as session:
        assert engine.clean() == 1, "a live session is not touched, a half-built folder without a builder is"
        killed.kill()
        killed.wait()
        killed.stdout.close()
        assert left.exists()
        assert engine.clean() == 1
        assert not left.exists()
        assert session.run([session.python, "-c", "import tinypure"], timeout=30).ok


def test_a_folder_that_cannot_be_written_stops_the_stage(tmp_path: Path, pure: Sample, lock: str) -> None:
    root = tmp_path / "file"
    root.write_text("not a folder")
    with pytest.raises(OutsideSystemError, match="disk: cannot write"):
        ProcessEngine(root / "root", LIMITS).build(make_spec(pure, lock), Origins(pure.mirror))


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


def test_limits_hold_in_a_session(engine: ProcessEngine, pure_image: BuiltImage) -> None:
    small = ProcessEngine(Path(pure_image.location).parents[1], ResourceLimits(memory_mb=256))
    with small.session(pure_image, run_id="run") as session:
        done = session.run([session.python, "-c", "bytearray(600 * 1024 * 1024)"], timeout=30)
        assert b"MemoryError" in done.stderr
        limits = session.run(["sh", "-c", "ulimit -c; nproc"], timeout=30).stdout.split()
        assert limits[0] == b"0"
        assert json.loads(limits[1]) <= 2
