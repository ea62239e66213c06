"""What a measurement costs, and how often it is wrong.

Builds one small image with the process engine, then measures refactorings without effect (every one called faster is a
false positive) and real speed-ups of 1.3x (every one not found is a miss). Needs the package index once, for the image.

    python bench/measure.py --placebo-tasks 10 --real-tasks 3

The last line is JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import uv

from formulacode_dagster.engines.process.engine import ProcessEngine
from formulacode_dagster.measurement.machine import machine
from formulacode_dagster.measurement.measure import measure_task
from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.models.image import BuildSpec, BuiltImage, EngineName, ResourceLimits
from formulacode_dagster.models.measurement import Measurement, Side
from formulacode_dagster.models.pull_request import Change, MergedPullRequest, MergeKind, PullRequest
from formulacode_dagster.specs.context import Origins
from formulacode_dagster.specs.spec import INSTRUMENT
from formulacode_dagster.suites.overlays import SuiteFiles

BASE = "def work(n):\n    total = 0\n    for i in range(n):\n        total += i * i\n    return total\n"
REFACTORED = BASE.replace("total", "result")
REAL = BASE.replace("range(n)", "range(int(n / 1.3))")
FILES = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n'
    '[project]\nname = "tiny"\nversion = "1.0"\n\n[tool.setuptools]\npackages = ["tiny"]\n',
    "tiny/__init__.py": BASE,
    "benchmarks/__init__.py": "",
    "benchmarks/bench.py": "import tiny\n\n\nclass TimeWork:\n    params = [300, 3000]\n\n"
    "    def time_work(self, n):\n        tiny.work(n)\n",
}
MOMENT = datetime(2026, 2, 3, tzinfo=UTC)


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--placebo-tasks", type=int, default=10)
    parser.add_argument("--real-tasks", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fc-bench-") as folder:
        repository = Path(folder, "repository")
        base = commit(repository)
        engine = ProcessEngine(Path(folder, "engine"), ResourceLimits())
        image = build(engine, repository, base)
        false_positives, placebo_seconds, placebo_samples = run(
            engine, image, repository, REFACTORED, options.placebo_tasks
        )
        found, real_seconds, real_samples = run(engine, image, repository, REAL, options.real_tasks)
    tasks = options.placebo_tasks + options.real_tasks
    seconds = placebo_seconds + real_seconds
    figures = {
        "tasks": tasks,
        "seconds_per_task": round(seconds / tasks, 2),
        "seconds_per_sample": round(seconds / (placebo_samples + real_samples), 3),
        "false_positives": false_positives,
        "placebo_tasks": options.placebo_tasks,
        "real_found": found,
        "real_tasks": options.real_tasks,
        "machine": machine(),
    }
    print(json.dumps(figures))


def run(engine: ProcessEngine, image: BuiltImage, repository: Path, changed: str, tasks: int) -> tuple[int, float, int]:
    """How many of *tasks* measurements of one change were called faster, in how many seconds, from how many samples."""
    patch = diff(repository, changed)
    faster, samples, start = 0, 0, time.monotonic()
    for number in range(tasks):
        measured = one(engine, image, patch, seed=number)
        faster += measured.is_faster
        samples += sum(len(result.samples) for result in measured.results)
        speedups = ", ".join(
            f"{result.speedup:.3f} (placebo {result.placebo_speedup:.3f})" for result in measured.results
        )
        print(f"{number + 1} of {tasks}: {'faster' if measured.is_faster else 'not faster'}; {speedups}")
    return faster, time.monotonic() - start, samples


def one(engine: ProcessEngine, image: BuiltImage, patch: bytes, *, seed: int) -> Measurement:
    """One measurement of *patch*."""
    facts = MergedPullRequest(
        month=image.month, repository_id=1, repository="acme/tiny", number=1, title="Bench", created_at=MOMENT,
        merged_at=MOMENT, base_ref="main", head_sha="0" * 40, merge_commit_sha="0" * 40,
    )  # fmt: skip
    change = Change(
        month=image.month, repository_id=1, number=1, merge_kind=MergeKind.SQUASH, base_sha=image.spec.base_sha,
        merge_tree_sha="0" * 40, patch_sha256=hashlib.sha256(patch).hexdigest(), patch_bytes=len(patch), files=(),
    )  # fmt: skip
    measured, _ = measure_task(
        engine,
        image,
        pr=PullRequest(facts=facts, change=change),
        patch=patch,
        suite=SuiteFiles("base"),
        plan=SamplingPlan(seed=seed),
        limits=ResourceLimits(),
        run_id="bench",
    )
    assert {sample.side for result in measured.results for sample in result.samples} == set(Side)
    return measured


def git(repository: Path, *arguments: str) -> bytes:
    """What git prints."""
    command = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def commit(repository: Path) -> str:
    """Make the repository; returns its only commit."""
    for path, text in FILES.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text)
    git(repository, "init", "-q", "-b", "main")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "base")
    return git(repository, "rev-parse", "HEAD").decode().strip()


def diff(repository: Path, changed: str) -> bytes:
    """The patch that gives the module the text *changed*."""
    module = repository / "tiny/__init__.py"
    module.write_text(changed)
    patch = git(repository, "diff")
    module.write_text(BASE)
    return patch


def build(engine: ProcessEngine, repository: Path, base: str) -> BuiltImage:
    """The image of the repository at *base*."""
    command = [uv.find_uv_bin(), "--no-config", "pip", "compile", "--quiet", "--generate-hashes", "-"]
    lock = subprocess.run(command, input=b"setuptools==75.3.0\n", capture_output=True, check=True).stdout.decode()
    spec = BuildSpec(
        task_id="acme__tiny-1", repository="acme/tiny", repository_id=1, base_sha=base, anchor_sha=base, python="3.11",
        os_image="unused:{python}", instrument=INSTRUMENT, lock=lock,
        lock_sha256=hashlib.sha256(lock.encode()).hexdigest(), package_name="tiny", benchmark_dir="benchmarks",
    )  # fmt: skip
    outcome = engine.build(spec, Origins(repository / ".git"))
    return BuiltImage(
        month="2026-02", repository_id=1, number=1, engine=EngineName.PROCESS, spec=spec, tag=outcome.tag,
        digest=outcome.digest, location=outcome.location, size_bytes=outcome.size_bytes,
        build_seconds=outcome.seconds, tiers=outcome.tiers, benchmarks=(), verifications=(),
    )  # fmt: skip


if __name__ == "__main__":
    main()
