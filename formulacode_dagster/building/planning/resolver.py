"""Resolving as of a date, made repeatable: hashes, a cut-off, no state but answers to equal questions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from formulacode_dagster.building.declarations.declared_requirement import requirement_name
from formulacode_dagster.building.engines.credentials import has_credentials
from formulacode_dagster.building.engines.failures import DISK, INDEX, last_line
from formulacode_dagster.building.engines.free_space import is_full
from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.engines.uv_runner import UvResult, UvRunner
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.last_answers import note_answer

from . import uv_messages
from .lock import read_lock
from .pylock import read_pylock, requirements_of, without_index
from .resolution import AbsentRequirement, Refusal, Resolution, ResolutionRequest, Unsolvable
from .resolution_cache import ResolutionCache
from .uv_compile import BUILD_FLOOR, KNOWN_METADATA, PLATFORM, Uv, call_of, floors_of

_FORMAT = 8
_LOG_TAIL = 4000
_INDEX_SETTINGS = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY")
_LOCAL = ("PATH", "LANG", "LC_ALL")
_KEPT = (
    *_LOCAL,
    *_INDEX_SETTINGS,
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "UV_SYSTEM_CERTS", "UV_NATIVE_TLS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "UV_CONCURRENT_DOWNLOADS", "UV_INSECURE_HOST"),
)


class Resolver:
    """Resolves requirements as of a date. Equal questions are answered from *cache_dir* without a call.

    The index is uv's own default unless *environment* (the process's own if None) holds uv's settings for another; of
    that environment only the settings of index, proxy and certificates are passed on. Source distributions are read in
    *reading*, which has every interpreter. Without it they are read on this machine: by the interpreter they were
    written for if *interpreters* has it by `3.x`. *turn* excludes timings meanwhile. Calls block: use a thread.
    """

    def __init__(
        self,
        cache_dir: Path,
        *,
        environment: Mapping[str, str] | None = None,
        interpreters: Callable[[], Mapping[str, Path]] = dict,
        reading: UvRunner | None = None,
        turn: Turn = nullcontext,
        timeout: float = 300.0,
    ) -> None:
        source = os.environ if environment is None else environment
        self._environment = {name: source[name] for name in _KEPT if source.get(name)}
        self._network = {name: value for name, value in self._environment.items() if name not in _LOCAL}
        self._cache_dir = cache_dir
        self._timeout = timeout
        self._interpreters = interpreters
        self._turn = turn
        self.reading = reading
        """Where source distributions are read; None for this machine."""
        self.calls = 0
        """Number of times uv was started to resolve."""

    @cached_property
    def _uv(self) -> str:
        import uv

        try:
            return uv.find_uv_bin()
        except FileNotFoundError as error:
            raise ConfigurationError(
                "uv is not installed", remedy="Install the dependencies of this project"
            ) from error

    @property
    def version(self) -> str:
        """`uv 0.13.8`."""
        return f"uv {metadata.version('uv')}"

    def resolve(self, request: ResolutionRequest, *, settled_at: datetime | None = None) -> Resolution:
        """Pin the requirements of *request* with the index's content at its `exclude_newer`.

        If the index of the earlier instant *settled_at* has a solution, that is the answer: questions that differ only
        in `exclude_newer` then have one lock. If it lacks a project, versions move only as far as necessary; if it
        lacks a wheel, or only later files would do, the Unsolvable names these for the caller to judge. Requirements
        whose project has no version at that date are left out, each with its reason. Raises Unsolvable, SuspectedOutage
        (`timeout`, `incomplete`) if the index does not answer, (`no_space`) if only uv says that the disk is full, and
        OutsideSystemError if the index refuses us or the disk is full.
        """
        if settled_at is None or settled_at >= request.exclude_newer:
            return self._answer(request)
        try:
            settled = self._answer(request.model_copy(update={"exclude_newer": settled_at}))
        except Unsolvable as failure:
            if failure.refusal.lacking or failure.refusal.late:
                raise
            return self._answer(request)
        if not settled.absent:
            return settled
        moved = self._answer(request.model_copy(update={"preferred": settled.pylock}))
        return settled if moved.pylock == settled.pylock else moved

    def first_wheel(self, requirement: str, *, python: str, until: datetime) -> tuple[datetime, bool] | None:
        """When the lowest version of *requirement* that has a wheel for *python* was uploaded, and whether it is pure.

        None if the index had none before *until*, or reports no dates. Otherwise raises as `resolve`.
        """
        request = ResolutionRequest(requirements=(requirement,), python=python, exclude_newer=until, earliest=True)
        try:
            projects = read_pylock(self._answer(request).pylock)
        except Unsolvable:
            return None
        uploaded = projects[0].first_upload if projects else None
        return None if uploaded is None else (uploaded, projects[0].is_pure)

    def _answer(self, request: ResolutionRequest) -> Resolution:
        # a runner elsewhere gets no settings of a proxy
        if request.reads_sources and has_credentials(self._network if self.reading is None else self._index):
            what = "a source distribution would have to be built"
            raise Unsolvable(
                Refusal(what=what, why="the settings of index or proxy contain credentials, which its code could read")
            )
        cache, key = ResolutionCache(self._cache_dir / "locks"), self._key(request)
        kept = cache.read(key)
        if kept is not None:
            return kept
        absent: list[AbsentRequirement] = []
        asked = request
        while (answer := self._compile(asked)).rc != 0:
            refused = uv_messages.REFUSED.search(answer.log) is not None
            gone = [] if refused else _absent(asked, answer.log)
            if not gone:
                failure = self._failure(asked, answer.log)
                # A source that does not build may build tomorrow, a refusal may be lifted: only uv's proof is kept.
                if isinstance(failure, Unsolvable) and uv_messages.NO_SOLUTION in answer.log and not refused:
                    cache.keep(key, failure)
                raise failure
            absent.extend(gone)
            left_out = {item.requirement for item in gone}
            asked = asked.model_copy(update={"requirements": tuple(r for r in asked.requirements if r not in left_out)})
            nothing_left = not asked.requirements and not request.earliest
            if nothing_left or any(requirement_name(item.requirement) == "setuptools" for item in gone):
                # One wrong setting would otherwise turn every environment into an empty one.
                what = f"does not know {gone[0].requirement}"
                raise OutsideSystemError(INDEX, what, remedy="Check uv's index settings")
        pylock = without_index(answer.pylock)
        resolution = Resolution(
            lock=requirements_of(pylock),
            pylock=pylock,
            cut_off=request.exclude_newer,
            resolver=self.version,
            absent=tuple(absent),
            notes=_notes(request),
        )
        cache.keep(key, resolution)
        return resolution

    def _compile(self, request: ResolutionRequest) -> UvResult:
        reading = self.reading if request.reads_sources else None
        fitting = self._interpreters().get(request.python) if request.reads_sources and reading is None else None
        fits = reading is not None or fitting is not None
        late = floors_of(request, fits=fits).keys() - request.floors.keys() if request.reads_sources else ()
        ceilings = [self._ceiling(name, request.python, request.exclude_newer) for name in sorted(late)]
        call = call_of(request, ceilings=ceilings, fits=fits)
        self.calls += 1
        with self._turn() if request.reads_sources else nullcontext():
            if reading is not None:
                answer = reading.compile(call, python=request.python, index=self._index, timeout=self._timeout)
            else:
                uv = Uv(self._uv, self._environment, self._cache_dir / "uv")
                sources = request.reads_sources
                answer = uv.compile(call, interpreter=fitting, timeout=self._timeout, runs_code=sources)
        log = uv_messages.scrub(answer.log)
        if answer.timed_out:
            raise SuspectedOutage(
                INDEX,
                FailureKind.TIMEOUT,
                f"resolving {len(request.requirements)} requirements took longer than {self._timeout:.0f} s",
                log_tail=log[-_LOG_TAIL:],
            )
        if answer.rc == 0:
            note_answer(INDEX)
            note_answer(DISK)
        return replace(answer, log=log)

    def _ceiling(self, name: str, python: str, cut_off: datetime) -> str:
        """The constraint that keeps *name* in the lock as old as it must be, while a newer one reads sources."""
        try:
            asked = ResolutionRequest(requirements=(name, "setuptools"), python=python, exclude_newer=cut_off)
            lock = self.resolve(asked).lock
        except Unsolvable:
            return ""
        version = read_lock(lock).versions.get(name)
        return f"{name}<={version}" if version else ""

    def _failure(self, request: ResolutionRequest, log: str) -> Exception:
        refused = uv_messages.REFUSED.search(log) is not None
        words = log.strip() if refused else log.partition("\nhint:")[0].strip()
        if refused and request.requirements != ("setuptools",):
            # Raises the error below itself when the index refuses everything, not only this project.
            self._ceiling("setuptools", request.python, request.exclude_newer)
            refused = False
        why, remedy = last_line(words) or "uv says nothing", "Check the network and uv's index settings"
        if refused:
            return OutsideSystemError(INDEX, "refuses us", why=why, remedy=f"{remedy}, then run the month again")
        if uv_messages.UNREACHABLE.search(log) and not uv_messages.GONE.search(log):
            # a single package may name a dead address
            return SuspectedOutage(
                INDEX,
                FailureKind.INCOMPLETE,
                "the package index does not answer",
                why=why,
                remedy=remedy,
                log_tail=words[-_LOG_TAIL:],
            )
        if uv_messages.DISK_FULL.search(log):
            what, remedy = f"no space left in {self._cache_dir}", "Free some, then run again"
            if is_full(self._cache_dir):
                return OutsideSystemError(DISK, what, remedy=remedy)
            # code of a source distribution may have written that line
            return SuspectedOutage(
                DISK, FailureKind.NO_SPACE, what, why=why, remedy=remedy, log_tail=words[-_LOG_TAIL:]
            )
        unbuildable = uv_messages.names(uv_messages.UNBUILDABLE, log)
        spoken = set(re.findall(r"[\w.-]+", log.lower()))
        blamed = [text for text in request.requirements if requirement_name(text) in spoken]
        refusal = Refusal(
            what=f"no solution for Python {request.python} as of {request.exclude_newer.astimezone(UTC).date()}",
            why=f"uv speaks of {', '.join(blamed[:8])}" if blamed else "",
            log_tail=words[-_LOG_TAIL:],
            blamed=tuple(blamed),
            # a failed build is missing a wheel of a build requirement
            lacking=() if unbuildable else uv_messages.names(uv_messages.NO_WHEEL, log),
            late=uv_messages.names(uv_messages.CAME_LATER, log),
            unbuildable=unbuildable,
        )
        return Unsolvable(refusal)

    @property
    def _index(self) -> dict[str, str]:
        return {name: self._environment[name] for name in _INDEX_SETTINGS if name in self._environment}

    def _key(self, request: ResolutionRequest) -> str:
        metadata = KNOWN_METADATA.read_text("utf-8")
        read_in = self.reading.name if self.reading is not None and request.reads_sources else ""
        whole = [_FORMAT, metadata, self.version, PLATFORM, self._index, read_in, request.model_dump(mode="json")]
        return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _absent(request: ResolutionRequest, log: str) -> list[AbsentRequirement]:
    words = " ".join(log.split())
    day = request.exclude_newer.astimezone(UTC).date()
    later = uv_messages.names(uv_messages.CAME_LATER, log)
    reasons = {
        name["name"]: "offered only as an archive that uv does not accept"
        for name in uv_messages.ODD_ARCHIVE.finditer(words)
    }
    for pattern in uv_messages.ABSENT:
        reasons.update(
            {name["name"]: f"no version of it was on the index on {day}" for name in pattern.finditer(words)}
        )
    named = ((text, requirement_name(text)) for text in request.requirements)
    return [
        AbsentRequirement(requirement=text, reason=reasons[name], came_later=name in later)
        for text, name in named
        if name in reasons
    ]


def _notes(request: ResolutionRequest) -> tuple[str, ...]:
    floor = f"setuptools may be as new as {BUILD_FLOOR.date()}: earlier ones cannot be driven by PEP 517"
    built = "source distributions were read to resolve this lock: not everything is there as a wheel"
    return (*((floor,) if request.exclude_newer < BUILD_FLOOR else ()), *((built,) if request.reads_sources else ()))
