"""Turns the end of a build into the right error."""

from __future__ import annotations

import re

from formulacode_dagster.models.errors import FormulaCodeError, ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.last_answers import note_answer

INDEX = "package index"
"""Error messages about the package index."""
DISK = "disk"
TAIL_LINES = 60
_FULL = r"(?:no space left on device|disk quota exceeded)"
_DISK_FULL = re.compile(_FULL, re.IGNORECASE)
_INDEX_DEAD = re.compile(
    # lines of uv and pip only, also where BuildKit quotes them: output of a source distribution is indented
    r"^(?:#\d+ )?(?:\d+\.\d+ )?(?:error: |  cause: |  Caused by: |(?:WARNING|ERROR): .*\burl\b|WARNING: Retrying ).*?"
    r"(?:dns error|failed to lookup address|client error \(connect\)|connection refused|network is unreachable"
    r"|temporary failure in name resolution|invalid peer certificate|error sending request|operation timed out"
    r"|http status server error|429 too many requests)",
    re.IGNORECASE | re.MULTILINE,
)
_APT_DEAD = re.compile(
    r"^(?:#\d+ )?(?:\d+\.\d+ )?E: (?:failed to fetch|unable to (?:fetch|connect)).*?"
    r"(?:could not connect|unable to connect|connection (?:failed|refused|reset|timed out)|temporary failure resolving"
    r"|could not resolve|  (?:429|5\d\d)  )",
    re.IGNORECASE | re.MULTILINE,
)
_PREPARED = re.compile(r"\bPrepared \d+ packages? in ")
"""uv's messages about downloads; it prints none if everything is cached."""
_SUSPECTED = ((INDEX, _INDEX_DEAD), ("apt", _APT_DEAD))
"""Systems that a step of a build asks, and the words of whoever asked one in vain."""
_NO_EXIT_CODE = r"(?!.*did not complete successfully: exit code: \d)"
_DOCKER_DEAD = re.compile(
    # the client's own messages; a line of the build has a step number or a time
    r"^(?=ERROR: |error: |docker: |cannot connect to the docker daemon|error during connect)" + _NO_EXIT_CODE + r".*?"
    r"(?:cannot connect to the docker daemon|error during connect|failed to create endpoint"
    r"|failed to set up container networking|failed to create shim task|rpc error: code = unavailable"
    r"|closing transport|failed to start daemon)"
    # in the context of resolving, it is the connection to a registry
    r"|^(?=ERROR: |error: |docker: )(?!.*failed to solve: ).*?connection reset",
    re.IGNORECASE | re.MULTILINE,
)
_DOCKER_FULL = re.compile(rf"^(?=ERROR: |error: |docker: ){_NO_EXIT_CODE}.*?{_FULL}", re.IGNORECASE | re.MULTILINE)
_REGISTRY_BUSY = re.compile(
    r"toomanyrequests|429 too many requests|rate limit|50\d (internal server error|bad gateway|service unavailable)"
    r"|connection reset|504 gateway time-?out|tls handshake timeout|i/o timeout|context deadline exceeded",
    re.IGNORECASE,
)
_STEP_CODE = re.compile(r"did not complete successfully: exit code: (\d+)")


class BuildFailure(ItemFailure):
    """A build that failed in *stage* (a tier, or a verification), with its whole log.

    *rc* is the exit code of the step that ended it, None when it was killed or was no program.
    """

    def __init__(
        self,
        kind: FailureKind,
        what: str,
        *,
        log: str,
        stage: str,
        rc: int | None = None,
        why: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(kind, what, why=why, remedy=remedy, log_tail=tail(log))
        self.log = log
        self.stage = stage
        self.rc = rc


def tail(log: str) -> str:
    """The last lines of *log*, those that explain a failure.

    Only a line feed ends a line: a program can print a carriage return, and then what looks like a line of uv's.
    """
    return "\n".join(log.rstrip().split("\n")[-TAIL_LINES:])


def last_line(text: str) -> str:
    """Return the last non-empty line of *text*, cut if it is long; `` if there is none."""
    return next((line.strip()[:500] for line in reversed(text.splitlines()) if line.strip()), "")


def docker_is_dead(end: str) -> bool:
    """Return True if Docker's client reports at the *end* of its output that the daemon is gone or cannot run anything.

    A message of a build step about its own connections says nothing about the daemon.
    """
    return _DOCKER_DEAD.search(end) is not None


def docker_outage(what: str) -> OutsideSystemError:
    """Return the error for a daemon that was lost during *what*."""
    return OutsideSystemError("docker", f"{what}: the daemon is gone", remedy="Start Docker, then run again")


def docker_reports_full_disk(end: str) -> bool:
    """Return True if Docker's client or BuildKit, as opposed to a step, reports at the *end* of its output that the
    disk is full.
    """
    return _DOCKER_FULL.search(end) is not None


def registry_is_busy(message: str) -> bool:
    """Return True if a registry's *message* says that it is unavailable, which says nothing about the image.

    One that cannot be reached at all is how a machine without a network sees every registry: there the images that are
    here count.
    """
    return _REGISTRY_BUSY.search(message) is not None


def registry_outage(image: str, message: str) -> OutsideSystemError:
    """Return the error for a registry that did not report whether it has *image*."""
    return OutsideSystemError(
        "registry",
        f"did not report whether it has {image}",
        why=last_line(message),
        remedy="Run the month again later, log in to the registry, or pull the image",
    )


def code_of_step(end: str) -> int | None:
    """Exit code of the step that BuildKit says failed; None when it names none."""
    codes = _STEP_CODE.findall(end)
    return int(codes[-1]) if codes else None


def note_index(log: str) -> None:
    """Record that the index answers, if the *log* of a build shows a download that no cache served."""
    if _PREPARED.search(log):
        note_answer(INDEX)


def failure_of(
    what: str,
    *,
    stage: str,
    log: str,
    online: bool,
    timed_out: bool,
    seconds: float,
    rc: int | None,
    disk_is_full: bool = False,
) -> FormulaCodeError:
    """The error for a build step of *stage* that did not succeed; *online* says whether it may reach the index.

    *disk_is_full* confirms a log that says so: it contains the output of untrusted code.
    """
    end = tail(log)
    if _DISK_FULL.search(end):
        remedy = "Free some space, then run again"
        if disk_is_full:
            return OutsideSystemError(DISK, f"{what}: no space left", remedy=remedy)
        return _suspect(DISK, FailureKind.NO_SPACE, f"{what}: no space left, as its log says", log=log, remedy=remedy)
    if timed_out:
        return BuildFailure(FailureKind.TIMEOUT, f"{what} was killed after {seconds:.0f} s", log=log, stage=stage)
    dead = next((system for system, words in _SUSPECTED if online and words.search(end)), None)
    if dead is not None:
        remedy = "Check the network, and which index is set"
        return _suspect(dead, FailureKind.TIMEOUT, f"{what}: {dead} gave no answer", log=log, remedy=remedy)
    return BuildFailure(FailureKind.BUILD, f"{what} failed", log=log, stage=stage, rc=rc, why=last_line(end))


def _suspect(system: str, kind: FailureKind, what: str, *, log: str, remedy: str) -> SuspectedOutage:
    end = tail(log)
    lost = SuspectedOutage(system, kind, what, why=last_line(end), remedy=remedy, log_tail=end)
    lost.log = log
    return lost
