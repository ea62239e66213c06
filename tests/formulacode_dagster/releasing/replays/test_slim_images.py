"""What is left of an image for machines with a system of their own."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.releasing.registries.manifests import digest_of
from formulacode_dagster.releasing.replays.slim_images import SlimImages

SITE = "opt/venv/lib/python3.12/site-packages"
SYSTEM = {"usr/bin/python3": "elf", "etc/passwd": "root", "opt-other/a": ""}
ENVIRONMENT = {
    "opt/venv/pyvenv.cfg": "home = /usr/local/bin\nversion_info = 3.12.1\n",
    f"{SITE}/numpy-2.0.dist-info/WHEEL": "Root-Is-Purelib: false\n",
    "opt/formulacode/tests/pytest.py": "",
}
PACKAGE = {"workspace/.wh.old": "", f"{SITE}/fast-1.dist-info/WHEEL": "Root-Is-Purelib: true\n"}


class Layout:
    """Blobs of images in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs = folder / "blobs" / "sha256"
        self.blobs.mkdir(parents=True)

    def add(self, content: bytes) -> str:
        digest = digest_of(content)
        (self.blobs / digest.removeprefix("sha256:")).write_bytes(content)
        return digest

    def layer(self, files: dict[str, str]) -> str:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, text in files.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.uid = len(text), 1000
                archive.addfile(entry, io.BytesIO(text.encode()))
        return self.add(packed.getvalue())

    def image(self, *layers: dict[str, str]) -> str:
        config = {"digest": self.add(b"{}"), "size": 2}
        described = [{"digest": self.layer(each), "size": 1} for each in layers]
        return self.add(json.dumps({"config": config, "layers": described}).encode())

    def files(self, digest: str) -> list[dict[str, int]]:
        """Names in the layers of an image, with their owners."""
        manifest = json.loads((self.blobs / digest.removeprefix("sha256:")).read_bytes())
        found = []
        for layer in manifest["layers"]:
            path = self.blobs / layer["digest"].removeprefix("sha256:")
            assert path.stat().st_size == layer["size"]
            assert digest_of(path.read_bytes()) == layer["digest"]
            with tarfile.open(path) as archive:
                found.append({entry.name: entry.uid for entry in archive})
        return found


@pytest.fixture
def layouts(tmp_path: Path) -> tuple[Layout, Layout, SlimImages]:
    source = Layout(tmp_path / "source")
    slim = SlimImages(source.folder, tmp_path / "target")
    target = Layout.__new__(Layout)
    target.blobs = tmp_path / "target" / "blobs" / "sha256"
    return source, target, slim


def test_environment_tools_and_checkout_stay_and_the_system_does_not(
    layouts: tuple[Layout, Layout, SlimImages],
) -> None:
    source, target, slim = layouts
    left = slim.add(source.image(SYSTEM, ENVIRONMENT, PACKAGE))
    assert target.files(left.digest) == [
        {name: 1000 for name in ENVIRONMENT if "tests" not in name},
        dict.fromkeys(PACKAGE, 1000),
    ]
    assert (left.python, left.is_compiled) == ("3.12.1", False)


def test_a_compiled_package_is_known_by_its_wheel_and_layers_are_stored_once(
    layouts: tuple[Layout, Layout, SlimImages],
) -> None:
    source, target, slim = layouts
    pure = slim.add(source.image(SYSTEM, ENVIRONMENT, PACKAGE))
    before = len(list(target.blobs.iterdir()))
    compiled = {f"{SITE}/fast-1.dist-info/WHEEL": "Root-Is-Purelib: false\n"}
    other = slim.add(source.image(SYSTEM, ENVIRONMENT, compiled))
    assert (pure.is_compiled, other.is_compiled) == (False, True)
    # a layer and a manifest
    assert len(list(target.blobs.iterdir())) == before + 2


def test_an_image_without_an_environment_is_a_named_failure(layouts: tuple[Layout, Layout, SlimImages]) -> None:
    source, _, slim = layouts
    with pytest.raises(ItemFailure, match="has no environment in /opt/venv"):
        slim.add(source.image(SYSTEM))
