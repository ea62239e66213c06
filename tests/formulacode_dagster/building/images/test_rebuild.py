"""A spec is built again only from its locks, and the same distributions are installed, with either engine."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.files import Area
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.images.build import build_and_verify
from formulacode_dagster.building.images.rebuild import installed_in, rebuild
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.verification.contents import UNOWNED, Listing, listings
from formulacode_dagster.building.verification.facts import gather_facts
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, EngineName, InstalledDistribution
from formulacode_dagster.models.reproduction import DifferenceKind, Reproduction
from formulacode_dagster.sources.git.mirror import MirrorCache
from tests.support.docker import OS_IMAGE, MakeDockerEngine
from tests.support.images import LIMITS, Sample, as_image, make_spec
from tests.support.sampling import BUILT_ONCE_MORE

# its image is built in one process
pytestmark = [pytest.mark.network, pytest.mark.xdist_group(__name__)]

OTHER_LOCK = """setuptools==75.2.0 \\
    --hash=sha256:753bb6ebf1f465a1912e19ed1d41f403a79173a9acf66a42e7e6aec45c3c16ec \\
    --hash=sha256:a7fcb66f68b4d9e8e66b42f9876150a3371558f98fa32222ffaa5bced76406f8
"""
PYTHON_FILE = "lib/python3.11/site-packages/tinyc/__init__.py"


def lost(_: InstalledDistribution) -> Listing | None:
    return None


@dataclass(frozen=True)
class Bench:
    """The compiled sample's repository, served from a folder, and its image in the process engine."""

    engine: ProcessEngine
    image: BuiltImage
    cache: MirrorCache

    def again(self, image: BuiltImage, kept: object = lost) -> Reproduction:
        reproduction = rebuild(
            self.engine,
            image,
            cache=self.cache,
            kept=kept,
            item="Acme/tinyc#5",  # type: ignore[arg-type]
        )
        left = [path.name for path in Path(self.image.location).parent.glob("*-again")]
        assert left == [], "no second image stays"
        return reproduction


@pytest.fixture(scope="module")
def cache(compiled: Sample, tmp_path_factory: pytest.TempPathFactory) -> MirrorCache:
    host = tmp_path_factory.mktemp("host")
    (host / "Acme").mkdir()
    (host / "Acme" / "tinyc.git").symlink_to(compiled.mirror)
    return MirrorCache(tmp_path_factory.mktemp("mirrors"), f"file://{host}")


@pytest.fixture(scope="module")
def bench(compiled: Sample, lock: str, cache: MirrorCache, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """For all tests that leave its image as it is."""
    engine = ProcessEngine(tmp_path_factory.mktemp("engine"), LIMITS)
    spec = make_spec(compiled, lock)
    outcome = engine.build(spec, Origins(compiled.mirror))
    image = as_image(EngineName.PROCESS, spec, outcome).model_copy(update={"toolchain": outcome.toolchain})
    return Bench(engine, image, cache)


def told(reproduction: Reproduction) -> list[tuple[str, str, str]]:
    return [(difference.kind.value, difference.name, difference.detail) for difference in reproduction.differences]


def test_a_compiled_package_comes_out_the_same_and_a_changed_file_is_named(bench: Bench, tmp_path: Path) -> None:
    equal = bench.again(bench.image)
    assert (told(equal), equal.is_equal, equal.against) == ([], True, "the image")
    assert equal.distributions == 3
    assert equal.files > 100
    found = {distribution.name: distribution for distribution in installed_in(bench.engine, bench.image)}
    assert found.keys() == {"setuptools", "tinyc", UNOWNED}
    assert any(path.endswith(".so") for path in found["tinyc"].files)
    tampered = tmp_path / "images" / Path(bench.image.location).name
    shutil.copytree(bench.image.location, tampered, symlinks=True)
    with (tampered / "venv" / PYTHON_FILE).open("a") as file:
        file.write("# changed\n")
    other = bench.again(bench.image.model_copy(update={"location": str(tampered)}))
    assert (told(other), other.is_equal) == ([("files", "tinyc", PYTHON_FILE)], False)


def test_the_listing_stored_at_verification_equals_that_of_a_rebuild(bench: Bench, compiled: Sample) -> None:
    built = build_and_verify(
        bench.engine, bench.image.spec, Origins(compiled.mirror), pr=compiled.pull_request(), run_id="verified"
    )
    assert built.failure is None
    assert built.image.installed == tuple(distribution.summary for distribution in built.installed)
    assert built.installed == installed_in(bench.engine, bench.image)


def test_a_lock_that_is_not_the_one_of_the_image_shows(bench: Bench) -> None:
    sha256 = hashlib.sha256(OTHER_LOCK.encode()).hexdigest()
    spec = bench.image.spec.model_copy(update={"lock": OTHER_LOCK, "lock_sha256": sha256})
    reproduction = bench.again(bench.image.model_copy(update={"spec": spec}))
    assert ("version", "setuptools", "75.3.0 → 75.2.0") in told(reproduction)
    assert not reproduction.is_equal


def test_where_the_image_is_gone_what_was_kept_of_it_is_compared(bench: Bench) -> None:
    first = {distribution.summary.sha256: distribution for distribution in installed_in(bench.engine, bench.image)}
    summaries = tuple(listing.summary for listing in first.values())
    gone = bench.image.model_copy(update={"location": "/nowhere", "installed": summaries})
    equal = bench.again(gone, lambda summary: Listing.of(summary, first[summary.sha256].text))
    assert (told(equal), equal.against) == ([], "its stored record")
    forged = tuple(
        summary.model_copy(update={"sha256": "0" * 64}) if summary.name == "tinyc" else summary for summary in summaries
    )
    other = bench.again(gone.model_copy(update={"installed": forged}))
    assert told(other) == [("files", "tinyc", "which files differ is not known any more")]
    with pytest.raises(ItemFailure, match="its distributions were not recorded"):
        bench.again(gone.model_copy(update={"installed": ()}))


def test_a_second_build_that_fails_leaves_nothing_behind(bench: Bench) -> None:
    spec = bench.image.spec.model_copy(update={"lock": bench.image.spec.lock.replace("sha256:f", "sha256:0")})
    with pytest.raises(ItemFailure):
        bench.again(bench.image.model_copy(update={"spec": spec}))
    assert list((Path(bench.image.location).parents[1] / "images").iterdir()) == [Path(bench.image.location)]


def test_an_image_of_another_engine_is_not_built_again_by_this_one(bench: Bench) -> None:
    with pytest.raises(ItemFailure, match="Set FC_ENGINE=docker"):
        bench.again(bench.image.model_copy(update={"engine": EngineName.DOCKER}))


@BUILT_ONCE_MORE
@pytest.mark.docker
def test_docker_builds_the_same_again_and_a_changed_file_is_named(
    make_docker_engine: MakeDockerEngine,
    docker_installation: str,
    compiled: Sample,
    lock: str,
    cache: MirrorCache,
    tmp_path: Path,
) -> None:
    docker_engine = make_docker_engine()
    spec = make_spec(compiled, lock, os_image=OS_IMAGE, build_environment={"REBUILD": uuid.uuid4().hex})
    outcome = docker_engine.build(spec, Origins(compiled.mirror))
    client = docker_engine.daemon.client
    (tmp_path / "Dockerfile").write_text(f"FROM {outcome.tag}\nRUN echo '# changed' >> /opt/venv/{PYTHON_FILE}\n")
    tampered = f"formulacode/tampered:{uuid.uuid4().hex}"
    assert docker_engine.daemon.run(["buildx", "build", "--load", "--tag", tampered, str(tmp_path)], timeout=60).ok
    image = as_image(EngineName.DOCKER, spec, outcome).model_copy(
        update={"digest": str(client.images.get(tampered).id), "toolchain": outcome.toolchain}
    )
    whole = (file for file in docker_engine.files(image) if file.area is Area.ENVIRONMENT)
    assert installed_in(docker_engine, image) == listings(gather_facts(whole, objects=tmp_path))
    lines: list[str] = []
    reproduction = rebuild(docker_engine, image, cache=cache, kept=lost, item="Acme/tinyc#5", progress=lines.append)
    client.images.remove(tampered)
    assert told(reproduction) == [("files", "tinyc", PYTHON_FILE)], "the extension was compiled to the same bytes"
    assert reproduction.differences[0].kind is DifferenceKind.FILES
    labels = [f"formulacode.installation={docker_installation}", f"formulacode.repository={spec.repository}"]
    mine = client.images.list(filters={"label": labels})
    assert mine
    assert not [tag for image in mine for tag in image.tags if tag.endswith("-again")]
    assert client.images.get(outcome.tag).id == outcome.digest
    installs = [line for line in lines if "install-environment" in line or "install-package" in line]
    assert installs
    assert not any("CACHED" in line for line in installs)
