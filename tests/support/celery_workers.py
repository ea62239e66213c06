"""Whether the requirements of deploy/celery are present, and the waits there."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from bench.celery_services import Services
from tests.support.waiting import until


def require_redis() -> None:
    """Skip the test where there is no Redis; in CI, as every skip, that fails the run."""
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server; run .ci/install-redis")


def wait_until(is_so: Callable[[], object], services: Services, what: str) -> None:
    """Return once *is_so*; fails with what the services said."""
    until(is_so, lambda: f"{what}\n{services.said()}")
