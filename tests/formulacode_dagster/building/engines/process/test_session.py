"""Environment and permissions of code in a session of a folder image."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from tests.support.images import LIMITS, Sample

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
            assert copy.run(ask, timeout=30).stdout == b"42\n"
            assert not Path(session.repository).with_name("home").joinpath("mine").exists()


def test_a_session_like_another_waits_for_nobody_who_has_the_image(
    engine: ProcessEngine, compiled_image: BuiltImage
) -> None:
    with (
        engine.session(compiled_image, run_id="run") as session,
        engine._lock(compiled_image.tag),
        engine.session(compiled_image, run_id="run", like=session) as copy,
    ):
        assert Path(copy.python).exists()


def test_a_rebuild_is_not_fooled_by_bytecode_of_equal_size_and_time(
    engine: ProcessEngine, pure_image: BuiltImage
) -> None:
    with engine.session(pure_image, run_id="run") as session:
        ask = [session.python, "-c", "import tinypure; print(tinypure.total(4))"]
        for number in (5, 6):
            Path(session.repository, "tinypure/__init__.py").write_text(f"def total(n):\n    return {number}\n")
            assert session.reinstall(timeout=120).ok
            assert session.run(ask, timeout=30).stdout == f"{number}\n".encode()


def test_a_failing_rebuild_leaves_the_old_package(engine: ProcessEngine, compiled_image: BuiltImage) -> None:
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


def test_an_image_with_an_unlisted_interpreter_still_runs_and_rebuilds(
    engine: ProcessEngine, pure_image: BuiltImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formulacode_dagster.building.engines.process.engine.installed_interpreters", lambda _uv: {})
    with engine.session(pure_image, run_id="run") as session:
        assert session.compiler is None
        rebuilt = session.reinstall(timeout=120)
        assert rebuilt.ok, rebuilt.stderr


def test_confined_code_cannot_change_the_harness(engine: ProcessEngine, pure_image: BuiltImage) -> None:
    if not engine.confines:
        pytest.skip("this kernel allows no namespaces")
    with engine.session(pure_image, run_id="run") as session:
        path = session.put("judge.py", b"print('honest')\n")
        for forge in (f"import os; os.chmod({session.harness!r}, 0o777)", f"open({path!r}, 'w')"):
            assert not session.run([session.python, "-c", forge], timeout=30).ok
        assert session.run([session.python, path], timeout=30).stdout == b"honest\n"


def test_unconfined_code_cannot_change_the_harness_unnoticed(pure_image: BuiltImage) -> None:
    engine = ProcessEngine(Path(pure_image.location).parents[1], LIMITS)
    vars(engine)["confines"] = False
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
from formulacode_dagster.building.engines.process.engine import ProcessEngine
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


def test_limits_hold_in_a_session(engine: ProcessEngine, pure_image: BuiltImage) -> None:
    small = ProcessEngine(Path(pure_image.location).parents[1], ResourceLimits(memory_mb=256))
    with small.session(pure_image, run_id="run") as session:
        done = session.run([session.python, "-c", "bytearray(600 * 1024 * 1024)"], timeout=30)
        assert b"MemoryError" in done.stderr
        limits = session.run(["sh", "-c", "ulimit -c; nproc"], timeout=30).stdout.split()
        assert limits[0] == b"0"
        assert json.loads(limits[1]) <= 2
