"""The `huggingface_hub` client as we use it: explicit endpoint and token, nothing kept on this machine, errors of ours.

This module covers the client; releases are in `hub`.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.backoff import Backoff, retry_after
from formulacode_dagster.operating.files.atomic import disk_error

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

TIMEOUT_SECONDS = 60
"""Timeout of a request without a byte; the client's own default is to wait for ever."""

REPO_TYPE = "dataset"
SYSTEM = "hub"
ATTEMPTS = 5
BACKOFF = Backoff(first_seconds=2, longest_seconds=60, jitter=(0.5, 1))
LONGEST_WAIT_SECONDS = 3600
"""Longer than that a limit is not waited for: the Hub counts commits by the hour."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504})

T = TypeVar("T")


def hub_api(endpoint: str, token: str, timeout: float = TIMEOUT_SECONDS) -> HfApi:
    """Return a client limited to this endpoint and token, without a cache or telemetry."""
    from huggingface_hub import HfApi

    _prepare_client(timeout)
    # the client calls its own HTTP library in a way that the library has deprecated: not for our users to read
    warnings.filterwarnings("ignore", message="Use 'content=", category=DeprecationWarning)
    # without one it would use any token in the user's home
    return HfApi(endpoint=endpoint.rstrip("/"), token=token or False, library_name="formulacode-dagster")


@functools.lru_cache(maxsize=1)  # the client has one factory for the whole process
def _prepare_client(timeout: float) -> None:
    """Settings that the client keeps for the whole process."""
    from huggingface_hub import constants, set_client_factory
    from huggingface_hub.utils._http import default_client_factory
    from huggingface_hub.utils.tqdm import disable_progress_bars

    # Xet would keep chunks under the home folder, and needs a server that not every Hub has; our files are small.
    constants.HF_HUB_DISABLE_XET = True
    constants.HF_HUB_DISABLE_TELEMETRY = True
    disable_progress_bars()

    def with_timeout() -> Any:
        client = default_client_factory()
        client.timeout = timeout
        return client

    set_client_factory(with_timeout)


@contextmanager
def hub_errors(attempt: str, token: str) -> Iterator[None]:
    """Convert the client's exceptions while it tries to *attempt* something into ours, without the token."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled

    # the client's HTTP library has changed its name once; its own base class follows
    transport_error: type[Exception] = HfHubHTTPError.__bases__[0]
    try:
        yield
    except HFValidationError as error:
        raise ConfigurationError(
            f"cannot {attempt}", why=_without(token, error), remedy="Write HF_DATASET as owner/name"
        ) from error
    except HfHubHTTPError as error:
        _raise_for_answer(attempt, error, token)
    except RuntimeError as error:
        # the client wraps errors while a file is uploaded
        if isinstance(error.__cause__, HfHubHTTPError):
            _raise_for_answer(attempt, error.__cause__, token)
        _raise_dead(attempt, error.__cause__ or error, token)
    except (transport_error, LocalEntryNotFoundError, OfflineModeIsEnabled, ValueError) as error:
        _raise_dead(attempt, error, token)
    except OSError as error:
        if error.errno is None:
            _raise_dead(attempt, error, token)
        raise disk_error(f"permission to {attempt}", error) from error


def download(api: HfApi, repo_id: str, path: str, revision: str) -> bytes | None:
    """Return the current content of *path* at *revision* on the Hub; None if there is no such file or dataset."""
    from huggingface_hub.errors import RemoteEntryNotFoundError, RepositoryNotFoundError

    with tempfile.TemporaryDirectory(prefix="fc-hub-") as folder:
        try:
            local = api.hf_hub_download(repo_id, path, repo_type=REPO_TYPE, revision=revision, cache_dir=folder)
        except RemoteEntryNotFoundError:
            return None
        except RepositoryNotFoundError as error:
            # also what the Hub answers to a wrong token, with 401
            if error.response.status_code != 404:
                raise
            return None
        return Path(local).read_bytes()


def patiently(call: Callable[[], T], sleep: Callable[[float], object]) -> T:
    """Return the result of *call*, which may be repeated: it is retried while the Hub limits us or is out of order.

    It waits as long as `Retry-After` says, else longer each time; finally raises the client's last error.
    """
    from huggingface_hub.errors import HfHubHTTPError

    for failures in itertools.count(1):
        try:
            return call()
        except (HfHubHTTPError, RuntimeError) as error:
            # the client wraps errors while a file is uploaded
            told = error if isinstance(error, HfHubHTTPError) else error.__cause__
            if not isinstance(told, HfHubHTTPError) or told.response.status_code not in _PASSING:
                raise
            asked = retry_after(told.response.headers, time.time())
            wait = BACKOFF.seconds(failures) if asked is None else asked
            if failures == ATTEMPTS or wait > LONGEST_WAIT_SECONDS:
                raise
            sleep(wait)
    raise AssertionError("unreachable: counting does not end")


def _raise_for_answer(attempt: str, error: HfHubHTTPError, token: str) -> NoReturn:
    from huggingface_hub.errors import RepositoryNotFoundError

    status, why = error.response.status_code, _without(token, error)
    if status in (401, 403):
        raise ConfigurationError(
            f"the Hub refuses to {attempt}",
            why=why,
            remedy="Set HF_TOKEN (or HF_TOKEN_PATH) to a token with write access to HF_DATASET",
        ) from None
    if isinstance(error, RepositoryNotFoundError):
        raise ConfigurationError(
            f"cannot {attempt}", why=why, remedy="Check HF_DATASET and HF_ENDPOINT, and the permissions of HF_TOKEN"
        ) from None
    if status in (408, 429) or status >= 500:
        raise OutsideSystemError(
            SYSTEM, f"cannot {attempt}", why=why, remedy="Run the month again later; it continues where it stopped"
        ) from None
    raise ItemFailure(FailureKind.HUB_REFUSED, f"cannot {attempt}", why=why) from None


def _raise_dead(attempt: str, error: BaseException, token: str) -> NoReturn:
    raise OutsideSystemError(
        SYSTEM,
        f"cannot {attempt}",
        why=f"{type(error).__name__}: {_without(token, error)}",
        remedy="Check HF_ENDPOINT and the network, then run the month again; it continues where it stopped",
    ) from None


def _without(token: str, error: BaseException) -> str:
    text = " ".join(str(error).split())
    return (text.replace(token, "[token]") if token else text)[:400]
