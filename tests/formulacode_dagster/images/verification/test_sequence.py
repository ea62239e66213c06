from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from formulacode_dagster.environments.suite_files import SuiteFiles
from formulacode_dagster.images.build import build_task_image
from formulacode_dagster.images.failures import BuildFailure
from formulacode_dagster.images.process_engine import ProcessEngine
from formulacode_dagster.images.verification import ORDER, verify_image
from formulacode_dagster.models.image import BuiltImage, Verification

from ..conftest import COMPILED, LIMITS, PURE, Sample, git, make_sample, make_spec


@pytest.fixture
def copied(compiled_image: BuiltImage, tmp_path: Path) -> Iterator[Path]:
    """A copy of a built folder, to be tampered with."""
    folder = tmp_path / "images" / "copy"
    shutil.copytree(compiled_image.location, folder, symlinks=True)
    yield folder
    shutil.rmtree(folder)


def judge(engine: ProcessEngine, image: BuiltImage, folder: Path, sample: Sample) -> Verification:
    """The last verification that was made of *folder*."""
    moved = image.model_copy(update={"location": str(folder)})
    verified = verify_image(engine, moved, mirror=sample.mirror, pr=sample.pull_request(), run_id="run")
    made = verified.verifications
    assert [one.name for one in made] == list(ORDER[: len(made)])
    assert all(one.ok for one in made[:-1])
    assert verified.failure == (None if made[-1].ok else made[-1])
    return made[-1]


@pytest.mark.network
class TestAnImage:
    def test_that_is_honest_passes_everything_and_names_its_benchmarks(
        self, engine: ProcessEngine, pure: Sample, pure_image: BuiltImage
    ) -> None:
        image, log = build_task_image(engine, pure_image.spec, mirror=pure.mirror, pr=pure.pull_request(), run_id="run")
        assert [(one.name, one.ok) for one in image.verifications] == [(name, True) for name in ORDER]
        assert image.benchmarks == ("bench_total.TimeTotal.time_total", "bench_total.time_small")
        assert "install-package" in log

    @pytest.mark.parametrize(
        ("tamper", "finding"),
        [
            (lambda f: (f / "repository/tinyc/answer.h").write_text("#define ANSWER 42\n"), "answer.h is not what"),
            (lambda f: (f / "repository/tinyc/answer.h").unlink(), "answer.h is missing"),
            (lambda f: (f / "repository/conftest.py").write_text("x = 1"), "conftest.py is not in the commit"),
            (lambda f: (f / "repository/.git/HEAD").write_text("0" * 40), "HEAD is 000"),
        ],
    )
    def test_whose_checkout_is_not_the_declared_commit_is_found(
        self,
        engine: ProcessEngine,
        compiled: Sample,
        compiled_image: BuiltImage,
        copied: Path,
        tamper: Callable[[Path], object],
        finding: str,
    ) -> None:
        tamper(copied)
        verdict = judge(engine, compiled_image, copied, compiled)
        assert (verdict.name, verdict.ok) == ("declared_commit", False)
        assert finding in verdict.detail

    def test_whose_store_holds_the_oracle_is_found(
        self, engine: ProcessEngine, compiled: Sample, compiled_image: BuiltImage, copied: Path
    ) -> None:
        git(copied / "repository", "fetch", "-q", str(compiled.mirror), "refs/heads/main")
        (copied / "repository/.git/FETCH_HEAD").unlink()
        verdict = judge(engine, compiled_image, copied, compiled)
        assert (verdict.name, verdict.ok) == ("oracle_absent", False)
        assert compiled.merge in verdict.detail or "more" in verdict.detail

    def test_in_which_a_file_of_the_oracle_lies_elsewhere_is_found(
        self, engine: ProcessEngine, compiled: Sample, compiled_image: BuiltImage, copied: Path
    ) -> None:
        (copied / "venv/share").mkdir(exist_ok=True)
        (copied / "venv/share/hint.txt").write_text("#define ANSWER 42\n")
        verdict = judge(engine, compiled_image, copied, compiled)
        assert (verdict.name, verdict.ok) == ("oracle_absent", False)
        assert "share/hint.txt is tinyc/answer.h as the pull request left it" in verdict.detail

    @pytest.mark.parametrize(
        ("path", "content", "finding"),
        [
            ("lib/python3.11/site-packages/sitecustomize.py", "", "runs at every start"),
            ("lib/python3.11/site-packages/usercustomize/__init__.py", "", "runs at every start"),
            ("lib/python3.11/site-packages/a.pth", "import os; os.getpid()\n", "holds code that runs"),
            ("lib/python3.11/site-packages/distutils-precedence.pth", "import os\n", "holds code that runs"),
            ("lib/python3.11/site-packages/numpy.py", "", "belongs to no installed package"),
            ("lib/python3.11/site-packages/setuptools/dist.py", "x = 1\n", "is not the file that was installed"),
            ("bin/grep", "#!/bin/sh\n", "belongs to no installed package"),
            ("bin/python3", "#!/bin/sh\n", "is not a link to the interpreter"),
            ("pyvenv.cfg", "include-system-site-packages = true\n", "lets packages from outside the lock in"),
            ("../instrument/asv_runner/run.py", "x = 1\n", "is not the file that was installed"),
        ],
    )
    def test_in_which_something_was_planted_is_found(
        self,
        engine: ProcessEngine,
        compiled: Sample,
        compiled_image: BuiltImage,
        copied: Path,
        path: str,
        content: str,
        finding: str,
    ) -> None:
        place = copied / "venv" / path
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_text(content)
        verdict = judge(engine, compiled_image, copied, compiled)
        assert (verdict.name, verdict.ok) == ("nothing_planted", False)
        assert finding in verdict.detail

    def test_with_a_version_that_the_lock_does_not_hold_is_found(
        self, engine: ProcessEngine, compiled: Sample, compiled_image: BuiltImage
    ) -> None:
        lock = compiled_image.spec.lock.replace("setuptools==75.3.0", "setuptools==75.4.0")
        spec = compiled_image.spec.model_copy(update={"lock": lock})
        other = compiled_image.model_copy(update={"spec": spec})
        verdict = judge(engine, other, Path(compiled_image.location), compiled)
        assert verdict.detail == "setuptools 75.3.0 is installed, the lock holds 75.4.0"

    def test_whose_extension_does_not_import_is_named(self, tmp_path: Path, lock: str) -> None:
        files = {
            **COMPILED,
            "tinyc/__init__.py": "",
            "tinyc/_fast.c": COMPILED["tinyc/_fast.c"].replace("_fast(", "_x("),
        }
        sample = make_sample(tmp_path / "tinyc", "tinyc", files, {"README.md": "x"})
        engine = ProcessEngine(tmp_path / "root", LIMITS)
        with pytest.raises(BuildFailure, match=r"tinyc\._fast: ImportError") as caught:
            build_task_image(
                engine, make_spec(sample, lock), mirror=sample.mirror, pr=sample.pull_request(), run_id="run"
            )
        assert caught.value.kind == "imports"
        assert "install-package" in caught.value.log

    def test_without_a_benchmark_names_the_modules_that_were_lost(self, tmp_path: Path, lock: str) -> None:
        files = {**PURE, "benchmarks/bench_total.py": "import not_there\n\n\ndef time_x():\n    pass\n"}
        sample = make_sample(tmp_path / "tinypure", "tinypure", files, {"README.md": "x"})
        engine = ProcessEngine(tmp_path / "root", LIMITS)
        with pytest.raises(
            BuildFailure, match=r"0 benchmarks, 1 told by reading; benchmarks\.bench_total lost.*not_there"
        ) as caught:
            build_task_image(
                engine, make_spec(sample, lock), mirror=sample.mirror, pr=sample.pull_request(), run_id="run"
            )
        assert caught.value.kind == "benchmarks"

    def test_whose_benchmarks_all_fail_is_found_by_running_one(self, tmp_path: Path, lock: str) -> None:
        """Failure 40: discovery alone verifies nothing."""
        files = {**PURE, "benchmarks/bench_total.py": "def time_x():\n    raise RuntimeError('no data')\n"}
        sample = make_sample(tmp_path / "tinypure", "tinypure", files, {"README.md": "x"})
        engine = ProcessEngine(tmp_path / "root", LIMITS)
        with pytest.raises(BuildFailure, match=r"bench_total\.time_x error: .*no data") as caught:
            build_task_image(
                engine, make_spec(sample, lock), mirror=sample.mirror, pr=sample.pull_request(), run_id="run"
            )
        assert caught.value.kind == "one_benchmark_runs"

    def test_without_a_suite_of_its_own_is_verified_with_the_one_of_another_commit(
        self, tmp_path: Path, lock: str
    ) -> None:
        files = {path: text for path, text in PURE.items() if not path.startswith("benchmarks/")}
        sample = make_sample(tmp_path / "tinypure", "tinypure", files, {"README.md": "x"})
        suite = {path: text.encode() for path, text in PURE.items() if path.startswith("benchmarks/")}
        engine = ProcessEngine(tmp_path / "root", LIMITS)
        image, _ = build_task_image(
            engine,
            make_spec(sample, lock),
            mirror=sample.mirror,
            pr=sample.pull_request(),
            run_id="run",
            suite=SuiteFiles("later commit", suite),
        )
        assert image.benchmarks == ("bench_total.TimeTotal.time_total", "bench_total.time_small")
        assert not (Path(image.location) / "repository/benchmarks").exists()
