from __future__ import annotations

import re

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.releasing.registries.names import MAX_NAME, ImageName, docker_name

COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")


@pytest.mark.parametrize("name", ["numpy__numpy-1", "a-b__c.d-12", "pandas-dev__pandas-99999"])
def test_a_name_that_docker_accepts_stays(name: str) -> None:
    assert docker_name(name) == name


@pytest.mark.parametrize("name", ["a__.github-1", "a__b_-1", "a__b..c-1", "a__-1", "A__b___c-1", "x" * 300])
def test_any_other_name_is_made_acceptable(name: str) -> None:
    found = docker_name(name)
    assert COMPONENT.fullmatch(found)
    assert len(found) <= MAX_NAME


def test_names_that_differ_stay_different() -> None:
    names = ["a__b_-1", "a__b.-1", "a__b-1", "a__b..-1", "a__-b-1"]
    assert len({docker_name(name) for name in names}) == len(names)


DIGEST = "sha256:" + "2" * 64


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"127.0.0.1:5000/acme/formulacode@{DIGEST}", ("127.0.0.1:5000", "acme/formulacode", DIGEST)),
        (f"ghcr.io/acme/fast.py:7-1@{DIGEST}", ("ghcr.io", "acme/fast.py", DIGEST)),
        ("acme/formulacode:v1", ("", "acme/formulacode", "v1")),
        ("localhost:5000/acme__fast:v1", ("localhost:5000", "acme__fast", "v1")),
    ],
)
def test_an_image_is_named_as_docker_does(text: str, named: tuple[str, str, str]) -> None:
    read = ImageName.parse(text)
    assert (read.host, read.path, read.version) == named


@pytest.mark.parametrize("text", ["acme/fast", "Acme/Fast:v1", "acme/fast@sha256:12", "https://ghcr.io/a/b:1", ""])
def test_what_names_no_image_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="names no image"):
        ImageName.parse(text)
