from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.docker.build_cache import BuildCache
from formulacode_dagster.building.engines.docker.daemon import INSTALLATION_LABEL, DockerDaemon
from formulacode_dagster.building.engines.docker.image_store import DockerImageStore, layer_sizes
from formulacode_dagster.building.engines.image_store import StoredImage
from formulacode_dagster.building.housekeeping.cleanup import Budgets, clean_up
from formulacode_dagster.models.errors import OutsideSystemError
from tests.support.docker import OS_IMAGE

pytestmark = pytest.mark.docker

SIZE = 300_000
LATER = datetime.now(tz=UTC) + timedelta(days=3)
"""When nothing that a test has made is young any more."""


class Kitchen:
    """Builds images without an OS, for an installation of its own: a daemon of others is not touched."""

    def __init__(self, folder: Path) -> None:
        self.daemon = DockerDaemon()
        self.mark = uuid.uuid4().hex
        self.folder = folder

    def build(self, name: str, *steps: str, base: str = "scratch", installation: str | None = None) -> str:
        """The id of an image of *steps*; each copies a file that no other image has."""
        for step in steps:
            (self.folder / step).write_bytes(step.encode() + self.mark.encode() + b"\0" * SIZE)
        copies = "".join(f"COPY {step} /opt/{self.mark}/{step}\n" for step in steps)
        (self.folder / "Dockerfile").write_text(f"FROM {base}\n{copies}")
        labels = [f"--label={INSTALLATION_LABEL}={installation or self.mark}", "--label=formulacode=1"]
        command = ["buildx", "build", "--load", "--tag", self.tag(name), *labels, str(self.folder)]
        done = self.daemon.run(command, timeout=60)
        assert done.ok, done.stderr
        return str(self.daemon.client.images.get(self.tag(name)).id)

    def tag(self, name: str) -> str:
        return f"formulacode/{name}:{self.mark}"

    def here(self, name: str) -> bool:
        return bool(self.daemon.client.images.list(filters={"reference": self.tag(name)}))


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    kitchen = Kitchen(tmp_path)
    yield kitchen
    # in one answer: `images.list` asks about each again, and other tests remove theirs meanwhile
    for image in kitchen.daemon.client.api.images(filters={"label": INSTALLATION_LABEL}):
        if kitchen.mark in image["Labels"][INSTALLATION_LABEL]:
            kitchen.daemon.client.images.remove(image["Id"], force=True)


def stocked(image_store: DockerImageStore) -> dict[str, StoredImage]:
    return {str(image).rpartition("/")[2].partition(":")[0]: image for image in image_store.inventory().images}


def test_images_are_known_by_who_built_them_with_the_bytes_of_every_layer(kitchen: Kitchen) -> None:
    kitchen.build("lower", "a")
    kitchen.build("upper", "b", base=kitchen.tag("lower"))
    kitchen.build("other", "a", "c", installation=f"not {kitchen.mark}")
    inventory = DockerImageStore(kitchen.daemon, kitchen.mark).inventory()
    lower, upper = sorted(inventory.images, key=lambda image: len(image.layers))
    assert lower.layers == upper.layers[:1]
    assert all(SIZE <= layer.bytes < 2 * SIZE for layer in upper.layers)
    assert lower.layers[0].id in inventory.foreign_layers, "the other installation's image lies on it, too"
    assert upper.layers[1].id not in inventory.foreign_layers
    assert inventory.foreign_images >= 1
    assert datetime.now(tz=UTC) - lower.made_at < timedelta(minutes=5)
    assert DockerImageStore(kitchen.daemon, "").inventory().images == (), "without a name nothing is ours"


def test_over_the_budget_images_go_from_the_top_and_never_somebody_elses(kitchen: Kitchen) -> None:
    kitchen.build("lower", "a")
    kitchen.build("upper", "b", base=kitchen.tag("lower"))
    kitchen.build("other", "c", installation=f"not {kitchen.mark}")
    image_store = DockerImageStore(kitchen.daemon, kitchen.mark)
    budgets = Budgets(images=SIZE * 3 // 2, build_cache=None)
    foreseen = clean_up(image_store, {}, budgets, now=LATER, dry_run=True)
    assert [str(removal.image) for removal in foreseen.removed] == [kitchen.tag("upper")]
    assert kitchen.here("upper"), "a dry run removes nothing"
    done = clean_up(image_store, {}, budgets, now=LATER, dry_run=False)
    assert [str(removal.image) for removal in done.removed] == [kitchen.tag("upper")]
    assert (kitchen.here("upper"), kitchen.here("lower"), kitchen.here("other")) == (False, True, True)
    assert SIZE <= done.image_bytes < 2 * SIZE
    assert done.freed >= SIZE


def test_an_image_that_lost_its_name_goes_after_a_day(kitchen: Kitchen) -> None:
    first = kitchen.build("moved", "a")
    second = kitchen.build("moved", "b")
    image_store = DockerImageStore(kitchen.daemon, kitchen.mark)
    unlimited = Budgets(images=None, build_cache=None)
    assert clean_up(image_store, {}, unlimited, now=datetime.now(tz=UTC), dry_run=False).removed == ()
    assert [
        removal.image.digest for removal in clean_up(image_store, {}, unlimited, now=LATER, dry_run=False).removed
    ] == [first]
    assert [image.digest for image in image_store.inventory().images] == [second]


def test_what_a_container_uses_and_what_somebody_gave_a_name_stays(kitchen: Kitchen) -> None:
    used = kitchen.build("used", "a")
    kitchen.build("named", "b")
    client = kitchen.daemon.client
    container = client.containers.create(used, ["none"])
    mine = f"somebody/{kitchen.mark}:mine"
    client.api.tag(kitchen.tag("named"), *mine.split(":"))
    image_store = DockerImageStore(kitchen.daemon, kitchen.mark)
    try:
        done = clean_up(image_store, {}, Budgets(images=0, build_cache=None), now=LATER, dry_run=False)
        assert done.in_use == (kitchen.tag("used"),)
        assert done.over(Budgets(images=0, build_cache=None)) >= SIZE
        assert kitchen.here("used")
        assert kitchen.here("named"), "what somebody named is theirs"
    finally:
        container.remove(force=True)
        client.images.remove(mine)


def test_a_name_that_means_another_image_by_now_is_left_alone(kitchen: Kitchen) -> None:
    kitchen.build("moved", "a")
    image_store = DockerImageStore(kitchen.daemon, kitchen.mark)
    before = stocked(image_store)["moved"]
    after = kitchen.build("moved", "b")
    assert not image_store.discard(before)
    assert kitchen.daemon.client.images.get(kitchen.tag("moved")).id == after


def test_our_build_cache_is_trimmed_from_the_top_below_no_image(
    kitchen: Kitchen,
) -> None:
    digest = kitchen.build("cached", "a", "b")
    cache = BuildCache(kitchen.daemon.client.api, mark=f"/opt/{kitchen.mark}/")
    assert cache.trim(0, dry_run=False).records == 0, "an image lies on it"
    kitchen.daemon.client.images.remove(digest, force=True)
    assert cache.trim(None, dry_run=False).records == 0, "no limit"
    foreseen = cache.trim(SIZE * 3 // 2, dry_run=True)
    assert (foreseen.records, foreseen.bytes_before >= 2 * SIZE) == (1, True)
    done = cache.trim(SIZE * 3 // 2, dry_run=False)
    assert (done.records, SIZE <= done.bytes_after < 2 * SIZE) == (1, True)
    rest = cache.trim(0, dry_run=False)
    assert (rest.records, rest.bytes_before, rest.bytes_after) == (1, done.bytes_after, 0)


def test_an_old_cache_mount_goes_within_the_budget(kitchen: Kitchen) -> None:
    fill = f"head -c {SIZE} /dev/zero >/opt/{kitchen.mark}/x"
    mount = f"--mount=type=cache,id={kitchen.mark},target=/opt/{kitchen.mark}"
    os_image = OS_IMAGE.replace("{python}", "3.11")
    (kitchen.folder / "Dockerfile").write_text(f"FROM {os_image}\nRUN {mount} {fill}\n")
    assert kitchen.daemon.run(["buildx", "build", str(kitchen.folder)], timeout=60).ok
    api, mark = kitchen.daemon.client.api, f"/opt/{kitchen.mark}/"
    assert BuildCache(api, mark=mark).trim(None, dry_run=False).records == 0
    old = BuildCache(api, mark=mark, mount_age=timedelta(0))
    foreseen = old.trim(None, dry_run=True)
    done = old.trim(None, dry_run=False)
    assert foreseen == done
    assert (done.records, done.bytes_before - done.bytes_after) == (1, SIZE)
    assert old.trim(None, dry_run=False).records == 0


def test_sizes_are_those_of_layers_though_the_history_names_more() -> None:
    def entry(size: int, step: str) -> dict[str, object]:
        return {"Size": size, "CreatedBy": step}

    history = [entry(0, "CMD"), entry(0, "WORKDIR /x"), entry(5, "RUN a"), entry(0, "ENV x=1"), entry(7, "/bin/sh")]
    assert layer_sizes(3, history) == [7, 5, 0]
    assert layer_sizes(2, history) == [7, 5], "the folder was there already, and made no layer"
    with pytest.raises(OutsideSystemError, match="1 layers has 2 steps"):
        layer_sizes(1, history)
