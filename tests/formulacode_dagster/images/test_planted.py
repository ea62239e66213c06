from __future__ import annotations

import base64
import hashlib

import pytest

from formulacode_dagster.images.facts import FileFact, ImageFacts
from formulacode_dagster.images.files import Area
from formulacode_dagster.images.planted import find_planted

SITE = "lib/python3.11/site-packages"
SHARED = f"{SITE}/shared/__init__.py"
LOCK = "alpha==1.0 \\\n    --hash=sha256:0\nbeta==2.0 \\\n    --hash=sha256:0\n"


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def image(content: bytes, **brought: bytes) -> ImageFacts:
    """An environment in which the distributions *brought* each name the shared file, which holds *content*."""
    facts = ImageFacts()
    facts.texts[(Area.ENVIRONMENT, "pyvenv.cfg")] = "include-system-site-packages = false\n"
    facts.files[Area.ENVIRONMENT][SHARED] = FileFact(0, False, None, digest(content), "", "")
    for number, (name, own) in enumerate(brought.items(), 1):
        info = f"{SITE}/{name}-{number}.0.dist-info"
        facts.texts[(Area.ENVIRONMENT, f"{info}/RECORD")] = f"shared/__init__.py,sha256={digest(own)},1\n"
        if name == "local":
            facts.texts[(Area.ENVIRONMENT, f"{info}/direct_url.json")] = "{}"
    return facts


@pytest.mark.parametrize("content", [b"by alpha", b"by beta"])
def test_a_file_that_two_projects_of_the_lock_bring_may_be_that_of_either(content: bytes) -> None:
    assert find_planted(image(content, alpha=b"by alpha", beta=b"by beta"), LOCK) == []


def test_a_file_of_neither_is_found() -> None:
    found = find_planted(image(b"forged", alpha=b"by alpha", beta=b"by beta"), LOCK)
    assert found == [f"{SHARED} of {name} is not the file that was installed" for name in ("alpha", "beta")]


def test_the_package_under_test_may_not_bring_another_projects_file() -> None:
    found = find_planted(image(b"forged", alpha=b"by alpha", local=b"forged"), LOCK)
    assert found == [f"{SHARED} of alpha is not the file that was installed"]
