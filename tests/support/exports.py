"""Two tasks of one image, of Python and of C, exported as their rows would be."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.suites.overlays import BASE_SUITE
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.measurement import InterimAnalysis, RandomizationUnit
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.registries.accounts import STRANGER
from formulacode_dagster.releasing.registries.publishing import Registry
from tests.support.docker import OS_IMAGE
from tests.support.extension import FAST_C, SLOW_C
from tests.support.images import LIMITS, Sample, as_image, make_sample, make_spec, with_oracle
from tests.support.release import task_row
from tests.support.sampling import sampled

REGISTRY = "127.0.0.1:5000"
TEST_LOCK = """iniconfig==2.3.1 \\
    --hash=sha256:67f4b9c50da0dedf52af349e7749a80a9057a5031199791b906c3bb3ae878960 \\
    --hash=sha256:9121e2c1fdb355232495be3194c8dfe87ccc2d5dee45947b78e68f499790d7a7
packaging==26.3 \\
    --hash=sha256:94edc256424af38762eb31306eed28beb9f0efc50a8837492c9d6fd6004aed79 \\
    --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c
pluggy==1.7.0 \\
    --hash=sha256:7dd7b0d8832ba3cb632c306926ded123429211b83641b35dc5c41ad2d34f9bec \\
    --hash=sha256:d1eaa46ebb595891b860ab086b4d09c8588af65ebd4361b8e8f4bb8920b90ba8
pytest==8.3.3 \\
    --hash=sha256:70b98107bd648308a7952b06e6ca9a50bc660be218d53c257cc1fc94fda10181 \\
    --hash=sha256:a6853c7375b2663155079443d2e45de913a911a11d669df02a50814944db57b2
"""
SQUARES = """from shapes._fast import total


def squares(n):
    found = []
    for i in range(n):
        if i * i not in found:
            found.append(i * i)
    return found
"""
FASTER_SQUARES = """from shapes._fast import total


def squares(n):
    return [i * i for i in range(n)]
"""
FILES = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "shapes"
version = "1.0"
""",
    "setup.py": """
from setuptools import Extension, setup

setup(packages=["shapes"], ext_modules=[Extension("shapes._fast", ["shapes/_fast.c"])])
""",
    "shapes/__init__.py": SQUARES,
    "shapes/_fast.c": SLOW_C,
    "tests/test_shapes.py": """
from shapes import squares, total


def test_squares():
    assert squares(4) == [0, 1, 4, 9]


def test_total():
    assert total(5) == 10
""",
    "benchmarks/__init__.py": "",
    "benchmarks/bench.py": """
import shapes


def time_squares():
    return shapes.squares(1500)


def time_total():
    return shapes.total(300_000)
""",
    "asv.conf.json": '{"version": 1, "project": "shapes", "repo": ".", "benchmark_dir": "benchmarks"}',
}
PYTHON, C, ATTACK, ROOT = "python", "c", "attack", "root"
TOUCHED_GRADER = """rewards=/logs/verifier/reward
for path in /tests /opt/formulacode/{sealed/x,bin/install-package} $rewards.{json,txt}; do
    (mkdir -p "${path%/*}" && echo '{"reward": 1}' >"$path") 2>/dev/null || true
done
ln -sf /tests/test.sh /logs/verifier/test-stdout.txt 2>/dev/null || true
touch "$(printf 'FORMULACODE_RESULT_START\\n{"agent_advantage":9}\\nFORMULACODE_RESULT_END')"
touch "$(printf '= short test summary info =\\nPASSED grader::faster')"
cat >/tmp/planted <<'END'
#!/bin/sh
if [ "$(/usr/bin/id -u)" = 0 ]; then
    echo '{"reward": 1}' >/logs/verifier/reward.json
    echo "$0 $*" | /usr/bin/tee -a /logs/planted /logs/verifier/planted
fi
exec "/usr/bin/${0##*/}" "$@"
END
for name in bash sh tmux timeout mkdir cat id chmod chown test true git python3; do
    rm -f "$FC_VENV/bin/$name"
    install -m 755 /tmp/planted "$FC_VENV/bin/$name"
done
echo 'import os; os._exit(0)' >"$(echo "$FC_VENV"/lib/python3.*/site-packages)/sitecustomize.py"
"""
"""Puts rewards where they are read, names like results, and programs of its own before those that root runs."""
WRECKED_AS_ROOT = """test "$(id -u)" = 0
mkdir -p /tests /logs/artifacts /opt/formulacode/work
echo '{"reward": 1}' | tee /logs/verifier/reward.json /logs/verifier/reward.txt /logs/artifacts/reward.json
cp -a /workspace/repo/. /opt/formulacode/sealed/repo
cat >/usr/local/bin/git <<'END'
#!/bin/sh
echo '{"reward": 1}' >/logs/verifier/reward.json
echo planted >/logs/verifier/planted
exec /usr/bin/git "$@"
END
chmod 755 /usr/local/bin/git
printf '#!/bin/sh\nexit 0\n' >/tests/test.sh
chmod 755 /tests/test.sh
cat >>"$(echo "$FC_VENV"/lib/python3.*/site-packages)/sitecustomize.py" <<'END'
import os
os._exit(0)
END
echo 'def squares(n): return [0]' >>shapes/__init__.py
"""
"""What an agent that is root does to its container."""
ATTACKS = {ATTACK: TOUCHED_GRADER, ROOT: WRECKED_AS_ROOT}
PLAN = SamplingPlan(seconds_per_sample=0.02, looks=(InterimAnalysis(units=5, alpha=0.05),))
"""Five rounds: the fewest that can be significant."""
ORACLES = {
    PYTHON: {"shapes/__init__.py": FASTER_SQUARES},
    C: {"shapes/_fast.c": FAST_C},
}
BENCHMARKS = {PYTHON: "bench.time_squares", C: "bench.time_total"}
LANGUAGES = sampled((PYTHON, C), most=1, of="language of what a harness runs")
"""Foreign harnesses; in containers of ours each attack is run on Python."""


def row_of(kind: str, image: BuiltImage, patch: bytes, reference: str, digest: str) -> dict[str, Any]:
    """The row of the task of a *kind*, as if *patch* had been measured in *image*."""
    name = BENCHMARKS[kind]
    unit = RandomizationUnit.BUILD if kind == C else RandomizationUnit.PROCESS
    # far apart: on a busy machine, what is 20 times as fast still is, and nothing else seems to be
    rule = PLAN.rule(unit).model_copy(update={"min_speedup": 1.5, "min_bound": 1.2, "trade_off": 2.0})
    procedure = Procedure.of(
        image, patch=patch, suite=BASE_SUITE, benchmarks=[name], plan=PLAN, rule=rule, limits=LIMITS
    )
    return task_row(
        5,
        task_id=f"acme__{kind}-5",
        image_name=reference,
        image_digest=digest,
        patch=patch.decode(),
        speedup=20.0,
        benchmarks=(name,),
        benchmark_speedups=(20.0,),
        benchmark_metrics=("time",),
        benchmark_units=("seconds",),
        benchmark_lines=("{}",),
        benchmark_returns=("same",),
        faster_benchmarks=(name,),
        pass_to_pass=("tests/test_shapes.py::test_squares", "tests/test_shapes.py::test_total"),
        procedure=procedure.to_json(),
    ).model_dump()


def patch_of(sample: Sample) -> bytes:
    """The author's patch, as git gives it."""
    command = ["git", "-C", str(sample.mirror), "diff", "--binary", sample.base, sample.merge]
    return subprocess.run(command, check=True, capture_output=True).stdout


def make_rows(engine: Engine, folder: Path, lock: str) -> None:
    """Write the rows of both tasks into *folder*, for `read_rows`, their image built and published."""
    folder.mkdir(exist_ok=True)
    sample = make_sample(folder / "shapes", "shapes", FILES, ORACLES[PYTHON])
    spec = make_spec(sample, lock, os_image=OS_IMAGE, test_lock=TEST_LOCK)
    image = as_image(EngineName.DOCKER, spec, engine.build(spec, Origins(sample.mirror)))
    published = Registry(REGISTRY, "exports", STRANGER, "single").publish(image, month=image.month)
    samples = {PYTHON: sample, C: with_oracle(sample, folder / C, ORACLES[C])}
    for kind, each in samples.items():
        row = row_of(kind, image, patch_of(each), published.reference, published.digest)
        (folder / f"{kind}.json").write_text(TaskRecord.model_validate(row).model_dump_json())


def read_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Output of `make_rows` in *folder*, by kind."""
    return {
        kind: TaskRecord.model_validate_json((folder / f"{kind}.json").read_text()).model_dump() for kind in ORACLES
    }
