"""Amazon's registry (ECR): a token of half a day in place of a password, and repositories that are made beforehand."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError

from .accounts import Account, Credentials

SYSTEM = "ecr"
SPARE = timedelta(minutes=30)
"""A token is renewed so long before it expires: a push takes time."""
_HOST = re.compile(r"(\d{12})\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
_PATH = re.compile(r"(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*")
"""Pattern of a repository's name in the API's reference (CreateRepository, `repositoryName`)."""
_WORD = re.compile(r"[a-z0-9]+")
_FINGERPRINT = 8
_REMEDY = (
    "Give AWS's SDK (AWS_PROFILE, AWS_ACCESS_KEY_ID …) an identity with ecr:GetAuthorizationToken, "
    "ecr:CreateRepository and the rights to push and pull"
)


class EcrAccount(Account):
    """An identity of AWS, found as its SDK finds it, in the registry of one AWS account and region."""

    def __init__(self, registry_id: str, region: str) -> None:
        super().__init__()
        self._registry_id = registry_id
        self._region = region
        self._lock = threading.Lock()
        self._token = Credentials()
        self._until: datetime | None = None
        self._prepared: set[str] = set()

    @classmethod
    def of(cls, registry_url: str) -> EcrAccount | None:
        """Return the account for the registry of that address; None if it is not Amazon's."""
        match = _HOST.fullmatch(registry_url.removeprefix("https://").strip("/"))
        return cls(match[1], match[2]) if match else None

    def credentials(self) -> Credentials:
        """A user and a token that is good for a while; raises ConfigurationError, OutsideSystemError."""
        with self._lock:
            if self._until is None or datetime.now(UTC) >= self._until - SPARE:
                self._token, self._until = self._fetch()
            return self._token

    def path_of(self, path: str) -> str:
        """*path* with one separator at a time, as Amazon wants it: `owner__repo` is `owner/repo`.

        A name that has to be changed beyond that is marked with a fingerprint of the whole.
        """
        nested = path.replace("__", "/")
        if _PATH.fullmatch(nested):
            return nested
        fingerprint = hashlib.sha256(path.encode()).hexdigest()[:_FINGERPRINT]
        parts = ("-".join(_WORD.findall(part)) for part in nested.split("/"))
        return f"{'/'.join(part or 'x' for part in parts)}-{fingerprint}"

    def prepare(self, repository: str) -> None:
        """Create *repository* with immutable tags, if there is none; raises as `credentials`."""
        with self._lock:
            if repository in self._prepared:
                return
            with _errors(f"make the repository {repository}"):
                client = self._client()
                with suppress(client.exceptions.RepositoryAlreadyExistsException):
                    client.create_repository(
                        registryId=self._registry_id, repositoryName=repository, imageTagMutability="IMMUTABLE"
                    )
            self._prepared.add(repository)

    def _fetch(self) -> tuple[Credentials, datetime]:
        with _errors("get a token"):
            (told,) = self._client().get_authorization_token(registryIds=[self._registry_id])["authorizationData"]
        try:
            username, _, password = base64.b64decode(told["authorizationToken"], validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise OutsideSystemError(SYSTEM, "gave a token that cannot be read", why=type(error).__name__) from None
        return Credentials(username, password), told["expiresAt"]

    def _client(self) -> Any:
        import boto3

        return boto3.client("ecr", region_name=self._region)


@contextmanager
def _errors(attempt: str) -> Iterator[None]:
    try:
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "FC_REGISTRY_URL is a registry of Amazon's, and its SDK is not installed",
            remedy="Install formulacode-dagster[ecr]",
        ) from error
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise ConfigurationError(f"{SYSTEM}: cannot {attempt}", why=str(error), remedy=_REMEDY) from error
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if status == 429 or status >= 500:
            raise OutsideSystemError(
                SYSTEM, f"cannot {attempt}", why=str(error), remedy="Run the month again"
            ) from error
        raise ConfigurationError(f"{SYSTEM}: cannot {attempt}", why=str(error), remedy=_REMEDY) from error
    except BotoCoreError as error:
        raise OutsideSystemError(SYSTEM, f"cannot {attempt}", why=str(error), remedy="Run the month again") from error
