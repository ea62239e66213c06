"""One call of `uv pip compile`, made repeatable: hashes, a cut-off date, nothing of this machine in the answer."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError

from . import uv_words
from .declaration import requirement_name
from .lock import read_lock
from .subprocesses import run_bounded

BUILD_FLOOR = datetime(2019, 3, 1, tzinfo=UTC)
"""Cut-off for setuptools at least: installers speak PEP 517 to it, which it learnt with 40.8 in February 2019."""

_MODERN = sys.version_info >= (3, 12)
READING_FLOORS = {
    "setuptools": datetime(2024, 12, 1, tzinfo=UTC) if _MODERN else datetime(2021, 9, 1, tzinfo=UTC),
    "numpy": datetime(2024, 12, 1, tzinfo=UTC) if _MODERN else datetime(2022, 12, 1, tzinfo=UTC),
    "cython": datetime(2024, 12, 1, tzinfo=UTC) if _MODERN else datetime(2022, 12, 1, tzinfo=UTC),
}
"""Cut-offs at least for what reads source distributions here: older ones have nothing for this interpreter."""

_FORMAT = 5
_KNOWN_METADATA = Path(__file__).with_name("known_metadata.toml")
_LOG_TAIL = 4000
_INDEX_SETTINGS = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY")
_KEPT = (
    *_INDEX_SETTINGS,
    *(
        "PATH",
        "LANG",
        "LC_ALL",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "UV_SYSTEM_CERTS",
        "UV_NATIVE_TLS",
        "UV_INSECURE_HOST",
    ),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "UV_CONCURRENT_DOWNLOADS", "UV_INSECURE_HOST"),
)


class Absent(Frozen):
    """A requirement left out because its project has nothing to offer at the date."""

    requirement: str
    reason: str


class Resolution(Frozen):
    """A lock, and how it came about."""

    lock: str
    resolver: str = Field(description="`uv 0.13.8`")
    absent: tuple[Absent, ...] = ()
    notes: tuple[str, ...] = ()


class Unsolvable(ItemFailure):
    """The requirements have no common solution.

    `blamed` are the requirements of which the resolver speaks; `needs_sources`: a project is not there as a wheel.
    """

    def __init__(
        self, what: str, *, why: str = "", log_tail: str = "", blamed: Sequence[str] = (), needs_sources: bool = False
    ) -> None:
        self.blamed = tuple(blamed)
        self.needs_sources = needs_sources
        remedy = "The log's tail has the resolver's own words"
        super().__init__("lock", what, why=why, remedy=remedy, log_tail=log_tail)


class Resolver:
    """Resolves requirements as of a date. Equal questions are answered from *cache_dir* without a call.

    The index is uv's own default unless *environment* (the process's own when None) holds uv's settings for another;
    of that environment only the settings of index, proxy and certificates are handed on. *interpreters* tells, by
    `3.x`, those of this machine: a source distribution is read by the one it was written for, where that is here.
    Calls block: use a thread.
    """

    def __init__(
        self,
        cache_dir: Path,
        *,
        environment: Mapping[str, str] | None = None,
        interpreters: Callable[[], Mapping[str, Path]] = dict,
        platform: str = "linux",
        timeout: float = 300.0,
    ) -> None:
        source = os.environ if environment is None else environment
        self._environment = {name: source[name] for name in _KEPT if source.get(name)}
        self._cache_dir = cache_dir
        self._platform = platform
        self._timeout = timeout
        self._interpreters = interpreters
        self.calls = 0
        """How often uv was started to resolve."""

    @cached_property
    def _uv(self) -> str:
        import uv

        try:
            return uv.find_uv_bin()
        except FileNotFoundError as error:
            raise ConfigurationError(
                "uv is not installed", remedy="Install the dependencies of this project"
            ) from error

    @cached_property
    def version(self) -> str:
        """`uv 0.13.8`."""
        outcome = run_bounded([self._uv, "--version"], environment=self._environment, cwd=Path.cwd(), timeout=60)
        return " ".join(outcome.stdout.split()[:2])

    def resolve(
        self,
        requirements: Sequence[str],
        *,
        python: str,
        exclude_newer: datetime,
        build_sources: bool = False,
        constraints: Sequence[str] = (),
    ) -> Resolution:
        """Pin *requirements* for *python* (`3.12`) within *constraints*, with what the index held at *exclude_newer*.

        Requirements whose project has no version at that date are left out, each with its reason. Source distributions
        count only with *build_sources*, since reading one may run its code. Raises Unsolvable, ItemFailure (`timeout`,
        `lock`), and OutsideSystemError when the index does not answer.
        """
        if build_sources and self._has_credentials():
            raise Unsolvable(
                "a source distribution would have to be built",
                why="the index settings hold credentials, which its code could read",
                needs_sources=True,
            )
        wanted, bounds = sorted(set(requirements)), sorted(set(constraints))
        place = self._place(wanted, python, exclude_newer, build_sources, bounds)
        kept = _read_kept(place)
        if kept is not None:
            return kept
        absent: list[Absent] = []
        while True:
            rc, lock, log = self._compile(wanted, python, exclude_newer, build_sources, bounds)
            if rc == 0:
                break
            refused = uv_words.REFUSED.search(log) is not None
            gone = [] if refused else self._absent(wanted, log, exclude_newer)
            if not gone:
                raise self._failure(wanted, python, exclude_newer, log)
            absent.extend(gone)
            wanted = [text for text in wanted if text not in {item.requirement for item in gone}]
            if not wanted or any(requirement_name(item.requirement) == "setuptools" for item in gone):
                # One wrong setting would otherwise turn every environment into an empty one.
                what = f"knows nothing of {gone[0].requirement}"
                raise OutsideSystemError("package index", what, remedy="Check uv's index settings")
        strange = read_lock(lock).strange
        if strange:
            raise ItemFailure("lock", "the resolver wrote a line that is no pin", why=uv_words.scrub(strange[0]))
        resolution = Resolution(
            lock=lock, resolver=self.version, absent=tuple(absent), notes=_notes(exclude_newer, build_sources)
        )
        _keep(place, resolution)
        return resolution

    def _compile(
        self, wanted: list[str], python: str, cut_off: datetime, build_sources: bool, bounds: list[str]
    ) -> tuple[int, str, str]:
        self._cache_dir.mkdir(parents=True, exist_ok=True)
        fitting = self._interpreters().get(python) if build_sources else None
        arguments = [
            *(self._uv, "pip", "compile", "-", "--generate-hashes", "--no-header", "--no-annotate"),
            *("--config-file", str(_KNOWN_METADATA)),
            *("--no-progress", "--color", "never", "--no-python-downloads", "--python", str(fitting or sys.executable)),
            *("--cache-dir", str(self._cache_dir.resolve() / "uv"), "--python-platform", self._platform),
            *("--python-version", python, "--exclude-newer", _instant(cut_off)),
        ]
        floors = READING_FLOORS if build_sources and fitting is None else {"setuptools": BUILD_FLOOR}
        for name, floor in floors.items():
            if cut_off < floor:
                arguments += ["--exclude-newer-package", f"{name}={_instant(floor)}"]
        late = [name for name, floor in floors.items() if build_sources and cut_off < floor]
        ceilings = [self._ceiling(name, python, cut_off) for name in late]
        arguments += ["--constraints", "constraints.txt"]
        arguments += ["--build-constraints", "bounds.txt"] if build_sources else ["--no-build"]
        self.calls += 1
        with tempfile.TemporaryDirectory(prefix="fc-resolve-") as folder:
            Path(folder, "constraints.txt").write_text("\n".join([*bounds, *ceilings]), encoding="utf-8")
            Path(folder, "bounds.txt").write_text("\n".join(bounds), encoding="utf-8")
            environment = {**self._environment, "HOME": folder, "TMPDIR": folder}
            text = "".join(f"{requirement}\n" for requirement in wanted)
            outcome = run_bounded(
                arguments, environment=environment, cwd=Path(folder), timeout=self._timeout, stdin=text
            )
        if outcome.timed_out:
            raise ItemFailure(
                "timeout",
                f"resolving {len(wanted)} requirements took longer than {self._timeout:.0f} s",
                log_tail=uv_words.scrub(outcome.stderr)[-_LOG_TAIL:],
            )
        return outcome.rc, outcome.stdout, uv_words.scrub(outcome.stderr)

    def _ceiling(self, name: str, python: str, cut_off: datetime) -> str:
        """The constraint that keeps *name* in the lock as old as it must be, while a newer one reads sources."""
        try:
            lock = self.resolve([name], python=python, exclude_newer=cut_off).lock
        except Unsolvable:
            return ""
        return next((f"{pin.name}<={pin.version}" for pin in read_lock(lock).pins if pin.name == name), "")

    def _absent(self, wanted: list[str], log: str, cut_off: datetime) -> list[Absent]:
        words = " ".join(log.split())
        day = cut_off.astimezone(UTC).date()
        reasons = {
            name["name"]: "offered only as an archive that uv does not accept"
            for name in uv_words.ODD_ARCHIVE.finditer(words)
        }
        for pattern in uv_words.ABSENT:
            reasons.update(
                {name["name"]: f"no version of it was on the index on {day}" for name in pattern.finditer(words)}
            )
        named = ((text, requirement_name(text)) for text in wanted)
        return [Absent(requirement=text, reason=reasons[name]) for text, name in named if name in reasons]

    def _failure(self, wanted: list[str], python: str, cut_off: datetime, log: str) -> Exception:
        refused = uv_words.REFUSED.search(log) is not None
        words = log.strip() if refused else log.partition("\nhint:")[0].strip()
        if refused and wanted != ["setuptools"]:
            # Raises the error below itself when the index refuses everything, not only this project.
            self._ceiling("setuptools", python, cut_off)
            refused = False
        if refused or (uv_words.UNREACHABLE.search(log) and not uv_words.GONE.search(log)):
            return OutsideSystemError(
                "package index",
                "does not answer",
                why=uv_words.last_line(words),
                remedy="Check the network and uv's index settings, then run the month again",
            )
        if "No space left on device" in log:
            return OutsideSystemError("disk", f"no space left in {self._cache_dir}", remedy="Free some, then run again")
        spoken = set(re.findall(r"[\w.-]+", log.lower()))
        blamed = [text for text in wanted if requirement_name(text) in spoken]
        return Unsolvable(
            f"no solution for Python {python} as of {cut_off.astimezone(UTC).date()}",
            why=f"uv speaks of {', '.join(blamed[:8])}" if blamed else "",
            log_tail=words[-_LOG_TAIL:],
            blamed=blamed,
            needs_sources=uv_words.NO_WHEELS.search(" ".join(log.split())) is not None,
        )

    def _has_credentials(self) -> bool:
        urls = " ".join(self._environment.get(name, "") for name in _INDEX_SETTINGS).split()
        return any("@" in urlsplit(url.partition("=")[2] or url).netloc for url in urls)

    def _place(self, wanted: list[str], python: str, cut_off: datetime, build_sources: bool, bounds: list[str]) -> Path:
        index = {name: self._environment[name] for name in _INDEX_SETTINGS if name in self._environment}
        question = [
            _FORMAT,
            _KNOWN_METADATA.read_text("utf-8"),
            self.version,
            self._platform,
            python,
            _instant(cut_off),
            build_sources,
            wanted,
            bounds,
            index,
        ]
        key = sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
        return self._cache_dir / "locks" / key[:2] / f"{key}.json"


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _notes(cut_off: datetime, build_sources: bool) -> tuple[str, ...]:
    floor = f"setuptools may be as new as {BUILD_FLOOR.date()}: earlier ones cannot be driven by PEP 517"
    built = "source distributions were read to resolve this lock: not everything is there as a wheel"
    return (*((floor,) if cut_off < BUILD_FLOOR else ()), *((built,) if build_sources else ()))


def _read_kept(place: Path) -> Resolution | None:
    try:
        return Resolution.model_validate_json(place.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _keep(place: Path, resolution: Resolution) -> None:
    """Whole or not at all: a reader never sees half a file."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=place.parent, suffix=".part", delete=False, encoding="utf-8") as file:
        file.write(resolution.model_dump_json())
    Path(file.name).replace(place)
