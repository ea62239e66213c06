"""One call of `uv pip compile`: what a question is in uv's terms, with nothing of this machine in the answer."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from formulacode_dagster.models.errors import ItemFailure

from . import uv_words
from .question import Question
from .subprocesses import run_bounded

KNOWN_METADATA = Path(__file__).with_name("known_metadata.toml")
BUILD_FLOOR = datetime(2019, 3, 1, tzinfo=UTC)
"""Cut-off for setuptools at least: installers speak PEP 517 to it, which it learnt with 40.8 in February 2019."""

_MODERN = sys.version_info >= (3, 12)
READING_FLOORS = {
    "setuptools": datetime(2024, 12, 1, tzinfo=UTC) if _MODERN else datetime(2021, 9, 1, tzinfo=UTC),
    "numpy": datetime(2024, 12, 1, tzinfo=UTC) if _MODERN else datetime(2022, 12, 1, tzinfo=UTC),
    "cython": datetime(2024, 12, 1, tzinfo=UTC) if _MODERN else datetime(2022, 12, 1, tzinfo=UTC),
}
"""Cut-offs at least for what reads source distributions here: older ones have nothing for this interpreter."""

_LOG_TAIL = 4000


@dataclass(frozen=True)
class Answer:
    """How uv ended; `pylock` is what it wrote when `rc` is 0."""

    rc: int
    pylock: str
    log: str


@dataclass(frozen=True)
class Uv:
    """The program, and where it runs. *fitting* is the interpreter of the question, where this machine has it."""

    program: str
    environment: Mapping[str, str]
    cache_dir: Path
    platform: str
    timeout: float

    def compile(self, question: Question, *, fitting: Path | None, ceilings: Sequence[str] = ()) -> Answer:
        """Ask *question*; the lock also keeps below *ceilings*. Raises ItemFailure (`timeout`)."""
        self.cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fc-resolve-") as name:
            folder, output = Path(name), Path(name, "pylock.toml")
            bounds = [*question.constraints, *filter(None, ceilings)]
            arguments = [*self._settings(fitting), *_what_is_asked(question, floors_of(question, fitting=fitting))]
            # uv leaves out what a marker that never holds overrides
            left_out = [f"{question.own}; python_version < '0'"] if question.own else []
            for option, lines in (
                ("--constraints", bounds),
                ("--build-constraints", question.constraints),
                ("--overrides", left_out),
            ):
                file = folder / f"{option.strip('-')}.txt"
                file.write_text("\n".join(lines), encoding="utf-8")
                arguments += [option, file.name] if lines else []
            if question.preferred:
                output.write_text(question.preferred, encoding="utf-8")
            outcome = run_bounded(
                arguments,
                environment={**self.environment, "HOME": name, "TMPDIR": name},
                cwd=folder,
                timeout=self.timeout,
                stdin="".join(f"{requirement}\n" for requirement in question.requirements),
            )
            log = uv_words.scrub(outcome.stderr)
            if outcome.timed_out:
                raise ItemFailure(
                    "timeout",
                    f"resolving {len(question.requirements)} requirements took longer than {self.timeout:.0f} s",
                    log_tail=log[-_LOG_TAIL:],
                )
            return Answer(outcome.rc, output.read_text(encoding="utf-8") if outcome.rc == 0 else "", log)

    def _settings(self, fitting: Path | None) -> list[str]:
        return [
            *(self.program, "pip", "compile", "-", "--output-file", "pylock.toml", "--format", "pylock.toml"),
            *("--no-header", "--no-annotate", "--no-progress", "--color", "never"),
            *("--config-file", str(KNOWN_METADATA), "--cache-dir", str(self.cache_dir.resolve())),
            *("--no-python-downloads", "--python", str(fitting or sys.executable)),
            *("--python-platform", self.platform),
        ]


def floors_of(question: Question, *, fitting: Path | None) -> dict[str, datetime]:
    """The cut-offs of single projects: those the question sets, and later ones for what builds."""
    own = READING_FLOORS if question.reads_sources and fitting is None else {"setuptools": BUILD_FLOOR}
    later = {name: floor for name, floor in own.items() if question.exclude_newer < floor}
    return {**later, **{name: max(floor, later.get(name, floor)) for name, floor in question.floors.items()}}


def instant(moment: datetime) -> str:
    """*moment* as uv takes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _what_is_asked(question: Question, floors: Mapping[str, datetime]) -> list[str]:
    arguments = ["--python-version", question.python, "--exclude-newer", instant(question.exclude_newer)]
    for name, floor in sorted(floors.items()):
        arguments += ["--exclude-newer-package", f"{name}={instant(floor)}"]
    for name in question.as_wheels if question.reads_sources else (":all:",):
        arguments += ["--only-binary", name]
    if question.earliest:
        arguments += ["--resolution", "lowest", "--no-deps"]
    return arguments
