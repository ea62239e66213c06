"""Images in a registry: pushed once under a tag that never moves, and pulled back by digest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from formulacode_dagster.engines.docker.daemon import DockerDaemon
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import PublishedImage

from .names import MAX_NAME, docker_name

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.errors import APIError

SYSTEM = "registry"
TIMEOUT_SECONDS = 600
"""Without a word from the daemon; a large layer can keep it silent for minutes."""

SINGLE_REPOSITORY = "formulacode"
_FINGERPRINT = 12
_DIGEST = "Digest: "
_DOCKER_HUB = ("", "docker.io", "index.docker.io", "registry-1.docker.io")
_REFUSED = (
    *("unauthorized", "authentication required", "no basic auth", "access denied", "requested access"),
    *("access to the resource is denied", "incorrect username or password"),
)
_UNKNOWN = ("manifest unknown", "not found", "name unknown", "repository does not exist", "no such manifest")
CREDENTIALS = "Set DOCKERHUB_USERNAME and DOCKERHUB_TOKEN to an account that may push to DOCKERHUB_NAMESPACE"


class Registry:
    """A registry as the Docker daemon of this machine reaches it."""

    def __init__(
        self, url: str, namespace: str, username: str, password: str, mode: Literal["single", "mirror"]
    ) -> None:
        self._host = url.removeprefix("https://").removeprefix("http://").strip("/")
        self._namespace = namespace.strip("/").lower()
        self._password = password
        # an empty dict, not None: with None docker-py looks for credentials in ~/.docker/config.json
        self._auth = {"username": username, "password": password} if username else {}
        self._mode = mode

    def publish(self, image: BuiltImage, *, month: str) -> PublishedImage:
        """Push *image* and pull it back by digest; an image that is there already is only pulled back.

        Raises ItemFailure (`image_missing`) when the image that was measured is no longer on this machine,
        (`published_tag`) when its tag holds something else, (`not_pulled_back`) when what came back is not what was
        measured; ConfigurationError when the registry refuses us; OutsideSystemError when it, or Docker, is dead.
        """
        repository, tag = self.repository_of(image), self.tag_of(image)
        reference = f"{repository}:{tag}"
        with self._errors(f"publish {reference}"):
            client = _docker()
            try:
                size = self._size_of_measured(client, image)
                digest = self._digest_of(client, reference)
                if digest is None:
                    digest = self._push(client, image, repository, tag)
                pulled = self._pull_back(client, image, repository, digest, reference)
                return PublishedImage(
                    month=month,
                    repository_id=image.repository_id,
                    number=image.number,
                    reference=reference,
                    digest=digest,
                    pulled_digest=pulled,
                    image_digest=image.digest,
                    size_bytes=size,
                )
            finally:
                client.close()

    @contextmanager
    def pulled(self, reference: str, digest: str) -> Iterator[str]:
        """Id of the image that *reference*, of any registry, has under *digest*; what was not here before goes again.

        Raises ItemFailure (`image_missing`) when the registry does not have it, else as `publish`.
        """
        repository = reference.rpartition(":")[0]
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

    def repository_of(self, image: BuiltImage) -> str:
        """`registry/namespace/repository`: one for all in `single` mode, one per GitHub repository in `mirror` mode."""
        name = SINGLE_REPOSITORY
        if self._mode == "mirror":
            name = docker_name(image.spec.repository.replace("/", "__"))
        return "/".join(part for part in (self._host, self._namespace, name) if part)

    def tag_of(self, image: BuiltImage) -> str:
        """A tag that names the task and the content, so that other content can never want the same one."""
        fingerprint = image.digest.removeprefix("sha256:")[:_FINGERPRINT]
        task = str(image.number) if self._mode == "mirror" else docker_name(image.spec.task_id)
        return f"{task[: MAX_NAME - _FINGERPRINT - 1]}-{fingerprint}"

    def _size_of_measured(self, client: DockerClient, image: BuiltImage) -> int:
        from docker.errors import ImageNotFound

        try:
            # by its digest: the name may stand for a later build by now
            return int(client.images.get(image.digest).attrs["Size"])
        except ImageNotFound as error:
            raise ItemFailure(
                FailureKind.IMAGE_MISSING,
                f"{image.location} cannot be published",
                why=f"the image that was measured, {image.digest}, is no longer on this machine",
                remedy="Materialize images and measurements again for this pull request",
            ) from error

    def _digest_of(self, client: DockerClient, reference: str) -> str | None:
        """What the tag stands for in the registry; None when it is free, or we are not allowed to know.

        Docker Hub answers a repository that does not exist yet and one that we may not see in the same words. With good
        credentials the push tells them apart, and can overwrite nothing: whatever else has this tag has this content.
        """
        from docker.errors import APIError

        try:
            return str(client.images.get_registry_data(reference, auth_config=self._auth).id)
        except APIError as error:
            said = str(error.explanation or error).lower()
            if any(word in said for word in _REFUSED):
                self._require_credentials(client, error)
            elif not any(word in said for word in _UNKNOWN):
                raise
            return None

    def _require_credentials(self, client: DockerClient, refusal: APIError) -> None:
        # the daemon would try a push with bad ones for a minute
        if not self._auth:
            raise refusal
        registry = None if self._host in _DOCKER_HUB else self._host
        client.login(self._auth["username"], self._password, registry=registry, reauth=True)

    def _push(self, client: DockerClient, image: BuiltImage, repository: str, tag: str) -> str:
        client.api.tag(image.digest, repository, tag, force=True)
        try:
            said = client.api.push(repository, tag=tag, stream=True, decode=True, auth_config=self._auth)
            lines = self._messages(said, f"push {repository}:{tag}")
        finally:
            _untag(client, f"{repository}:{tag}")
        digest = next((line["aux"].get("Digest") for line in lines if line.get("aux")), None)
        if digest is None:
            raise OutsideSystemError(
                SYSTEM,
                f"cannot push {repository}:{tag}",
                why="the push ended without naming a digest",
                remedy="Run published_images again",
            )
        return str(digest)

    def _pull_back(self, client: DockerClient, image: BuiltImage, repository: str, digest: str, reference: str) -> str:
        pinned = f"{repository}@{digest}"
        said = client.api.pull(repository, tag=digest, stream=True, decode=True, auth_config=self._auth)
        lines = [str(line.get("status", "")) for line in self._messages(said, f"pull {pinned}")]
        try:
            image_id = str(client.images.get(pinned).id)
        finally:
            _untag(client, pinned)
        if image_id != image.digest:
            raise ItemFailure(
                FailureKind.PUBLISHED_TAG,
                f"{reference} holds another image than the one that was measured",
                why=f"it is {image_id}, measured was {image.digest}; a published tag is never overwritten",
                remedy="Remove the tag from the registry if nobody depends on it, or publish to another namespace",
            )
        pulled = next((status.removeprefix(_DIGEST) for status in lines if status.startswith(_DIGEST)), "")
        if not pulled:
            raise ItemFailure(
                FailureKind.NOT_PULLED_BACK,
                f"{reference} did not come back by its digest {digest}",
                why="the pull ended without naming a digest",
                remedy="Run published_images again",
            )
        return pulled

    def _pull(self, client: DockerClient, repository: str, digest: str) -> None:
        from docker.errors import APIError

        pinned = f"{repository}@{digest}"
        # no other registry than ours is shown our credentials
        auth = self._auth if self._host and repository.startswith(f"{self._host}/") else {}
        try:
            said = client.api.pull(repository, tag=digest, stream=True, decode=True, auth_config=auth)
            errors = [str(line["error"]) for line in said if line.get("error")]
        except APIError as error:
            errors = [str(error.explanation or error)]
        for text in errors:
            if any(word in text.lower() for word in _UNKNOWN):
                raise ItemFailure(
                    FailureKind.IMAGE_MISSING,
                    f"{pinned} is not in its registry",
                    why=self._clean(text),
                    remedy="Look whether it was removed there, or may be pulled by its owner only",
                )
            self._raise_for(text, f"pull {pinned}")

    def _messages(self, stream: Iterable[dict[str, Any]], attempt: str) -> list[dict[str, Any]]:
        """What the daemon said, progress aside; listened to until the end, or its connection would stay open."""
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
                why=self._clean(str(error)),
                remedy="Start the Docker daemon that DOCKER_HOST names, then run the month again",
            ) from None

    def _raise_for(self, said: str, attempt: str, error: APIError | None = None) -> None:
        why, lowered = self._clean(said), said.lower()
        if any(word in lowered for word in _REFUSED):
            raise ConfigurationError(f"the registry refuses to let us {attempt}", why=why, remedy=CREDENTIALS) from None
        if "toomanyrequests" in lowered or "rate limit" in lowered:
            raise OutsideSystemError(
                SYSTEM, f"cannot {attempt}", why=why, remedy="Run the month again when the limit is reset"
            ) from None
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

    def _clean(self, text: str) -> str:
        flat = " ".join(text.split())
        return (flat.replace(self._password, "[password]") if self._password else flat)[:400]


def _docker() -> DockerClient:
    import docker

    # the daemon that built the images, also where only a Docker context names it
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
