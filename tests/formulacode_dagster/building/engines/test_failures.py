from __future__ import annotations

import time

import pytest

from formulacode_dagster.building.engines.failures import (
    INDEX,
    BuildFailure,
    code_of_step,
    docker_is_dead,
    docker_reports_full_disk,
    failure_of,
    note_index,
    registry_is_busy,
)
from formulacode_dagster.models.errors import FormulaCodeError, OutsideSystemError, SuspectedOutage
from formulacode_dagster.operating.cancellation.last_answers import has_answered_since

BRIDGE = (
    'ERROR: failed to solve: process "/bin/sh -c /opt/formulacode/bin/install-system" did not complete successfully: '
    "failed to create endpoint ppbjkh7jzu3b on network bridge: adding interface vethf8eb17d to bridge docker0 failed: "
    "Device does not exist"
)
STEP = 'ERROR: failed to solve: process "/bin/sh -c /opt/x" did not complete successfully: exit code: 2'


def ended(
    log: str, *, online: bool = True, timed_out: bool = False, rc: int | None = 1, disk_is_full: bool = False
) -> FormulaCodeError:
    return failure_of(
        "x",
        stage="env",
        log=log,
        online=online,
        timed_out=timed_out,
        seconds=9.0,
        rc=rc,
        disk_is_full=disk_is_full,
    )


def test_a_failure_tells_stage_exit_code_and_whole_log() -> None:
    failure = ended("first\n" * 100 + "error: last words\n", rc=2)
    assert isinstance(failure, BuildFailure)
    assert (failure.stage, failure.rc, failure.kind) == ("env", 2, "build")
    assert failure.log.count("first") == 100
    assert "last words" in str(failure)


def test_what_was_killed_has_no_exit_code() -> None:
    failure = ended("…", timed_out=True, rc=-9)
    assert isinstance(failure, BuildFailure)
    assert (failure.kind, failure.rc) == ("timeout", None)


def test_a_daemon_that_can_give_no_network_is_dead() -> None:
    assert docker_is_dead(BRIDGE)
    assert not docker_is_dead(STEP)


def test_the_exit_code_of_a_step_is_read_from_buildkits_words() -> None:
    assert code_of_step(STEP) == 2
    assert code_of_step("ERROR: failed to solve: no such image") is None


CUT_OFF = """\
#9 [env 3/4] RUN /opt/formulacode/bin/install-environment
#9 41.07 error: Failed to build `reader==1.0`
#9 41.07   cause: The build backend returned an error
#9 41.07          [stderr]
#9 41.07          error: [Errno 104] Connection reset by peer
#9 ERROR: process "/opt/formulacode/bin/install-environment" did not complete successfully: exit code: 1
------
 > [env 3/4] RUN /opt/formulacode/bin/install-environment:
41.07   cause: The build backend returned an error
41.07          error: [Errno 104] Connection reset by peer
------
ERROR: failed to solve: process "/opt/formulacode/bin/install-environment" did not complete successfully: exit code: 1
"""
"""A step's output has its number or its time, that of Docker's client has neither."""


@pytest.mark.parametrize(
    "log",
    [
        CUT_OFF,
        "#7 12.5 E: Failed to fetch http://deb.debian.org/x.deb  Error reading from server: Connection reset by peer\n"
        + STEP,
        "#7 12.5 warning: spurious network error: [56] Recv failure: Connection reset by peer\n" + STEP,
        "#7 12.5 ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock\n" + STEP,
        # a carriage return begins no line
        "#7 12.5 …\rERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock\n" + STEP,
        'ERROR: failed to solve: process "sh -c say connection reset" did not complete successfully: exit code: 2',
        "ERROR: failed to solve: python:3.12: failed to resolve source metadata for docker.io/library/python:3.12: "
        'failed to do request: Head "https://hub/v2": read tcp 10.0.0.2:4->10.0.0.3:443: connection reset by peer',
    ],
)
def test_a_connection_of_the_build_s_own_tells_nothing_of_the_daemon(log: str) -> None:
    assert not docker_is_dead(log)


@pytest.mark.parametrize(
    "words",
    [
        "ERROR: failed to receive status: rpc error: code = Unavailable desc = error reading from server: EOF",
        "ERROR: failed to receive status: read unix @->/run/docker.sock: read: connection reset by peer",
        "ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "Cannot connect to the Docker daemon at tcp://builder:2376. Is the docker daemon running?",
        'error during connect: Post "https://builder:2376/v1.47/build": EOF',
    ],
)
def test_what_docker_s_client_says_of_the_daemon_counts(words: str) -> None:
    assert docker_is_dead(f"#9 41.07 Collecting\n{words}")


def test_a_full_disk_is_an_outage_only_if_it_is_confirmed() -> None:
    failure = ended("error: No space left on device", disk_is_full=True)
    assert isinstance(failure, OutsideSystemError)
    assert failure.system == "disk"
    suspected = ended("error: No space left on device")
    assert isinstance(suspected, SuspectedOutage)
    assert (suspected.system, suspected.kind) == ("disk", "no_space")
    assert isinstance(ended("error: that is all", disk_is_full=True), BuildFailure)


FULL = "write /var/lib/docker/tmp/layer: no space left on device"


@pytest.mark.parametrize(
    ("log", "is_reported"),
    [
        (f"#9 41.07 Collecting\nERROR: failed to solve: failed to export layer: {FULL}", True),
        (f'ERROR: failed to solve: process "x" did not complete successfully: failed to create: {FULL}', True),
        ("error: write /root/.docker/buildx/refs: disk quota exceeded", True),
        (f"#9 41.07 error: {FULL}\n{STEP}", False),
        (f" > [env 3/4] RUN x:\n41.07 ERROR: {FULL}\n------\n{STEP}", False),
        (f"#9 41.07 …\rERROR: {FULL}\n{STEP}", False),
        (f'ERROR: failed to solve: process "{FULL}" did not complete successfully: exit code: 1', False),
        (FULL, False),
    ],
)
def test_only_docker_s_own_lines_report_a_full_disk_for_docker(log: str, is_reported: bool) -> None:
    assert docker_reports_full_disk(log) is is_reported


@pytest.mark.parametrize("end_of_line", ["\r", "\x0b", "\x85", "\u2028"])
def test_only_a_line_feed_begins_a_line_of_uv(end_of_line: str) -> None:
    assert isinstance(ended(f"…{end_of_line}error: x connection refused"), BuildFailure)
    assert isinstance(ended("…\nerror: x connection refused"), SuspectedOutage)


REFUSED = """\
error: Failed to fetch: http://index/simple/six/
  cause: error sending request for url (http://index/simple/six/)
  cause: client error (Connect)
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""


@pytest.mark.parametrize(
    ("log", "system"),
    [
        (REFUSED, "package index"),
        ("".join(f"#9 4.1 {line}\n" for line in REFUSED.splitlines()) + STEP, "package index"),
        ("error: Failed to resolve requirements from `setup.py` build\n" + REFUSED, "package index"),
        ("  cause: HTTP status client error (429 Too Many Requests) for url (https://index/simple/x)", "package index"),
        ("error: Request failed after 3 retries in 67.1s\n  cause: operation timed out", "package index"),
        (
            "ERROR: Could not install packages due to an OSError: HTTPSConnectionPool(host='index', port=443): Max "
            "retries exceeded with url: /simple/six/ (Caused by NewConnectionError('[Errno 111] Connection refused'))",
            "package index",
        ),
        ("#7 9.3 E: Failed to fetch http://deb.debian.org/x.deb  Could not connect to deb.debian.org:80", "apt"),
    ],
)
def test_a_system_that_gave_a_build_no_answer_is_suspected_of_being_down(log: str, system: str) -> None:
    failure = ended("first\n" * 100 + log)
    assert isinstance(failure, SuspectedOutage)
    assert (failure.system, failure.kind) == (system, "timeout")
    assert failure.log.count("first") == 100
    assert isinstance(ended(log, online=False), BuildFailure)


DOWNLOADS = """\
error: Failed to build `reader==1.0`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta:__legacy__.build_wheel` failed (exit status: 1)

         [stderr]
         error: curl: (7) Failed to connect to data.example.org port 443: Connection refused
         ConnectionRefusedError: [Errno 111] Connection refused
         urllib.error.URLError: <urlopen error [Errno 111] Connection refused>
"""


def test_a_source_distribution_that_downloads_in_vain_fails_the_build() -> None:
    assert isinstance(ended(DOWNLOADS), BuildFailure)
    assert isinstance(ended("".join(f"#9 4.1 {line}\n" for line in DOWNLOADS.splitlines()) + STEP), BuildFailure)


@pytest.mark.parametrize(
    ("log", "answers"), [("Prepared 3 packages in 1.20s", True), ("Installed 3 packages in 4ms", False)]
)
def test_an_index_has_answered_where_something_came_from_it(log: str, answers: bool) -> None:
    before = time.monotonic()
    note_index(log)
    assert has_answered_since(INDEX, before) is answers


UNRESOLVED = (
    "ERROR: failed to solve: python:3.12-slim: failed to resolve source metadata for docker.io/library/python: "
)


@pytest.mark.parametrize(
    ("words", "is_busy"),
    [
        ("unexpected status from HEAD request to https://hub/v2/: 429 Too Many Requests", True),
        ("toomanyrequests: You have reached your unauthenticated pull rate limit.", True),
        ("unexpected status from HEAD request to https://hub/v2/: 503 Service Unavailable", True),
        ("failed to do request: Head https://hub/v2/: net/http: TLS handshake timeout", True),
        ("docker.io/library/python:3.99-slim: not found", False),
        ("failed to do request: read tcp 10.0.0.2:4->10.0.0.3:443: read: connection reset by peer", True),
        ("pull access denied, repository does not exist or may require authorization", False),
        ("failed to do request: dial tcp: lookup hub: no such host", False),
    ],
)
def test_an_unavailable_registry_differs_from_one_without_the_image(words: str, is_busy: bool) -> None:
    assert registry_is_busy(UNRESOLVED + words) is is_busy
