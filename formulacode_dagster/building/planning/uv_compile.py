"""One call of `uv pip compile`: a question in uv's terms, with nothing of this machine in the answer."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from formulacode_dagster.building.engines.processes import Bounds, can_confine, run_bounded
from formulacode_dagster.building.engines.uv_runner import PYLOCK, UvCall, UvResult
from formulacode_dagster.building.engines.view import CommandView, existing, hand_over, installation_of

from .resolution import ResolutionRequest

KNOWN_METADATA = Path(__file__).with_name("known_metadata.toml")
PLATFORM = "linux"
BUILD_FLOOR = datetime(2019, 3, 1, tzinfo=UTC)
"""Cut-off for setuptools at least: installers speak PEP 517 to it, which it learnt with 40.8 in February 2019."""

_MODERN = sys.version_info >= (3, 12)
READING_FLOORS = {
    "setuptools": datetime(2024, 12, 1, tzinfo=UTC) if _MODERN else datetime(2021, 9, 1, tzinfo=UTC),
    "numpy": datetime(2024, 12, 1, tzinfo=UTC) if _MODERN else datetime(2022, 12, 1, tzinfo=UTC),
    "cython": datetime(2024, 12, 1, tzinfo=UTC) if _MODERN else datetime(2022, 12, 1, tzinfo=UTC),
}
"""Earliest cut-offs for source distributions read here: older ones have nothing for this interpreter."""

NEVER_COMPILED = ("numpy", "scipy")
"""Wheels only: pinned old build requirements would compile for minutes, mostly in vain."""


@dataclass(frozen=True)
class Uv:
    """The uv of this machine, and its cache."""

    program: str
    environment: Mapping[str, str]
    cache_dir: Path

    def compile(self, call: UvCall, *, interpreter: Path | None, timeout: float, runs_code: bool = True) -> UvResult:
        """Make *call* with *interpreter*, that of this process by default, in at most *timeout* seconds.

        It *runs_code* of source distributions, with no more of this machine than the interpreter if it can be confined.
        """
        python, cache, view = interpreter or Path(sys.executable), self.cache_dir.resolve(), None
        confined = runs_code and can_confine()
        if confined:
            # such code writes to a cache of its own, which nothing else reads
            python, cache = python.resolve(), cache.with_name(f"{cache.name}-sources")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fc-resolve-") as name:
            folder = Path(name)
            for file, text in call.files.items():
                (folder / file).write_text(text, encoding="utf-8")
            if confined:
                hand_over(folder, cache)
                tools = (Path(self.program), *installation_of(python), *existing(self.environment.values()))
                view = CommandView((folder, cache), tools)
            done = run_bounded(
                [self.program, *call.arguments, "--cache-dir", str(cache), "--python", str(python)],
                timeout=timeout,
                bounds=Bounds(apart=True, view=view),
                environment={**self.environment, "HOME": name, "TMPDIR": name},
                cwd=folder,
                stdin=call.requirements.encode(),
            )
            lock = folder / PYLOCK
            # code may have made it a link to a file of ours
            pylock = lock.read_text(encoding="utf-8") if done.ok and not lock.is_symlink() else ""
            return UvResult(done.rc, pylock, done.stderr.decode("utf-8", "replace"), done.timed_out)


def call_of(request: ResolutionRequest, *, ceilings: Sequence[str], fits: bool) -> UvCall:
    """*request* as uv takes it; the lock also keeps below *ceilings*. *fits* is as in `floors_of`."""
    arguments = [
        *("pip", "compile", "-", "--output-file", PYLOCK, "--format", "pylock.toml"),
        *("--no-header", "--no-annotate", "--no-progress", "--color", "never"),
        *("--config-file", KNOWN_METADATA.name, "--no-python-downloads", "--python-platform", PLATFORM),
        *_what_is_asked(request, floors_of(request, fits=fits)),
    ]
    files = {KNOWN_METADATA.name: KNOWN_METADATA.read_text("utf-8")}
    # uv omits overrides whose marker never holds
    left_out = [f"{request.own}; python_version < '0'"] if request.own else []
    for option, lines in (
        ("--constraints", [*request.constraints, *filter(None, ceilings)]),
        ("--build-constraints", request.constraints),
        ("--overrides", left_out),
    ):
        if lines:
            file = f"{option.strip('-')}.txt"
            files[file] = "\n".join(lines)
            arguments += [option, file]
    if request.preferred:
        files[PYLOCK] = request.preferred
    return UvCall(tuple(arguments), files, "".join(f"{requirement}\n" for requirement in request.requirements))


def floors_of(request: ResolutionRequest, *, fits: bool) -> dict[str, datetime]:
    """The cut-offs of single projects: those of the question, and later ones for build requirements.

    *fits* says that source distributions are read by the interpreter that the question is about.
    """
    own = READING_FLOORS if request.reads_sources and not fits else {"setuptools": BUILD_FLOOR}
    later = {name: floor for name, floor in own.items() if request.exclude_newer < floor}
    return {**later, **{name: max(floor, later.get(name, floor)) for name, floor in request.floors.items()}}


def instant(moment: datetime) -> str:
    """*moment* as uv takes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _what_is_asked(request: ResolutionRequest, floors: Mapping[str, datetime]) -> list[str]:
    arguments = ["--python-version", request.python, "--exclude-newer", instant(request.exclude_newer)]
    for name, floor in sorted(floors.items()):
        arguments += ["--exclude-newer-package", f"{name}={instant(floor)}"]
    for name in sorted({*request.as_wheels, *NEVER_COMPILED}) if request.reads_sources else (":all:",):
        arguments += ["--only-binary", name]
    if request.earliest:
        arguments += ["--resolution", "lowest", "--no-deps"]
    return arguments
