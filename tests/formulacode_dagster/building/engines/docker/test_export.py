import io
import tarfile

import pytest

from formulacode_dagster.building.engines.docker.export import archived_files
from formulacode_dagster.building.engines.files import Area
from formulacode_dagster.building.verification.facts import gather_facts

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
