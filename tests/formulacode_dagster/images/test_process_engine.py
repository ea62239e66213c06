from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.images.process_engine import ProcessEngine
from formulacode_dagster.models.image import BuiltImage

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


def test_a_rebuild_sees_a_patch_that_only_touches_a_c_header(engine: ProcessEngine, compiled_image: BuiltImage) -> None:
    with engine.session(compiled_image, run_id="run") as session:
        ask = [session.python, "-c", "import tinyc; print(tinyc.answer())"]
        assert session.run(ask, timeout=30).stdout == b"41\n"
        Path(session.repository, "tinyc/answer.h").write_text("#define ANSWER 42\n")
        rebuilt = session.rebuild(timeout=120)
        assert rebuilt.ok, rebuilt.stderr
        assert session.run(ask, timeout=30).stdout == b"42\n"
    with engine.session(compiled_image, run_id="run") as session:
        assert session.run([session.python, "-c", "import tinyc; print(tinyc.answer())"], timeout=30).stdout == b"41\n"


def test_a_rebuild_is_not_fooled_by_bytecode_of_a_source_with_equal_size_and_time(
    engine: ProcessEngine, pure_image: BuiltImage
) -> None:
    with engine.session(pure_image, run_id="run") as session:
        ask = [session.python, "-c", "import tinypure; print(tinypure.total(4))"]
        for number in (5, 6, 7):
            Path(session.repository, "tinypure/__init__.py").write_text(f"def total(n):\n    return {number}\n")
            assert session.rebuild(timeout=120).ok
            assert session.run(ask, timeout=30).stdout == f"{number}\n".encode()
