"""Images from Dockerfiles of one's own: marked as custom, and verified like every other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.installation import installation_id
from formulacode_dagster.library import DockerContext, ImageManager
from formulacode_dagster.library.image_manager import CUSTOM
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.store.database import Database
from tests.support.docker import OS_IMAGE, remove_images
from tests.support.planned import MINOR, plan_month
from tests.support.sampling import BUILT_ONCE_MORE, sampled

ALSO = sampled(["planted", "tiers"], most=1, of=__name__)
"""Attempts on the images that one test builds; tampering is found in images, too."""


@pytest.fixture
def manager(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImageManager]:
    """A manager over a month that is planned; what it built of the repository is removed."""
    monkeypatch.setenv("FC_OS_IMAGE", OS_IMAGE)
    plan_month(database, tmp_path, monkeypatch, engine="docker", files={})
    yield ImageManager(database)
    remove_images(installation_id(tmp_path))


@BUILT_ONCE_MORE
@pytest.mark.docker
@pytest.mark.network
@pytest.mark.slow
def test_a_dockerfile_of_ones_own_is_marked_and_its_image_is_verified(manager: ImageManager, tmp_path: Path) -> None:
    ours = manager.build_pr_image("Acme", "tiny", 5)
    assert ours.verified is not None
    assert (ours.is_custom, ours.verified.failure) == (False, None)
    images = DockerDaemon().client.images
    custom = []
    try:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "Dockerfile.pr").write_text(f"ARG REPO_IMAGE\nFROM {ours.tag}\n")
        made = manager.build_pr_image("Acme", "tiny", 5, context=tmp_path / "mine")
        custom.append(made.tag)
        assert made.verified is not None
        assert (made.is_custom, made.verified.failure) == (True, None)
        assert ":custom-pr-" in made.tag
        assert images.get(made.tag).labels[CUSTOM] == "1"

        if "planted" in ALSO:
            planted = DockerContext({"Dockerfile": f"FROM {ours.tag}\nENV LD_PRELOAD=/tmp/x.so\n"}, "planted")
            forged = manager.build_pr_image("Acme", "tiny", 5, context=planted)
            custom.append(forged.tag)
            assert forged.verified is not None
            assert forged.verified.failure is not None
            assert forged.verified.failure.name == "nothing_planted"

        if "tiers" in ALSO:
            tier = manager.build_repo_image("Acme", "tiny", 5)
            on_it = DockerContext({"Dockerfile.base": "ARG OS_IMAGE\nFROM ${OS_IMAGE}\n"}, "base")
            base = manager.build_base_image(on_it, python=f"3.{MINOR}")
            custom.append(base.tag)
            assert (tier.is_custom, base.is_custom, base.verified) == (False, True, None)
            with pytest.raises(ConfigurationError, match=r"no Dockerfile\.repo, and no Dockerfile"):
                manager.build_repo_image("Acme", "tiny", 5, context=on_it)
    finally:
        for tag in custom:
            images.remove(tag, force=True)


def test_nothing_but_docker_builds_images(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_ENGINE", "process")
    with pytest.raises(ConfigurationError, match="only with Docker"):
        ImageManager(database).build_base_image()
