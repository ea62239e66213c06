"""Coverage of a commit's files, over HTTP from the sandbox's Codecov."""

from __future__ import annotations

import httpx
import pytest

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.releasing.commit_reports.codecov import CodecovClient
from formulacode_dagster.sources.dashboards.server import Server
from tests.support import codecov
from tests.support.clock import FakeClock

SHA, TOKEN = "a" * 40, "t"
REPORTS = {("acme/tiny", SHA): {"tiny/core.py": (6, 1, 3), "tiny/empty.py": (0, 0, 0)}}


def files(sha: str = SHA, *, token: str = TOKEN, transport: httpx.AsyncBaseTransport | None = None, **served):
    clock = FakeClock()
    asked = transport or httpx.ASGITransport(codecov.app(REPORTS, token=TOKEN, **served))

    async def ask():
        server = Server("https://codecov.test", pace=0.5, token=token, clock=clock, transport=asked)
        async with CodecovClient(server) as client:
            told = await client.files("acme/tiny", sha)
            again = await client.files("acme/tiny", sha)
            assert told == again
            return told, clock.time()

    return run_loop(ask())


def test_files_have_their_own_coverage_and_never_the_commits():
    told, _ = files()
    assert set(told) == {"tiny/core.py"}
    core = told["tiny/core.py"]
    assert (core.lines, core.hits, core.share) == (10, 6, 0.6)


def test_a_commit_without_a_report_has_none():
    assert files("b" * 40)[0] is None


def test_a_server_that_asks_to_wait_or_has_a_bad_moment_is_asked_again():
    assert files(moments=(429, 502, 503))[0] is not None


def test_requests_keep_a_pace():
    start = FakeClock().time()
    assert files()[1] - start >= 0.5


@pytest.mark.parametrize(("given", "remedy"), [({"token": "wrong"}, "CODECOV_TOKEN"), ({"token": ""}, "CODECOV_TOKEN")])
def test_a_token_that_is_refused_is_told_by_its_setting(given, remedy):
    with pytest.raises(OutsideSystemError, match=remedy):
        files(**given)


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"files": [{"totals": {"lines": 1}}]}'])
def test_an_answer_that_is_no_report_is_no_coverage(content):
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, content=content))
    with pytest.raises(OutsideSystemError, match="invalid report"):
        files(transport=transport)
