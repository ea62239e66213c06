from __future__ import annotations

import pytest

from formulacode_dagster.engines.failures import (
    BuildFailure,
    code_of_step,
    docker_is_dead,
    failure_of,
    registry_is_busy,
)
from formulacode_dagster.models.errors import FormulaCodeError, OutsideSystemError

BRIDGE = (
    'ERROR: failed to solve: process "/bin/sh -c /opt/formulacode/bin/install-system" did not complete successfully: '
    "failed to create endpoint ppbjkh7jzu3b on network bridge: adding interface vethf8eb17d to bridge docker0 failed: "
    "Device does not exist"
)
STEP = 'ERROR: failed to solve: process "/bin/sh -c /opt/x" did not complete successfully: exit code: 2'


def ended(log: str, *, online: bool = True, timed_out: bool = False, rc: int | None = 1) -> FormulaCodeError:
    return failure_of("x", stage="env", log=log, online=online, timed_out=timed_out, seconds=9.0, rc=rc)


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


@pytest.mark.parametrize(
    ("log", "system"),
    [
        ("error: No space left on device", "disk"),
        ("  cause: dns error", "package index"),
        ("  cause: HTTP status client error (429 Too Many Requests) for url (https://index/simple/x)", "package index"),
        ("error: Request failed after 3 retries in 67.1s\n  cause: operation timed out", "package index"),
    ],
)
def test_an_outside_system_that_is_gone_is_not_the_items_failure(log: str, system: str) -> None:
    failure = ended(log)
    assert isinstance(failure, OutsideSystemError)
    assert failure.system == system


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
        ("pull access denied, repository does not exist or may require authorization", False),
        ("failed to do request: dial tcp: lookup hub: no such host", False),
    ],
)
def test_a_registry_that_cannot_tell_now_is_told_from_one_that_has_no_such_image(words: str, is_busy: bool) -> None:
    assert registry_is_busy(UNRESOLVED + words) is is_busy
