"""A registry over HTTP (OCI distribution specification): manifests, blobs, and its rate limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NoReturn

import httpx

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.backoff import Backoff, retry_after
from formulacode_dagster.operating.cancellation.stopping import stop_request

from .accounts import CREDENTIALS, Account, Authorization
from .manifests import ACCEPTED, Descriptor, ImageManifest, digest_of

SYSTEM = "registry"
TIMEOUT_SECONDS = 60
CHUNK = 1 << 20
ATTEMPTS = 5
BACKOFF = Backoff(first_seconds=1, longest_seconds=20, jitter=(0.5, 1))
LONGEST_LIMIT_SECONDS = timedelta(hours=12).total_seconds()
"""Docker Hub counts in windows of six hours; a refusal after two of them has another cause."""
HUB_URL = "https://registry-1.docker.io"
_HUB_NAMES = ("", "docker.io", "index.docker.io", "registry-1.docker.io")
_LOCAL = ("127.", "localhost")

Sleep = Callable[[float], None]


def base_url(address: str) -> str:
    """Return the address of the registry of FC_REGISTRY_URL; a local one without TLS unless it says `https://`."""
    if address.startswith(("http://", "https://")):
        return address.rstrip("/")
    if address.strip("/") in _HUB_NAMES:
        return HUB_URL
    return f"{'http' if address.startswith(_LOCAL) else 'https'}://{address.strip('/')}"


class Limits:
    """The wait after a 429: the time it asks for, else *seconds*; twelve hours in all."""

    def __init__(self, seconds: float, sleep: Sleep | None = None) -> None:
        self._seconds = seconds
        self.sleep = sleep or stop_request().sleep
        self.waited = 0.0
        """Seconds so far."""

    def wait(self, answer: httpx.Response | None, attempt: str) -> None:
        """Wait before the next try of *attempt*; raises OutsideSystemError when that takes too long, Stopped."""
        asked = retry_after(answer.headers, time.time()) if answer is not None else None
        seconds = self._seconds if asked is None else asked
        if self.waited + seconds > LONGEST_LIMIT_SECONDS:
            raise OutsideSystemError(
                SYSTEM,
                f"cannot {attempt}",
                why=f"its rate limit asks to wait for {seconds:.0f} s more, after {self.waited:.0f} s",
                remedy="Run the month again when the limit is reset",
            )
        self.sleep(seconds)
        self.waited += seconds


class RegistryClient:
    """A registry as one account sees it. Safe between threads; `close` it."""

    def __init__(self, url: str, account: Account, limits: Limits) -> None:
        # a blob may lie with a storage service: there we are redirected, without our credentials
        self._http = httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS, follow_redirects=True)
        self._account = account
        self._authorization = Authorization(self._http, account)
        self.limits = limits

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def manifest(self, repository: str, reference: str, *, push: bool = False) -> ImageManifest | None:
        """Return the manifest behind a tag or digest; None if there is none. With *push*, request push permission.

        Raises ConfigurationError if the registry refuses us, OutsideSystemError if it is dead or returns wrong content.
        """
        attempt = f"read {repository}:{reference}"
        path = f"/v2/{repository}/manifests/{reference}"
        with self._answer("GET", path, repository, attempt, push=push, headers={"Accept": ACCEPTED}) as answer:
            if answer.status_code == 404:
                return None
            self._require(answer, attempt, 200)
            manifest = ImageManifest.of(answer.read(), answer.headers.get("content-type", "").partition(";")[0])
        if reference.startswith("sha256:") and manifest.digest != reference:
            raise OutsideSystemError(SYSTEM, f"cannot {attempt}", why=f"the content hashes to {manifest.digest}")
        return manifest

    def may_read(self, repository: str, reference: str) -> bool:
        """Return True if this account may read the manifest."""
        path, attempt = f"/v2/{repository}/manifests/{reference}", f"read {repository}:{reference}"
        with self._answer("HEAD", path, repository, attempt, headers={"Accept": ACCEPTED}) as answer:
            if answer.status_code in (401, 403, 404):
                return False
            self._require(answer, attempt, 200)
            return True

    def require_account(self, repository: str) -> None:
        """Log in, as one who may push to *repository*; raises as `manifest`. Rights to it are not checked."""
        attempt = "log in"
        with self._answer("GET", "/v2/", repository, attempt, push=True) as answer:
            self._require(answer, attempt, 200)

    def require_push(self, repository: str) -> None:
        """Begin an upload to *repository* and cancel it; raises as `manifest`. It need not be there yet."""
        attempt = f"push to {repository}"
        with self._answer("POST", f"/v2/{repository}/blobs/uploads/", repository, attempt, push=True) as answer:
            self._require(answer, attempt, 202, 404)
            location = answer.headers.get("location", "") if answer.status_code == 202 else ""
            where = answer.url.join(location)
        if location:
            with self._answer("DELETE", str(where), repository, attempt, push=True):
                # a registry that keeps it removes it later
                return

    @contextmanager
    def blob(self, repository: str, digest: str) -> Iterator[Iterator[bytes]]:
        """The bytes of a blob as they come, unverified.

        Raises as `manifest`, ItemFailure (`not_pulled_back`) if there is none, httpx.HTTPError if the connection
        breaks.
        """
        attempt = f"read {repository}@{digest}"
        with self._answer("GET", f"/v2/{repository}/blobs/{digest}", repository, attempt) as answer:
            if answer.status_code == 404:
                raise ItemFailure(
                    FailureKind.NOT_PULLED_BACK,
                    f"cannot {attempt}",
                    why="the registry has a manifest that names it, and not the blob",
                    remedy="Remove the image from the registry, then run published_images again",
                )
            self._require(answer, attempt, 200)
            yield answer.iter_bytes(CHUNK)

    def put_blob(self, repository: str, content: bytes, media_type: str) -> Descriptor:
        """Keep *content*, which is small, unless it is there; raises as `manifest`."""
        blob = Descriptor(digest_of(content), len(content), media_type)
        attempt, uploads = f"push {repository}@{blob.digest}", f"/v2/{repository}/blobs/uploads/"
        path = f"/v2/{repository}/blobs/{blob.digest}"
        with self._answer("HEAD", path, repository, attempt, push=True) as answer:
            if answer.status_code == 200:
                return blob
        with self._answer("POST", uploads, repository, attempt, push=True) as answer:
            self._require(answer, attempt, 202)
            where = answer.url.join(answer.headers.get("location", ""))
        where = where.copy_merge_params({"digest": blob.digest})
        typed = {"Content-Type": "application/octet-stream"}
        with self._answer("PUT", str(where), repository, attempt, push=True, content=content, headers=typed) as answer:
            self._require(answer, attempt, 201)
        return blob

    def put_manifest(self, repository: str, reference: str, manifest: ImageManifest) -> httpx.Headers:
        """Store *manifest* under a tag or its digest; return the registry's response. Raises as `manifest`."""
        attempt, path = f"push {repository}:{reference}", f"/v2/{repository}/manifests/{reference}"
        typed = {"Content-Type": manifest.media_type}
        with self._answer(
            "PUT", path, repository, attempt, push=True, content=manifest.content, headers=typed
        ) as answer:
            self._require(answer, attempt, 201)
            return answer.headers

    def document(self, repository: str, path: str) -> bytes | None:
        """Return the registry's response at *path* below `/v2/repository/`; None if there is nothing."""
        attempt = f"read {path} of {repository}"
        with self._answer("GET", f"/v2/{repository}/{path}", repository, attempt) as answer:
            if answer.status_code == 404:
                return None
            self._require(answer, attempt, 200)
            return answer.read()

    def wait_for_limit(self, repository: str, reference: str) -> None:
        """Wait as long as the registry asks for, or else the setting says, if any request got a 429."""
        attempt = f"push {repository}:{reference}"
        try:
            header = self._authorization.header(_scope(repository, push=True))
            answer = self._http.head(
                f"/v2/{repository}/manifests/{reference}", headers={"Authorization": header} if header else {}
            )
        except httpx.HTTPError as error:
            self._raise_dead(attempt, error)
        self.limits.wait(answer, attempt)

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        repository: str,
        attempt: str,
        *,
        push: bool = False,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Iterator[httpx.Response]:
        """Return the response, after waiting for limits and retrying transient errors; its body is not read yet."""
        scope, challenged, failures = _scope(repository, push=push), False, 0
        while True:
            known = self._authorization.header(scope)
            sent = {**(headers or {}), **({"Authorization": known} if known else {})}
            request = self._http.build_request(method, path, content=content, headers=sent)
            try:
                answer = self._http.send(request, stream=True)
                if answer.status_code == 401 and not challenged:
                    answer.close()
                    challenged = True
                    if self._authorization.answer(answer.headers.get("www-authenticate", ""), scope):
                        continue
                    answer = self._http.send(request, stream=True)
            except httpx.HTTPError as error:
                challenged, failures = False, failures + 1
                if failures >= ATTEMPTS:
                    self._raise_dead(attempt, error)
                self.limits.sleep(BACKOFF.seconds(failures))
                continue
            # a token may expire during either wait
            if answer.status_code == 429:
                answer.close()
                challenged = False
                self.limits.wait(answer, attempt)
                continue
            if answer.status_code >= 500 and failures < ATTEMPTS - 1:
                answer.close()
                challenged, failures = False, failures + 1
                self.limits.sleep(BACKOFF.seconds(failures))
                continue
            break
        try:
            yield answer
        finally:
            answer.close()

    def _require(self, answer: httpx.Response, attempt: str, *expected: int) -> None:
        if answer.status_code in expected:
            return
        why = self._account.credentials().clean(f"HTTP {answer.status_code} {answer.read().decode(errors='replace')}")
        if answer.status_code in (401, 403):
            raise ConfigurationError(f"the registry refuses to let us {attempt}", why=why, remedy=CREDENTIALS)
        raise OutsideSystemError(
            SYSTEM,
            f"cannot {attempt}",
            why=why,
            remedy="Check FC_REGISTRY_URL and that the registry answers, then run the month again",
        )

    def _raise_dead(self, attempt: str, error: httpx.HTTPError) -> NoReturn:
        raise OutsideSystemError(
            SYSTEM,
            f"cannot {attempt}",
            why=self._account.credentials().clean(f"{type(error).__name__} {error}"),
            remedy="Check FC_REGISTRY_URL and that the registry answers, then run the month again",
        ) from None


def _scope(repository: str, *, push: bool) -> str:
    return f"repository:{repository}:{'pull,push' if push else 'pull'}"
