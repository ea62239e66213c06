from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.synthesis.docker_context import MOST_BYTES, DockerContext
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.recipe import Command, Fix, OnFailure
from tests.formulacode_dagster.building.images.test_recipes import GSL, make_context
from tests.records import make_spec

BOUND = Fix(
    rule="agent:codex",
    evidence="its words",
    constraints=("setuptools<81",),
    environment={"A": "two words"},
    submodules=True,
    commands=(Command(argv=("make", "gen"), on_failure=OnFailure.STOP, source="agent:codex"),),
)


def write(folder: Path, **files: str) -> Path:
    """*folder* with *files*, dots in whose names are double underscores."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_a_task_file_too_deep_to_parse_names_no_task() -> None:
    assert DockerContext(name="ctx", files={"task.txt": "+".join(["a"] * 5000)}).task == {}


def test_a_folder_of_the_predecessors_layout_is_a_recipe(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "ctx",
        Dockerfile="FROM scratch\n",
        docker_build_base__sh="apt-get install -y libgsl-dev\n",
        docker_build_pkg__sh="export A=1\npip install 'cython<3'\nsed -i s/a/b/ setup.py\n",
        task__txt="Task(owner='a', repo='b', sha='c0ffee', commit_date=1.0, tag='pkg')",
        notes__md="not ours",
    )
    context = DockerContext.from_directory(folder)
    assert "notes.md" not in context.files
    assert (context.dockerfile, context.task) == ("FROM scratch\n", {"owner": "a", "repo": "b", "sha": "c0ffee"})
    (fix,), reading = context.recipe()
    assert (fix.rule, fix.apt_packages) == ("imported:ctx", ("libgsl-dev",))
    assert (fix.requirements, fix.environment) == (("cython<3",), {"A": "1"})
    assert reading.left_out == ["sed -i s/a/b/ setup.py"]
    copy = context.to_directory(tmp_path / "copy")
    assert DockerContext.from_directory(copy).files == context.files
    assert (copy / "docker_build_pkg.sh").stat().st_mode & 0o100


def test_an_exported_recipe_returns_unchanged_until_a_script_changes(tmp_path: Path) -> None:
    spec = make_spec(lock="six==1.0 --hash=x\n", fixes=(GSL, BOUND), apt_packages=("libgsl-dev",))
    folder = DockerContext.of(make_context("a", GSL, BOUND), spec).to_directory(tmp_path / "out")
    assert "libgsl-dev" in (folder / "docker_build_base.sh").read_text()
    assert (folder / "requirements.txt").read_text() == spec.lock
    assert "FROM os:3.12" in (folder / "Dockerfile").read_text()
    back, _ = DockerContext.from_directory(folder).recipe()
    assert [fix.rule for fix in back] == ["imported:missing_header", "imported:agent:codex"]
    assert [fix.model_copy(update={"rule": ""}) for fix in back] == [
        fix.model_copy(update={"rule": ""}) for fix in (GSL, BOUND)
    ]
    write(folder, docker_build_base__sh="apt-get install -y libffi-dev\n")
    (changed,), _ = DockerContext.from_directory(folder).recipe()
    assert changed.apt_packages == ("libffi-dev",)


def test_scripts_of_a_recipe_say_all_of_it_that_scripts_can_say() -> None:
    blas = Fix(rule="blas", evidence="", build_arguments=("setup-args=-Dblas=two words",))
    context = DockerContext.of(make_context("a", GSL, BOUND, blas))
    files = {name: text for name, text in context.files.items() if name != "recipe.json"}
    (fix,), _ = DockerContext(files, "x").recipe()
    assert (fix.apt_packages, fix.requirements) == (("libgsl-dev",), ("setuptools<81",))
    assert (fix.environment, fix.submodules) == ({"A": "two words"}, True)
    assert fix.build_arguments == blas.build_arguments
    assert "(cd . && make gen)" in context.files["docker_build_pkg.sh"]


def test_a_context_that_was_imported_is_given_out_as_it_came() -> None:
    imported = make_context("a", GSL, files={"Dockerfile": "FROM mine\n"})
    assert DockerContext.of(imported, make_spec()).files == {"Dockerfile": "FROM mine\n"}


def test_no_link_is_followed_and_what_is_no_context_is_refused(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", text="FROM secret\n") / "text"
    folder = write(tmp_path / "links", docker_build_pkg__sh="true\n")
    (folder / "Dockerfile").symlink_to(secret)
    assert set(DockerContext.from_directory(folder).files) == {"docker_build_pkg.sh"}
    with pytest.raises(ConfigurationError, match="not a build context"):
        DockerContext.from_directory(write(tmp_path / "empty", task__txt="Task()"))
    with pytest.raises(ConfigurationError, match="larger than 1 MiB"):
        DockerContext.from_directory(write(tmp_path / "large", Dockerfile="#" * (MOST_BYTES + 1)))


@pytest.mark.parametrize(
    "task",
    [
        "",
        "Task(",
        "-" * 100_000 + "1",
        "x = Task(owner='a')",
        "__import__('os').system('x')",
        "Task(owner=1, repo=f'{x}', sha=open('x'))",
    ],
)
def test_a_task_file_is_read_and_never_run(task: str) -> None:
    assert DockerContext({"task.txt": task}).task == {}
