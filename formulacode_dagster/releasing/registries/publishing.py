"""Images in a registry: pushed once under a tag that never moves, pulled back, with their provenance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Literal

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import PublishedImage
from formulacode_dagster.releasing.registries.names import MAX_NAME, ImageName, docker_name
from formulacode_dagster.releasing.registries.provenance import PROVENANCE_TYPE, image_of, provenance_of
from formulacode_dagster.releasing.registries.sbom import SBOM_TYPE, sbom_of
from formulacode_dagster.sources.github.transport.addresses import PUBLIC_WEB

from .accounts import CREDENTIALS, STRANGER, Account, Credentials
from .client import HUB_URL, Limits, RegistryClient, base_url
from .daemon import SYSTEM, ImageDaemon, Push, RateLimitedError
from .manifests import ImageManifest
from .pull_back import PullBack
from .referrers import attach, attached_content

SINGLE_REPOSITORY = "formulacode"
RATE_LIMIT_SECONDS = 900.0
_FINGERPRINT = 12


class Registry:
    """A registry, pushed to by the Docker daemon of this machine and read over HTTP. Safe between threads."""

    def __init__(
        self,
        url: str,
        namespace: str,
        account: Account,
        mode: Literal["single", "mirror"],
        limits: Limits | None = None,
        repository: str = SINGLE_REPOSITORY,
        *,
        web: str = PUBLIC_WEB,
    ) -> None:
        """*repository* is that of all images in mode `single`, and *web* the address of the GitHub of their code."""
        self._host = url.removeprefix("https://").removeprefix("http://").strip("/")
        self._base = base_url(url)
        self._namespace = namespace.strip("/").lower()
        self._account = account
        self._mode, self._repository = mode, repository
        self._limits = limits or Limits(RATE_LIMIT_SECONDS)
        self._web = web
        # one store for all images of a run, and one for anonymous pulls
        self._ours, self._public = PullBack(), PullBack()

    def publish(self, image: BuiltImage, *, month: str) -> PublishedImage:
        """Push *image* and pull it back by digest; an image that is there already is only pulled back.

        It is pulled anonymously if the repository is public, else with our credentials. Raises ItemFailure
        (`image_gone`) if the measured image is no longer on this machine, (`published_tag`) if its tag holds something
        else, (`not_pulled_back`) if the pulled image is not the measured one; ConfigurationError if the registry
        refuses us; OutsideSystemError if it, or Docker, is dead.
        """
        path, tag = self.path_of(image), self.tag_of(image)
        reference = f"{self.repository_of(image)}:{tag}"
        with closing(RegistryClient(self._base, self._account, self._limits)) as client:
            self._account.prepare(path)
            manifest = client.manifest(path, tag, push=True)
            push = None
            if manifest is None:
                push = self._push(client, image, path, tag)
                manifest = client.manifest(path, push.digest)
            if manifest is None:
                raise OutsideSystemError(SYSTEM, f"cannot push {reference}", why="it is not there after the push")
            _require_measured(manifest, image, reference)
            with closing(RegistryClient(self._base, STRANGER, self._limits)) as stranger:
                is_public = stranger.may_read(path, manifest.digest)
                puller, store = (stranger, self._public) if is_public else (client, self._ours)
                pulled = store.pull(puller, path, manifest.digest)
            told = {"reference": reference, "digest": manifest.digest}
            statement = provenance_of(image, **told, web=self._web)
            provenance = attach(client, path, manifest, PROVENANCE_TYPE, statement, "provenance.intoto.json")
            sbom = attach(
                client, path, manifest, SBOM_TYPE, sbom_of(image, created=pulled.created, **told), "sbom.cdx.json"
            )
        pushed_bytes = _sent_bytes(manifest, push) if push else 0
        return PublishedImage(
            month=month,
            repository_id=image.repository_id,
            number=image.number,
            reference=reference,
            digest=manifest.digest,
            pulled_digest=pulled.digest,
            image_digest=image.digest,
            size_bytes=manifest.size,
            pushed_bytes=pushed_bytes,
            saved_bytes=manifest.size - pushed_bytes,
            pulled_bytes=pulled.bytes,
            is_public=is_public,
            provenance_digest=provenance,
            sbom_digest=sbom,
        )

    def require_write(self) -> None:
        """Raise ConfigurationError if the registry refuses our account, OutsideSystemError without an answer.

        In mode `mirror` only the account is checked: its repositories are known later.
        """
        if self._base == HUB_URL and not self._account.credentials().username:
            raise ConfigurationError("Docker Hub takes images only from an account", remedy=CREDENTIALS)
        with closing(RegistryClient(self._base, self._account, self._limits)) as client:
            if self._mode == "mirror":
                client.require_account(self._path("preflight"))
            else:
                client.require_push(self._path(self._repository))

    def attested_image(self, reference: str) -> BuiltImage:
        """Return the image that the provenance attached to *reference*, of any registry, describes.

        Raises ConfigurationError if *reference* is invalid, ItemFailure (`image_missing`, `not_pulled_back`,
        `unreadable`), and the errors of reading a registry.
        """
        with self.reading(reference) as (client, named):
            manifest = client.manifest(named.path, named.version)
            if manifest is None:
                raise ItemFailure(FailureKind.IMAGE_MISSING, f"{reference} is not in its registry")
            statement = attached_content(client, named.path, manifest.digest, PROVENANCE_TYPE)
        return image_of(statement, digest=manifest.digest, image_id=manifest.config.digest)

    @contextmanager
    def reading(self, reference: str) -> Iterator[tuple[RegistryClient, ImageName]]:
        """Yield a client for the registry of *reference*, any one, and the name in it.

        Only our own registry gets our credentials. Raises ConfigurationError if *reference* is invalid.
        """
        named = ImageName.parse(reference)
        is_ours = named.host == self._host
        account = self._account if is_ours else STRANGER
        with closing(RegistryClient(self._base if is_ours else base_url(named.host), account, self._limits)) as client:
            yield client, named

    def saved(self, image_id: str) -> Iterator[bytes]:
        """Stream an image of this machine's daemon; raises as `ImageDaemon.saved`."""
        return ImageDaemon(Credentials()).saved(image_id)

    @contextmanager
    def pulled(self, reference: str, digest: str) -> Iterator[str]:
        """Return the id of the image that *reference*, of any registry, has under *digest*; an image that was not here
        before is removed again.

        Raises ItemFailure (`image_missing`) when the registry does not have it, else as `publish`.
        """
        repository = reference.rpartition(":")[0]
        # no other registry than ours is shown our credentials
        is_ours = bool(self._host) and repository.startswith(f"{self._host}/")
        daemon = ImageDaemon(self._account.credentials() if is_ours else Credentials())
        try:
            with daemon.pulled(repository, digest) as image_id:
                yield image_id
        except RateLimitedError as error:
            raise OutsideSystemError(SYSTEM, str(error), remedy="Run the month again when the limit is reset") from None

    def path_of(self, image: BuiltImage) -> str:
        """`namespace/repository`: one for all in `single` mode, one per GitHub repository in `mirror` mode."""
        name = self._repository
        if self._mode == "mirror":
            name = docker_name(image.spec.repository.replace("/", "__"))
        return self._path(name)

    def repository_of(self, image: BuiltImage) -> str:
        """`registry/namespace/repository`, as Docker takes it."""
        return f"{self._host}/{self.path_of(image)}" if self._host else self.path_of(image)

    def tag_of(self, image: BuiltImage) -> str:
        """A tag with the task and the content, so that different content never has the same one."""
        fingerprint = image.digest.removeprefix("sha256:")[:_FINGERPRINT]
        task = str(image.number) if self._mode == "mirror" else docker_name(image.spec.task_id)
        return f"{task[: MAX_NAME - _FINGERPRINT - 1]}-{fingerprint}"

    def _path(self, name: str) -> str:
        return self._account.path_of("/".join(part for part in (self._namespace, name) if part))

    def _push(self, client: RegistryClient, image: BuiltImage, path: str, tag: str) -> Push:
        daemon = ImageDaemon(self._account.credentials())
        while True:
            try:
                return daemon.push(image.digest, self.repository_of(image), tag)
            except RateLimitedError:
                client.wait_for_limit(path, tag)


def _require_measured(manifest: ImageManifest, image: BuiltImage, reference: str) -> None:
    try:
        holds = manifest.config.digest
    except ValueError as error:
        holds = f"no image ({error})"
    if holds != image.digest:
        raise ItemFailure(
            FailureKind.PUBLISHED_TAG,
            f"{reference} contains another image than the measured one",
            why=f"it is {holds}, measured was {image.digest}; a published tag is never overwritten",
            remedy="Remove the tag from the registry if no user depends on it, or publish to another namespace",
        )


def _sent_bytes(manifest: ImageManifest, push: Push) -> int:
    """Bytes that *push* transferred: the missing layers, the configuration, the manifest."""
    layers = manifest.layers
    sent = {layers[index].digest: layers[index].size for index in push.sent if index < len(layers)}
    return sum(sent.values()) + manifest.config.size + len(manifest.content)
