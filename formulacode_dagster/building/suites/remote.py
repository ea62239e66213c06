"""Asking the harness inside a session: typed questions, typed answers."""

from __future__ import annotations

import base64
import json
import posixpath
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from formulacode_dagster.building.engines.callgrind import Callgrind
from formulacode_dagster.building.engines.protocol import Completed, Session
from formulacode_dagster.models.measurement import BaseProfile

from .archive import archive_for
from .harness_output import all_names, describe, ending_of, parsed, require_end, sample_of, stacks_of
from .questions import (
    Conditions,
    Coverage,
    Description,
    KeptBuild,
    NotTimed,
    ProcessAnswer,
    ProcessSetting,
    SampledStacks,
    Survey,
    SurveyedBenchmark,
    TimedBenchmark,
)

ARCHIVE = "fc_harness.pyz"
FILE_SECONDS = 120.0
RELINK_SECONDS = 900.0
START_SECONDS = 20.0
"""Extra seconds for starting the interpreter and importing a benchmark's module, beyond the benchmark's timeout."""
GRACE_SECONDS = 2.0
"""Seconds beyond its own limit after which a count is ended from outside: its start may take longer than that."""
MAX_LOST_MODULES = 20
PADDING_STEPS = 4096

ONE_THREAD = dict.fromkeys(
    (
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
        *("NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS"),
    ),
    "1",
)
"""A benchmark runs on one core, where more threads would only take turns."""
NO_DISPLAY = {"MPLBACKEND": "Agg", "QT_QPA_PLATFORM": "offscreen"}
"""No window can be opened: matplotlib before 3.0 takes Tk and fails, Qt aborts."""

CALLED = {"name", "module", "owner", "attribute", "index", "cache_folder", "timeout", "isolate"}
"""Fields of a benchmark that the harness needs to call it."""

Request = Mapping[str, object]
HarnessAnswer = dict[str, object]
FunctionSpans = Mapping[str, Sequence[tuple[int, int]]]
"""First and last lines of functions, by path below the repository."""
NO_SPANS: FunctionSpans = {}


def environment_of_runs(configured: Mapping[str, str]) -> dict[str, str]:
    """Return variables for every process of a repository's code, with those that its suite has *configured*."""
    return {**NO_DISPLAY, **configured, **ONE_THREAD}


def _setting() -> dict[str, str]:
    """Return a random hash seed and start of the stack: no code is to know a process that is timed by its variables."""
    return {"PYTHONHASHSEED": str(random_hash_seed()), "FC_PADDING": "." * secrets.randbelow(PADDING_STEPS)}


def random_hash_seed() -> int:
    """Return one with which Python randomizes hashes."""
    return secrets.randbelow(2**32 - 1) + 1


@dataclass(frozen=True)
class BenchmarkSelection:
    """Benchmarks to survey: all or those named in *only*, first those that mention *names*, none *ruled_out*.

    After *enough* ran, if that is given, one of which ran a traced line, if there are any, the rest is `untraced`. A
    *share* is its number and how many there are: each benchmark is in one, in the first if it has a `setup_cache`.
    """

    only: Iterable[str] | None = None
    names: Iterable[str] = ()
    enough: int | None = None
    ruled_out: Iterable[str] = ()
    share: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class CompiledTrace:
    """Lines of compiled code to report, by path below the repository, in a build by the compilers of *coverage*."""

    coverage: Coverage
    lines: Mapping[str, Iterable[int]]


class HarnessClient:
    """The harness in one session. Every method raises ItemFailure when the session answers nonsense."""

    def __init__(
        self,
        session: Session,
        *,
        benchmark_dir: str,
        start_seconds: float = START_SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """*environment* are the variables that the suite's configuration sets while benchmarks run."""
        self._session = session
        self._environment = dict(environment or {})
        self._start_seconds = start_seconds
        self._benchmark_dir = benchmark_dir
        self._laid: Mapping[str, bytes] | None = None
        # the name of the folder is that of the package as which the suite is imported: `.` is none
        self._root = posixpath.normpath(f"{session.repository}/{benchmark_dir}")
        self._archive = session.put(ARCHIVE, archive_for(session))

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Content of files of the checkout, those that exist."""
        request = {"command": "read", "repository": self._session.repository, "paths": sorted(set(paths))}
        answers = self._answers(request, "reading the changed files")
        return {str(a["path"]): base64.b64decode(str(a["content"])) for a in _of("file", answers)}

    def write(self, files: Mapping[str, bytes]) -> None:
        """Copy the suite *files*, by path in the repository, in place of the checkout's suite or an earlier overlay."""
        content = {path: base64.b64encode(data).decode() for path, data in files.items()}
        request = {
            "command": "write",
            "repository": self._session.repository,
            "folder": self._benchmark_dir,
            "files": content,
        }
        self._answers(request, "copying the suite into the checkout")
        self._laid = files

    def restore(self) -> None:
        """Restore the checkout to its state before an overlay, in this session or in the one it was copied from."""
        self._answers({"command": "restore", "repository": self._session.repository}, "restoring the checkout")
        self._laid = None

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Use the checkout as `restore` leaves it; the overlay of this session is applied again afterwards."""
        laid = self._laid
        if laid is not None:
            self.restore()
        yield
        if laid is not None:
            self.write(laid)

    def instrument(self, units: Iterable[str], *, linkers: str = "") -> Coverage:
        """Compilers for a build in which lines are counted of *units*, shell patterns of the names of sources.

        Other sources come from the compiler's cache if it has them: that of a build with the folder *linkers*.
        """
        request = {"command": "instrument", "units": sorted(units), "linkers": linkers}
        answers = self._answers(request, "making compilers")
        return parsed(Coverage, _of("instrument", answers)[0])

    def survey(
        self,
        *,
        lines: Mapping[str, Iterable[int]],
        limit: float,
        budget: float,
        import_limit: float | None = None,
        selection: BenchmarkSelection | None = None,
        compiled: CompiledTrace | None = None,
        results: bool = False,
        hash_seed: int | None = None,
    ) -> Survey:
        """List the benchmarks, all or those of the *selection*, and run each once.

        Reported for each: the *lines*, by path below the repository, that its timed call runs; also those of
        *compiled*. *limit* is the longest one may take, and so is the import of a module without an *import_limit*,
        *budget* all runs together, in seconds; those that do not fit come back `untraced`. With *results*, return
        values are reported. The hash seed is random unless it is given. A module whose import kills the interpreter or
        never ends is lost, the others are not.
        """
        selection = selection or BenchmarkSelection()
        lost: dict[str, str] = {}
        wanted = None if selection.only is None else sorted(selection.only)
        while True:
            request = {
                **self._suite("survey"),
                "lines": {path: sorted(numbers) for path, numbers in lines.items()},
                "only": wanted,
                "limit": limit,
                "import_limit": limit if import_limit is None else import_limit,
                "budget": budget,
                "names": sorted(selection.names),
                "enough": selection.enough,
                "ruled_out": sorted(selection.ruled_out),
                "share": selection.share,
                "skip": sorted(lost),
                "coverage": compiled.coverage.data if compiled else "",
                "results": results,
                "compiled": {path: sorted(numbers) for path, numbers in compiled.lines.items()} if compiled else {},
            }
            longest = budget + 2 * max(limit, import_limit or 0.0) + self._start_seconds
            environment = {} if hash_seed is None else {"PYTHONHASHSEED": str(hash_seed)}
            completed, answers = self.ask(request, timeout=longest, environment=environment)
            ended_at = str(answers[-1]["name"]) if answers and answers[-1]["event"] == "importing" else None
            # a module that was to be skipped is named again only by code under test
            if ended_at is not None and ended_at not in lost and len(lost) < MAX_LOST_MODULES:
                lost[ended_at] = f"importing it ended the process: {describe(completed)}"
                continue
            require_end(completed, answers, "surveying the suite")
            return Survey(
                benchmarks=tuple(parsed(SurveyedBenchmark, a) for a in _of("benchmark", answers)),
                lost=lost | {str(a["name"]): str(a["message"]) for a in _of("lost", answers)},
                extensions=all_names(answers, "extensions"),
                untimed=all_names(answers, "untimed"),
                uninstalled=all_names(answers, "uninstalled"),
                seen=all_names(answers, "seen"),
            )

    def describe(self, *, skip: Iterable[str], import_limit: float) -> tuple[Description, ...]:
        """Return descriptions of every benchmark, except those of the modules to *skip*: a survey reports modules that
        fail to import.
        """
        request = {
            **self._suite("describe"),
            "skip": sorted(skip),
            "import_limit": import_limit,
        }
        answers = self._answers(request, "describing the suite", timeout=FILE_SECONDS + import_limit)
        return tuple(parsed(Description, answer) for answer in _of("description", answers))

    def time(self, asked: Sequence[TimedBenchmark], *, seconds: float, setting: ProcessSetting) -> ProcessAnswer:
        """A sample of each benchmark *asked* from one fresh process, which forks for each; *seconds* of timing each."""
        fields = {"name", "module", "owner", "attribute", "index", "cache_folder"}
        request = {
            **self._suite("time"),
            "seconds": seconds,
            "core": setting.core,
            "padding": setting.padding,
            "build": setting.build,
            "benchmarks": [
                {
                    **each.benchmark.model_dump(include=fields),
                    "timeout": each.benchmark.timeout * setting.abreast,
                    "isolate": each.isolate,
                    "setup_seconds": each.setup_seconds,
                    "once": each.once,
                }
                for each in asked
            ],
        }
        environment = {"PYTHONHASHSEED": str(setting.hash_seed), "FC_PADDING": "." * setting.padding}
        longest = setting.abreast * (sum(each.benchmark.timeout for each in asked) + self._start_seconds)
        completed, answers = self.ask(request, timeout=longest, environment=environment)
        lost = NotTimed(kind=ending_of(completed), message=describe(completed))
        samples = {int(str(answer["place"])): sample_of(answer) for answer in _of("sample", answers)}
        told = [parsed(Conditions, answer) for answer in _of("conditions", answers)]
        taken = tuple(samples.get(place, lost) for place in range(len(asked)))
        return ProcessAnswer(taken, told[-1] if told else None, completed.seconds)

    def profile(self, asked: Sequence[SurveyedBenchmark], *, budget: float) -> BaseProfile:
        """Calls of each benchmark *asked* under cProfile, within *budget* seconds, and the sources of all.

        A benchmark that cannot be profiled, or ends otherwise under the profiler, has no functions.
        """
        request = {
            **self._suite("profile"),
            "budget": budget,
            "benchmarks": [benchmark.model_dump(include=CALLED) for benchmark in asked],
        }
        longest = budget + self._start_seconds * (1 + len(asked))
        answers = self._answers(request, "profiling the base", timeout=longest)
        profiled = [answer for answer in _of("profile", answers) if answer["outcome"] == "profiled"]
        told = {
            "functions": {str(answer["benchmark"]): answer["functions"] for answer in profiled},
            "sources": {str(answer["name"]): answer["source"] for answer in _of("source", answers)},
        }
        return parsed(BaseProfile, told)

    def stacks(
        self,
        asked: Sequence[SurveyedBenchmark],
        *,
        seconds: float,
        budget: float,
        within: FunctionSpans = NO_SPANS,
        enough: float = 1.0,
    ) -> dict[str, SampledStacks]:
        """Return the stacks in which each benchmark *asked* spends its time, by name, from about *seconds* of each.

        They say how much of it goes through the functions *within*, first and last lines by path. For a benchmark of
        which that is the share *enough*, a third of *seconds* does.
        A benchmark that cannot be sampled within *budget* seconds, or ends otherwise under it, is left out.
        """
        request = {
            **self._suite("stacks"),
            "budget": budget,
            "seconds": seconds,
            "within": within,
            "enough": enough,
            "benchmarks": [benchmark.model_dump(include=CALLED) for benchmark in asked],
        }
        answers = self._answers(request, "sampling stacks", timeout=budget + self._start_seconds * (1 + len(asked)))
        sampled = [answer for answer in _of("stacks", answers) if answer["outcome"] == "sampled"]
        return {str(answer["benchmark"]): stacks_of(answer) for answer in sampled}

    def count(self, asked: Sequence[SurveyedBenchmark], tool: Callgrind, *, budget: float) -> dict[str, int | str]:
        """Instructions of one call of each benchmark *asked*, after a first one that is not counted, by its name.

        One that could not be counted has the reason: it takes some fifty times as long as otherwise, and a process that
        forks for each counts them in order, within *budget* seconds.
        """
        command = tool.install(self._session)
        request = {
            **self._suite("count"),
            "budget": budget,
            "counts": command.counts,
            "benchmarks": [benchmark.model_dump(include=CALLED) for benchmark in asked],
        }
        # what the code does may depend on hashes and on the size of the environment
        environment = {**command.environment, "PYTHONHASHSEED": "0", "FC_PADDING": ""}
        completed, answers = self.ask(
            request, timeout=budget + GRACE_SECONDS, environment=environment, under=command.argv
        )
        told: dict[str, int | str] = dict.fromkeys((each.name for each in asked), "no time")
        for answer in _of("count", answers):
            counted = answer["outcome"] == "counted"
            told[str(answer["benchmark"])] = int(str(answer["instructions"])) if counted else str(answer["outcome"])
        if not answers and not completed.timed_out:
            return dict.fromkeys(told, describe(completed))
        return told

    def idlest_core(self, taken: Collection[int]) -> int:
        """The core that others use least just now, counted from the last; one of those *taken* only if all are."""
        answers = self._answers({"command": "idlest", "taken": sorted(taken)}, "choosing a core")
        return int(str(_of("core", answers)[0]["number"]))

    @cached_property
    def core_count(self) -> int:
        """Return the number of cores for requests."""
        return int(str(_of("cores", self._answers({"command": "cores"}, "counting cores"))[0]["number"]))

    def linkers(self, *, code: int, data: int, name: str) -> str:
        """Return a folder of linkers that move linked code and data by that many bytes; `` if none can be made.

        It has the *name*, and replaces an earlier one of that name.
        """
        request = {"command": "vary", "code": code, "data": data, "name": name}
        answers = self._answers(request, "making linkers")
        return str(_of("linkers", answers)[0]["folder"])

    def keep_build(self) -> KeptBuild:
        """Keep the shared objects of the package as it is installed now."""
        return parsed(KeptBuild, _of("kept", self._answers({"command": "keep"}, "keeping a build"))[0])

    def relink(self, linkers: str, *, code: int, data: int) -> KeptBuild | None:
        """Link again what the folder *linkers* stored, moved by that many bytes, and store the result as a build.

        None if that does not reproduce the installed objects: then only another build has another layout.
        """
        request = {"command": "relink", "linkers": linkers, "code": code, "data": data}
        kept = _of("kept", self._answers(request, "linking again", timeout=RELINK_SECONDS))
        return parsed(KeptBuild, kept[0]) if kept else None

    def _suite(self, command: str) -> Request:
        """The request for *command* on the suite, as far as all of them are alike."""
        session = self._session
        return {"command": command, "root": self._root, "checkout": session.repository, "tests": session.tests}

    def _answers(self, request: Request, what: str, *, timeout: float = FILE_SECONDS) -> list[HarnessAnswer]:
        """Return the answers to *request*; raises as `require_end`, which calls it *what*."""
        completed, answers = self.ask(request, timeout=timeout)
        require_end(completed, answers, what)
        return answers

    def ask(
        self,
        request: Request,
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        under: Sequence[str] = (),
    ) -> tuple[Completed, list[HarnessAnswer]]:
        """Return how the harness ended over *request*, and its answers up to then, each with its `event`.

        *under* is a command that runs the harness as its last arguments.
        """
        # A fresh nonce for each question: a benchmark cannot forge a signed answer.
        nonce = secrets.token_hex(16)
        completed = self._session.run(
            [*under, self._session.python, self._archive],
            timeout=timeout,
            stdin=json.dumps({**request, "nonce": nonce}).encode(),
            environment={**environment_of_runs(self._environment), **_setting(), **(environment or {})},
        )
        prefix = f"{nonce} ".encode()
        lines = [line[len(prefix) :] for line in completed.stdout.split(b"\n") if line.startswith(prefix)]
        answers = []
        for line in lines:
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):
                # The last line of a process that was killed may be cut, and the code under test may write any.
                continue
            if isinstance(answer, dict) and "event" in answer:
                answers.append(answer)
        return completed, answers


def _of(event: str, answers: Iterable[HarnessAnswer]) -> list[HarnessAnswer]:
    return [answer for answer in answers if answer["event"] == event]
