import ast
import json
import shutil
import subprocess
from pathlib import Path

import asv_runner
import pytest
import uv

from formulacode_dagster.images import probe_benchmarks, probe_imports
from formulacode_dagster.images.interpreters import installed_interpreters

SUITE = """
import asv_runner
try:
    import importlib.metadata as standard
except ImportError:
    standard = None

class Suite:
    def time_it(self):
        pass

if standard is not None:
    standard.version
"""


@pytest.fixture
def oldest():
    """The oldest interpreter that an image may have."""
    here = installed_interpreters(uv.find_uv_bin())
    if "3.7" not in here:
        pytest.skip("no Python 3.7 on this machine")
    return here["3.7"].path


def answer(python, probe, *arguments, cwd):
    """What *probe* prints behind its nonce."""
    done = subprocess.run(
        [python, probe.__file__, "nonce", *arguments],
        cwd=cwd,
        env={"PYTHONPATH": str(cwd)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.partition("\nnonce")[2])


def test_the_probes_run_on_python_3_7_where_asv_runner_wants_a_newer_standard_library(oldest, tmp_path):
    shutil.copytree(Path(asv_runner.__file__).parent, tmp_path / "asv_runner")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "bench.py").write_text(SUITE)
    found = answer(oldest, probe_benchmarks, "benchmarks", cwd=tmp_path)
    assert found == {"names": ["bench.Suite.time_it"], "lost": {}}
    errors = answer(oldest, probe_imports, "benchmarks.bench", "json", "importlib.metadata", cwd=tmp_path)["errors"]
    assert list(errors) == ["importlib.metadata"]


def test_the_probes_are_written_in_python_3_7():
    for probe in (probe_benchmarks, probe_imports):
        ast.parse(Path(probe.__file__).read_text(), feature_version=(3, 7))
