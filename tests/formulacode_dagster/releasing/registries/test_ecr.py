from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.releasing.registries.ecr import EcrAccount
from formulacode_dagster.releasing.registries.publishing import Registry
from tests.support.registries import MONTH, MakeImage, locked_registry

ID, REGION = "123456789012", "eu-west-1"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """AWS as moto plays it: its SDK's client for the registry."""
    import boto3
    from moto import mock_aws

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        yield boto3.client("ecr", region_name=REGION)


def test_a_registry_of_amazon_is_known_by_its_address() -> None:
    assert EcrAccount.of(f"{ID}.dkr.ecr.{REGION}.amazonaws.com") is not None
    assert EcrAccount.of(f"https://{ID}.dkr.ecr-fips.us-east-1.amazonaws.com/") is not None
    for other in ("docker.io", "ghcr.io", f"{ID}.dkr.ecr.{REGION}.amazonaws.com.evil.example", ""):
        assert EcrAccount.of(other) is None


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("acme/formulacode", "acme/formulacode"),
        ("acme/pandas-dev__pandas", "acme/pandas-dev/pandas"),
        ("acme/a--b__c", "acme/a-b/c-c02d2032"),
        ("acme/a__.github", "acme/a/github-636e5454"),
    ],
)
def test_a_repository_has_a_name_that_amazon_takes(path: str, there: str) -> None:
    assert EcrAccount(ID, REGION).path_of(path) == there


def test_a_token_is_kept_until_it_is_about_to_expire(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    account, given = EcrAccount(ID, REGION), []
    fetch = account._fetch
    until = datetime.now(UTC) + timedelta(minutes=45)

    def fetched() -> Any:
        given.append(fetch()[0])
        return given[-1], until

    monkeypatch.setattr(account, "_fetch", fetched)
    assert account.credentials() == account.credentials()
    assert (given[0].username, given[0].password) == ("AWS", f"{ID}-auth-token")
    assert len(given) == 1
    until = datetime.now(UTC) + timedelta(minutes=5)
    account._until = until
    account.credentials()
    assert len(given) == 2


@pytest.mark.docker
def test_repositories_are_made_and_images_pushed_with_the_token(
    aws: Any, build: MakeImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moto plays AWS, and the real registry, which knows the token that moto gives out, keeps the images."""
    with locked_registry(tmp_path) as url:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        image = build()
        published = Registry(url, "acme", EcrAccount(ID, REGION), "mirror").publish(image, month=MONTH)
        again = Registry(url, "acme", EcrAccount(ID, REGION), "mirror").publish(image, month=MONTH)
    assert (published.pulled_digest, again.pushed_bytes) == (published.digest, 0)
    (repository,) = aws.describe_repositories()["repositories"]
    assert repository["repositoryName"] == "acme/acme/fast.py"
    assert repository["imageTagMutability"] == "IMMUTABLE"


def test_an_identity_that_may_not_is_told_what_it_needs(aws: Any) -> None:
    with pytest.raises(ConfigurationError, match="CreateRepository"):
        EcrAccount(ID, REGION).prepare("NoSuchName!")


def test_without_an_identity_the_sdks_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with pytest.raises(ConfigurationError, match="AWS_PROFILE"):
        EcrAccount(ID, REGION).credentials()


def test_an_amazon_that_is_down_stops_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import ClientError, EndpointConnectionError

    down = {"Error": {"Code": "ServerException"}, "ResponseMetadata": {"HTTPStatusCode": 503}}
    account, wrong = EcrAccount(ID, REGION), Mock()
    monkeypatch.setattr(account, "_client", wrong)
    for error in (EndpointConnectionError(endpoint_url="https://ecr"), ClientError(down, "GetAuthorizationToken")):
        wrong.side_effect = error
        with pytest.raises(OutsideSystemError) as caught:
            account.credentials()
        assert caught.value.system == "ecr"


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)
    with pytest.raises(ConfigurationError, match=r"formulacode-dagster\[ecr\]"):
        EcrAccount(ID, REGION).credentials()
