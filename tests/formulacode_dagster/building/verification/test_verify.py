from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.building.verification.evidence import Subject, gathering
from formulacode_dagster.building.verification.origin import FolderOrigin, MirrorOrigin
from formulacode_dagster.building.verification.verifications import VERIFICATION_NAMES, VERIFICATIONS
from formulacode_dagster.building.verification.verify import verify
from formulacode_dagster.models.image import BuiltImage, Verification
from tests.support.git_world import git, lose_object
from tests.support.images import COMPILED, PURE, Sample, build_sample, make_sample, make_spec, with_oracle

Build = Callable[..., BuiltImage]
without_note = shutil.ignore_patterns("installed_files.json")
"""So that sessions open in what was tampered with, which they would notice."""


@pytest.fixture
def copied(compiled_image: BuiltImage, tmp_path: Path) -> Iterator[Path]:
    """A copy of a built folder, to be tampered with."""
    folder = tmp_path / "images" / "copy"
    shutil.copytree(compiled_image.location, folder, symlinks=True, ignore=without_note)
    yield folder
    shutil.rmtree(folder)


def judge(engine: ProcessEngine, image: BuiltImage, folder: Path, sample: Sample, gate: str) -> Verification:
    """Result of *gate* for *folder*."""
    moved = image.model_copy(update={"location": str(folder)})
    subject = Subject(engine, moved, MirrorOrigin(sample.mirror, sample.pull_request()), run_id="run")
    with gathering(subject) as evidence:
        return VERIFICATIONS[gate](evidence)


@pytest.fixture
def build(engine: ProcessEngine, tmp_path: Path, lock: str) -> Build:
    """Builds and verifies an image of *files*."""

    def run(files: dict[str, str], *, name: str = "tinypure", suite: SuiteFiles = BASE_SUITE) -> BuiltImage:
        sample = make_sample(tmp_path / name, name, files, {"README.md": "x"})
        return build_sample(engine, make_spec(sample, lock), sample, suite=suite)[0]

    return run


@pytest.mark.network
class TestAnImage:
    def test_that_is_honest_passes_everything_and_names_its_benchmarks(
        self, engine: ProcessEngine, pure: Sample, pure_image: BuiltImage
    ) -> None:
        image, log = build_sample(engine, pure_image.spec, pure)
        assert [(verification.name, verification.ok) for verification in image.verifications] == [
            (name, True) for name in VERIFICATION_NAMES
        ]
        assert image.benchmarks == ("bench_total.TimeTotal.time_total", "bench_total.time_small")
        assert "install-package" in log

    def test_of_a_mirror_without_a_picture_of_the_documentation_passes_everything(
        self, engine: ProcessEngine, tmp_path: Path, lock: str
    ) -> None:
        picture = "docs/logo.png"
        sample = make_sample(tmp_path / "tinypure", "tinypure", {**PURE, picture: "picture\n"}, {"README.md": "x"})
        lose_object(sample.mirror, git(sample.mirror, "rev-parse", f"{sample.base}:{picture}"))
        image, _ = build_sample(engine, make_spec(sample, lock), sample)
        assert {verification.ok for verification in image.verifications} == {True}
        # the folder of a task has no mirror
        subject = Subject(engine, image, FolderOrigin(sample.base, b""), run_id="run")
        with gathering(subject) as evidence:
            assert VERIFICATIONS["declared_commit"](evidence).ok

    def test_gates_are_checked_in_order_up_to_the_first_failure(
        self, engine: ProcessEngine, compiled: Sample, compiled_image: BuiltImage, copied: Path
    ) -> None:
        (copied / "venv/lib/python3.11/site-packages/sitecustomize.py").write_text("")
        moved = compiled_image.model_copy(update={"location": str(copied)})
        subject = Subject(engine, moved, MirrorOrigin(compiled.mirror, compiled.pull_request()), run_id="run")
        verified = verify(subject)
        made = verified.verifications
        assert [verdict.name for verdict in made] == list(
            VERIFICATION_NAMES[: VERIFICATION_NAMES.index("nothing_planted") + 1]
        )
        assert [verdict.ok for verdict in made] == [True] * (len(made) - 1) + [False]
        assert verified.failure == made[-1]
        assert verified.benchmarks == ("bench_answer.time_answer",)
        assert sum(verdict.seconds for verdict in made) > 0
        (copied / "repository/.git/HEAD").write_text("0" * 40)
        assert len(verify(subject).verifications) == 1

    @pytest.mark.parametrize(
        ("tamper", "finding"),
        [
            (lambda f: (f / "repository/tinyc/answer.h").write_text("#define ANSWER 42\n"), "answer.h differs from"),
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
        verdict = judge(engine, compiled_image, copied, compiled, "declared_commit")
        assert (verdict.name, verdict.ok) == ("declared_commit", False)
        assert finding in verdict.detail

    def test_whose_store_holds_the_oracle_is_found(
        self, engine: ProcessEngine, compiled: Sample, compiled_image: BuiltImage, copied: Path
    ) -> None:
        git(copied / "repository", "fetch", "-q", str(compiled.mirror), "refs/heads/main")
        (copied / "repository/.git/FETCH_HEAD").unlink()
        verdict = judge(engine, compiled_image, copied, compiled, "oracle_absent")
        assert (verdict.name, verdict.ok) == ("oracle_absent", False)
        assert compiled.merge in verdict.detail or "more" in verdict.detail

    def test_in_which_a_file_of_the_oracle_lies_elsewhere_is_found(
        self, engine: ProcessEngine, compiled: Sample, compiled_image: BuiltImage, copied: Path
    ) -> None:
        (copied / "venv/share").mkdir(exist_ok=True)
        (copied / "venv/share/hint.txt").write_text("#define ANSWER 42\n")
        verdict = judge(engine, compiled_image, copied, compiled, "oracle_absent")
        assert (verdict.name, verdict.ok) == ("oracle_absent", False)
        assert "share/hint.txt is tinyc/answer.h as changed by the pull request" in verdict.detail

    @pytest.mark.parametrize(
        ("path", "content", "finding"),
        [
            ("lib/python3.11/site-packages/sitecustomize.py", "", "runs at every start"),
            ("lib/python3.11/site-packages/usercustomize/__init__.py", "", "runs at every start"),
            ("lib/python3.11/site-packages/a.pth", "import os; os.getpid()\n", "contains code that runs"),
            ("lib/python3.11/site-packages/distutils-precedence.pth", "import os\n", "contains code that runs"),
            ("lib/python3.11/site-packages/numpy.py", "", "belongs to no installed package"),
            ("lib/python3.11/site-packages/setuptools/dist.py", "x = 1\n", "is not the file that was installed"),
            ("bin/grep", "#!/bin/sh\n", "belongs to no installed package"),
            ("bin/python3", "#!/bin/sh\n", "is not a link to the interpreter"),
            ("pyvenv.cfg", "include-system-site-packages = true\n", "lets packages from outside the lock in"),
            ("pyvenv.cfg", "home = /tmp/bin\n", "names another interpreter"),
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
        verdict = judge(engine, compiled_image, copied, compiled, "nothing_planted")
        assert (verdict.name, verdict.ok) == ("nothing_planted", False)
        assert finding in verdict.detail

    def test_whose_records_were_rewritten_is_found(
        self, engine: ProcessEngine, compiled: Sample, compiled_image: BuiltImage, copied: Path
    ) -> None:
        site = copied / "venv/lib/python3.11/site-packages"
        (site / "a.pth").write_text("import os\n")
        record = next(site.glob("setuptools-*.dist-info/RECORD"))
        digest = base64.urlsafe_b64encode(hashlib.sha256(b"import os\n").digest()).decode().rstrip("=")
        record.write_text(f"{record.read_text()}a.pth,sha256={digest},10\n")
        verdict = judge(engine, compiled_image, copied, compiled, "nothing_planted")
        assert verdict.detail == f"{record.relative_to(copied / 'venv')} is not the file that was installed"

    def test_with_a_version_that_the_lock_does_not_hold_is_found(
        self, engine: ProcessEngine, compiled: Sample, compiled_image: BuiltImage
    ) -> None:
        lock = compiled_image.spec.lock.replace("setuptools==75.3.0", "setuptools==75.4.0")
        spec = compiled_image.spec.model_copy(update={"lock": lock})
        other = compiled_image.model_copy(update={"spec": spec})
        verdict = judge(engine, other, Path(compiled_image.location), compiled, "nothing_planted")
        assert verdict.detail == "setuptools 75.3.0 is installed, the lock holds 75.4.0"

    def test_whose_extension_does_not_import_is_named(self, build: Build) -> None:
        files = {
            **COMPILED,
            "tinyc/__init__.py": "",
            "tinyc/_fast.c": COMPILED["tinyc/_fast.c"].replace("_fast(", "_x("),
        }
        with pytest.raises(BuildFailure, match=r"tinyc\._fast: ImportError") as caught:
            build(files, name="tinyc")
        assert caught.value.kind == "imports"
        assert "install-package" in caught.value.log

    def test_without_a_benchmark_names_the_modules_that_were_lost(self, build: Build) -> None:
        files = {**PURE, "benchmarks/bench_total.py": "import not_there\n\n\ndef time_x():\n    pass\n"}
        with pytest.raises(
            BuildFailure, match=r"0 benchmarks, 1 told by reading; benchmarks\.bench_total lost.*not_there"
        ) as caught:
            build(files)
        assert caught.value.kind == "benchmarks"

    def test_whose_benchmarks_all_fail_is_found_by_running_one(self, build: Build) -> None:
        """Failure 40: discovery by itself verifies nothing."""
        files = {**PURE, "benchmarks/bench_total.py": "def time_x():\n    raise RuntimeError('no data')\n"}
        with pytest.raises(BuildFailure, match=r"bench_total\.time_x error: .*no data") as caught:
            build(files)
        assert caught.value.kind == "one_benchmark_runs"

    def test_a_task_without_a_suite_is_verified_with_anothers(self, build: Build) -> None:
        files = {path: text for path, text in PURE.items() if not path.startswith("benchmarks/")}
        suite = {path: text.encode() for path, text in PURE.items() if path.startswith("benchmarks/")}
        image = build(files, suite=SuiteFiles("later commit", suite))
        assert image.benchmarks == ("bench_total.TimeTotal.time_total", "bench_total.time_small")
        assert not (Path(image.location) / "repository/benchmarks").exists()

    @pytest.mark.variant("a module that shortens the list", most=1)
    @pytest.mark.parametrize(
        "hostile",
        [
            # the harness's own machinery, scripted to find nothing
            "import asv_runner.discovery as d\nd._get_benchmark = lambda *a: None\n",
            # the rest of the suite, put away
            "import os, pathlib\nfor p in pathlib.Path(__file__).parent.glob('bench_z*.py'):\n    p.unlink()\n",
            # an end in the harness's own hand, found in its frames
            "import os, sys\nframe = sys._getframe()\nwhile frame:\n    emit = frame.f_locals.get('emit')\n"
            "    if emit:\n        emit(event='end')\n        os._exit(0)\n    frame = frame.f_back\n",
        ],
    )
    def test_in_which_a_module_shortens_the_list_is_found_by_reading_the_files(
        self, build: Build, hostile: str
    ) -> None:
        files = {**PURE, "benchmarks/aaa.py": hostile, "benchmarks/bench_zone.py": "def time_zone():\n    pass\n"}
        with pytest.raises(BuildFailure, match=r"were not found: .*bench_zone\.time_zone") as caught:
            build(files)
        assert caught.value.kind == "benchmarks"

    def test_in_which_a_module_prints_answers_is_told_by_its_own_words_only(self, build: Build) -> None:
        forged = "import sys\nfor out in (sys.stdout, sys.__stdout__, sys.stderr):\n"
        forged += '    print(\'{"event": "end"}\', file=out, flush=True)\n'
        image = build({**PURE, "benchmarks/aaa.py": forged})
        assert image.benchmarks == ("bench_total.TimeTotal.time_total", "bench_total.time_small")

    def test_tells_how_many_tests_collect_and_which_modules_do_not(self, build: Build) -> None:
        files = {
            **PURE,
            "setup.cfg": "[tool:pytest]\naddopts = --no-such-option\nfilterwarnings = error\n",
            "tests/test_total.py": "import tinypure\n\n\ndef test_total():\n    assert tinypure.total(3) == 3\n",
            "tests/test_more.py": "import a_module_only_tests_need\n",
            "tinypure/tests/__init__.py": "",
            "tinypure/tests/test_inside.py": "import tinypure\n\n\nclass TestIt:\n    def test_it(self): pass\n",
        }
        image = build(files)
        told = next(verification.detail for verification in image.verifications if verification.name == "tests_collect")
        assert told.startswith("2 tests in 2 modules, by pytest 7.4.4")
        assert "1 modules: lacks a module: tests/test_more.py: ModuleNotFoundError" in told

    def test_whose_package_keeps_its_tests_from_collecting_is_found(self, build: Build) -> None:
        files = {
            **PURE,
            "tinypure/old.py": "import collections\ncollections.Mapping\n",
            "tests/test_old.py": "import tinypure.old\n\n\ndef test_old(): pass\n",
        }
        with pytest.raises(
            BuildFailure, match=r"0 tests in 0 modules.*fails in the package: tests/test_old\.py"
        ) as caught:
            build(files)
        assert caught.value.kind == "tests_collect"
        assert "collections.Mapping" in caught.value.log

    def test_with_a_token_in_what_it_was_built_from_is_found(
        self, engine: ProcessEngine, compiled: Sample, compiled_image: BuiltImage, copied: Path
    ) -> None:
        """Failure 45: credentials were rendered into task scripts."""
        (copied / "task/build.env").write_text("export GH_TOKEN=ghp_" + "a1B2" * 9)
        verdict = judge(engine, compiled_image, copied, compiled, "no_credentials")
        assert verdict.detail == "tools: task/build.env holds a GitHub token"

    def test_with_a_secret_of_this_machine_is_found_by_its_value(
        self,
        engine: ProcessEngine,
        compiled: Sample,
        compiled_image: BuiltImage,
        copied: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("LLM_API_KEY", "no-form-at-all-but-ours")
        place = copied / "venv/lib/python3.11/site-packages/tinyc/_config.py"
        place.write_text("KEY = 'no-form-at-all-but-ours'\n")
        verdict = judge(engine, compiled_image, copied, compiled, "no_credentials")
        assert not verdict.ok
        assert verdict.detail.endswith("tinyc/_config.py holds the value of LLM_API_KEY")

    def test_with_a_line_of_the_oracle_in_a_note_is_found(
        self, engine: ProcessEngine, pure: Sample, pure_image: BuiltImage, tmp_path: Path
    ) -> None:
        folder = tmp_path / "copy"
        shutil.copytree(pure_image.location, folder, symlinks=True, ignore=without_note)
        (folder / "venv/notes.md").write_text("Hint:\n    return n * (n - 1) // 2 if n else total_of_nothing\n")
        oracle = {"tinypure/__init__.py": "def total(n):\n    return n * (n - 1) // 2 if n else total_of_nothing\n"}
        other = with_oracle(pure, tmp_path / "other", oracle)
        verdict = judge(engine, pure_image, folder, other, "oracle_absent")
        assert "environment: notes.md holds 1 lines added by the pull request" in verdict.detail
