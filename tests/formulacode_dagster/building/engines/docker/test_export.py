import io
import tarfile

import pytest

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.export import archived_files
from formulacode_dagster.building.engines.files import Area
from formulacode_dagster.building.images.rebuild import installed_in
from formulacode_dagster.building.verification.contents import UNOWNED
from formulacode_dagster.building.verification.facts import gather_facts
from tests.records import make_image

FILES = {
    "opt/venv/lib/python3.12/site-packages/fast-1.0.dist-info/METADATA": b"Name: fast\nVersion: 1.0\n" + b"x" * 50_000,
    "opt/venv/lib/python3.12/site-packages/fast/core.py": b"def total(): ...\n",
}


@pytest.fixture
def chunks():
    """A container's root folder with FILES, as the daemon sends it: once, in parts."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in FILES.items():
            entry = tarfile.TarInfo(f"/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    stream = packed.getvalue()
    return (stream[start : start + 10_000] for start in range(0, len(stream), 10_000))


def test_a_file_of_a_stream_is_opened_again_after_some_of_it_was_read(chunks):
    for file, content in zip(archived_files(chunks), FILES.values(), strict=True):
        with file.open() as stream:
            assert stream.read(10) == content[:10]
        with file.open() as stream:
            assert stream.read() == content


def test_what_is_looked_at_for_releases_is_read_whole_for_the_facts(chunks, tmp_path):
    facts = gather_facts(archived_files(chunks), objects=tmp_path)
    assert ("fast", "1.0") in facts.elsewhere.releases
    assert facts.files[Area.ENVIRONMENT].keys() == {name.removeprefix("opt/venv/") for name in FILES}


def packed_entries(*entries):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, kind, target in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            archive.addfile(entry, io.BytesIO())
    return [packed.getvalue()]


def test_a_folder_read_by_itself_has_the_files_that_it_has_in_the_whole():
    below = [
        ("venv/bin/python", tarfile.SYMTYPE, "/usr/bin/python3"),
        ("venv/lib/a.py", tarfile.REGTYPE, ""),
        ("venv/lib/b.py", tarfile.LNKTYPE, "venv/lib/a.py"),
    ]
    whole = [(f"/opt/{name}", kind, f"/opt/{to}" if kind == tarfile.LNKTYPE else to) for name, kind, to in below]
    parts = archived_files(packed_entries(("venv", tarfile.DIRTYPE, ""), *below), "/opt/venv")
    found = [(file.area, file.path, file.target) for file in parts]
    assert found == [(file.area, file.path, file.target) for file in archived_files(packed_entries(*whole))]
    assert found[-1] == (Area.ENVIRONMENT, "lib/b.py", "/opt/venv/lib/a.py")


def test_a_link_in_place_of_the_environment_is_not_in_it():
    (link,) = archived_files(packed_entries(("venv", tarfile.SYMTYPE, "/etc")), "/opt/venv")
    assert link.area is Area.SYSTEM


def test_only_the_environment_s_folder_of_an_image_is_read_for_its_distributions(monkeypatch):
    read = []

    class Container:
        name = "container"

        def get_archive(self, path):
            read.append(path)
            return (chunk for chunk in packed_entries(("venv/lib/a.py", tarfile.REGTYPE, ""))), {}

        def remove(self, **_):
            read.append("removed")

    engine = DockerEngine(daemon=DockerDaemon())
    monkeypatch.setattr(engine, "_create", lambda *_, **__: Container())
    (listing,) = installed_in(engine, make_image())
    assert (listing.name, list(listing.files), read) == (UNOWNED, ["lib/a.py"], ["/opt/venv", "removed"])
