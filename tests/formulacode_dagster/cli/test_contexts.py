"""`fc-data contexts`: a folder in, rows shown, a folder out."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.synthesis.docker_context import DockerContext
from formulacode_dagster.building.synthesis.importing import given_out, named, take_in
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.recipe import ContextOrigin
from formulacode_dagster.operating.store.artifacts import CHANGES, IMAGES, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.attempts import contexts_of, save_context
from formulacode_dagster.operating.store.blobs import put_blob
from formulacode_dagster.operating.store.database import Database
from tests.formulacode_dagster.building.images.test_recipes import GSL, make_context
from tests.formulacode_dagster.building.synthesis.test_docker_context import write
from tests.records import make_image, make_merged, make_pull_request, make_spec

ITEM = ItemName.parse("a/b#5")


@pytest.fixture
def known(database: Database) -> Database:
    """A database that knows a/b#5."""
    pr = make_pull_request(make_merged(month="2026-02", repository_id=7, repository="a/b", number=5))
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [pr.facts])
        sha256 = put_blob(connection, "patch", b"a patch")
        CHANGES.save(connection, [pr.change.model_copy(update={"patch_sha256": sha256})])
    return database


def test_an_imported_folder_is_a_recipe_of_the_base_commit(known: Database, tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", docker_build_base__sh="apt-get install libgsl-dev\n")
    with known.transaction() as connection:
        stored = take_in(connection, DockerContext.from_directory(folder), ITEM)
        assert contexts_of(connection, 7) == [stored]
        assert named(connection, stored.context_id[:6]) == stored
        assert given_out(connection, stored).files == DockerContext.from_directory(folder).files
    assert (stored.provenance, stored.made_by, stored.held_at) == (ContextOrigin.IMPORTED, "mine", None)
    assert [fix.apt_packages for fix in stored.fixes] == [("libgsl-dev",)]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"Dockerfile": "FROM x\n"}, "requests nothing"),
        ({"docker_build_pkg__sh": "pip install six", "task__txt": "Task(owner='a', repo='c')"}, "a context of a/c"),
        ({"docker_build_pkg__sh": "pip install six", "task__txt": "Task(sha='123')"}, "a context of commit 123"),
    ],
)
def test_a_folder_of_something_else_is_refused(
    known: Database, tmp_path: Path, files: dict[str, str], why: str
) -> None:
    context = DockerContext.from_directory(write(tmp_path / "mine", **files))
    with known.transaction() as connection, pytest.raises(ConfigurationError, match=why):
        take_in(connection, context, ITEM)


def test_ids_that_name_none_or_several_are_refused(known: Database) -> None:
    context = DockerContext({"docker_build_pkg.sh": "pip install six"}, "x")
    with known.transaction() as connection:
        with pytest.raises(ConfigurationError, match="not a known pull request"):
            take_in(connection, context, ItemName.parse("a/b#6"))
        take_in(connection, context, ITEM)
        with pytest.raises(ConfigurationError, match="no context has"):
            named(connection, "zz")
        with pytest.raises(ConfigurationError, match="no context has"):
            named(connection, "")


def test_a_context_is_given_out_with_the_lock_of_its_image_and_of_no_other(known: Database) -> None:
    spec = make_spec(lock="six==1.0\n", fixes=(GSL,))
    image = make_image(month="2026-02", repository_id=7, number=5, spec=spec, digest="sha256:9")
    own = make_context("c", GSL, digest="sha256:9")
    with known.transaction() as connection:
        IMAGES.save(connection, [image])
        save_context(connection, own)
        assert given_out(connection, own).files["requirements.txt"] == "six==1.0\n"
        other = own.model_copy(update={"digest": "sha256:8"})
        assert "requirements.txt" not in given_out(connection, other).files
