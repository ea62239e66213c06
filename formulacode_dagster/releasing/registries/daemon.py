"""Registry operations of the Docker daemon: it packs and pushes layers, and pulls images to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind

from .accounts import CREDENTIALS, Credentials

if TYPE_CHECKING:
    from docker import DockerClient

SYSTEM = "registry"
TIMEOUT_SECONDS = 600
"""Without a word from the daemon; a large layer can keep it silent for minutes."""
_SHORT_ID = 12
"""Digits by which the daemon names a layer while it pushes it."""
_PUSHED = "Pushed"
_REFUSED = (
    *("unauthorized", "authentication required", "no basic auth", "access denied", "requested access"),
    *("access to the resource is denied", "incorrect username or password"),
)
_LIMITED = ("toomanyrequests", "too many requests", "rate limit")
_UNKNOWN = ("manifest unknown", "not found", "name unknown", "repository does not exist", "no such manifest")


class RateLimitedError(Exception):
    """The registry asks the daemon to wait; for how long, the daemon does not say."""


@dataclass(frozen=True)
class Push:
    """Result of pushing one image."""

    digest: str
    """Digest of the manifest."""
    sent: tuple[int, ...]
    """Layers, counted from the bottom, that the registry did not have."""


class ImageDaemon:
    """The daemon that built the images; only *credentials* are ever shown to the registry."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def push(self, image_id: str, repository: str, tag: str) -> Push:
        """Push the image of that id; layers that the registry has are not sent again.

        Raises ItemFailure (`image_gone`) when it is no longer on this machine, RateLimitedError, ConfigurationError
        when the registry refuses us, OutsideSystemError when it, or Docker, is dead.
        """
        from docker.errors import ImageNotFound

        attempt = f"push {repository}:{tag}"
        with self._errors(attempt), closing(_docker()) as client:
            try:
                # by its digest: the name may denote a later build by now
                layers = [str(layer) for layer in client.images.get(image_id).attrs["RootFS"]["Layers"]]
                client.api.tag(image_id, repository, tag, force=True)
            except ImageNotFound as error:
                raise ItemFailure(
                    FailureKind.IMAGE_GONE,
                    f"{repository}:{tag} cannot be published",
                    why=f"the image that was measured, {image_id}, is no longer on this machine",
                    remedy="Run the month again, which builds and measures it again",
                ) from error
            try:
                said = client.api.push(
                    repository, tag=tag, stream=True, decode=True, auth_config=self._credentials.for_daemon
                )
                lines = self._messages(said, attempt)
            finally:
                _untag(client, f"{repository}:{tag}")
        digest = next((line["aux"].get("Digest") for line in lines if line.get("aux")), None)
        if digest is None:
            raise OutsideSystemError(
                SYSTEM,
                f"cannot {attempt}",
                why="the push ended without naming a digest",
                remedy="Run published_images again",
            )
        pushed = {str(line.get("id")) for line in lines if line.get("status") == _PUSHED}
        short = [layer.removeprefix("sha256:")[:_SHORT_ID] for layer in layers]
        return Push(str(digest), tuple(index for index, name in enumerate(short) if name in pushed))

    @contextmanager
    def pulled(self, repository: str, digest: str) -> Iterator[str]:
        """Return the id of the image that *repository* has under *digest*; an image that was not here before is removed
        again.

        Raises ItemFailure (`image_missing`) when the registry does not have it, else as `push`.
        """
        pinned = f"{repository}@{digest}"
        with self._errors(f"pull {pinned}"), closing(_docker()) as client:
            was_here = _has(client, pinned)
            if not was_here:
                self._pull(client, repository, digest)
            image_id = str(client.images.get(pinned).id)
        try:
            yield image_id
        finally:
            if not was_here:
                with self._errors(f"remove {pinned}"), closing(_docker()) as client:
                    _untag(client, pinned)

    def saved(self, image_id: str) -> Iterator[bytes]:
        """Stream the image of that id, as `docker save`; raises ItemFailure (`image_missing`) if it is not here."""
        from docker.errors import ImageNotFound

        with self._errors(f"save {image_id}"), closing(_docker()) as client:
            try:
                yield from client.images.get(image_id).save()
            except ImageNotFound as error:
                raise ItemFailure(
                    FailureKind.IMAGE_MISSING,
                    f"the image {image_id} is not here",
                    why="it was published nowhere, and the daemon does not have it",
                    remedy="Pack it where it was built; or publish it (FC_REGISTRY_URL) and release a revision",
                ) from error

    def _pull(self, client: DockerClient, repository: str, digest: str) -> None:
        from docker.errors import APIError

        pinned = f"{repository}@{digest}"
        try:
            said = client.api.pull(
                repository, tag=digest, stream=True, decode=True, auth_config=self._credentials.for_daemon
            )
            errors = [str(line["error"]) for line in said if line.get("error")]
        except APIError as error:
            errors = [str(error.explanation or error)]
        for text in errors:
            if any(word in text.lower() for word in _UNKNOWN):
                raise ItemFailure(
                    FailureKind.IMAGE_MISSING,
                    f"{pinned} is not in its registry",
                    why=self._credentials.clean(text),
                    remedy="Look whether it was removed there, or may be pulled by its owner only",
                )
            self._raise_for(text, f"pull {pinned}")

    def _messages(self, stream: Iterable[Mapping[str, Any]], attempt: str) -> list[Mapping[str, Any]]:
        """Return the daemon's messages, without progress; the stream is read to its end, or its connection would stay
        open.
        """
        lines = [line for line in stream if not line.get("progressDetail")]
        for line in lines:
            if error := line.get("error"):
                self._raise_for(str(error), attempt)
        return lines

    @contextmanager
    def _errors(self, attempt: str) -> Iterator[None]:
        import requests
        from docker.errors import APIError, DockerException

        try:
            yield
        except APIError as error:
            self._raise_for(str(error.explanation or error), attempt, error)
        except (DockerException, requests.RequestException) as error:
            raise OutsideSystemError(
                "docker",
                f"cannot {attempt}",
                why=self._credentials.clean(str(error)),
                remedy="Start the Docker daemon that DOCKER_HOST names, then run the month again",
            ) from None

    def _raise_for(self, said: str, attempt: str, error: Exception | None = None) -> None:
        why, lowered = self._credentials.clean(said), said.lower()
        if any(word in lowered for word in _REFUSED):
            raise ConfigurationError(f"the registry refuses to let us {attempt}", why=why, remedy=CREDENTIALS) from None
        if any(word in lowered for word in _LIMITED):
            raise RateLimitedError(f"cannot {attempt}: {why}") from None
        if "invalid reference format" in lowered or "invalid tag" in lowered:
            raise ConfigurationError(
                f"cannot {attempt}", why=why, remedy="Check FC_REGISTRY_URL and DOCKERHUB_NAMESPACE"
            ) from None
        raise OutsideSystemError(
            SYSTEM,
            f"cannot {attempt}",
            why=why,
            remedy="Check FC_REGISTRY_URL and that the registry answers, then run the month again",
        ) from error


def _docker() -> DockerClient:
    import docker

    # the daemon that built the images, even if only a Docker context names it
    return docker.from_env(timeout=TIMEOUT_SECONDS, environment=DockerDaemon().environment)


def _has(client: DockerClient, name: str) -> bool:
    from docker.errors import ImageNotFound

    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    return True


def _untag(client: DockerClient, reference: str) -> None:
    """Drop a local name that was only needed to push or pull; the image itself keeps its own."""
    from docker.errors import ImageNotFound

    try:
        client.api.remove_image(reference, noprune=True)
    except ImageNotFound:
        return
