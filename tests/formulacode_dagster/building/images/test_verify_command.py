"""`fc-data verify` on real folders, with a real image."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.cli.task_verification import verify_task
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.image import BuiltImage, EngineName
from tests.support.docker import OS_IMAGE, MakeDockerEngine
from tests.support.images import Sample, as_image, make_spec


@pytest.fixture(scope="module")
def image(make_docker_engine: MakeDockerEngine, compiled: Sample, lock: str) -> BuiltImage:
    engine = make_docker_engine()
    spec = make_spec(compiled, lock, os_image=OS_IMAGE, task_id="Acme__tinyc-99")
    return as_image(EngineName.DOCKER, spec, engine.build(spec, Origins(compiled.mirror)))


def folder_of(tmp_path: Path, image: BuiltImage, **more: str) -> Path:
    declared = {"base_commit": image.spec.base_sha, "package_name": "tinyc", **more}
    lines = ["[metadata]", *(f'{name} = "{value}"' for name, value in declared.items())]
    (tmp_path / "environment").mkdir(exist_ok=True)
    (tmp_path / "task.toml").write_text("\n".join(lines))
    return tmp_path


def verified(folder: Path) -> tuple[bool, str]:
    said = io.StringIO()
    return verify_task(Console(file=said, width=300), folder), said.getvalue()


@pytest.mark.docker
def test_a_task_folder_is_built_and_verified_and_tampering_is_found(tmp_path: Path, image: BuiltImage) -> None:
    folder = folder_of(tmp_path, image)
    (folder / "environment/Dockerfile").write_text(f"FROM {image.tag}\n")
    ok, said = verified(folder)
    told = json.loads((folder / "verification_success.json").read_text())
    assert ok, said
    assert not DockerEngine().daemon.client.images.list(told["image"]), "what was built for this is gone"
    assert [gate["state"] for gate in told["gates"]] == ["passed"] * 8
    assert told["benchmarks"] == ["bench_answer.time_answer"]
    assert "oracle_absent       passed" in said

    (folder / "environment/Dockerfile").write_text(f"FROM {image.tag}\nENV LD_PRELOAD=/tmp/x.so\n")
    ok, said = verified(folder)
    told = json.loads((folder / "failure.json").read_text())
    assert not ok
    assert not (folder / "verification_success.json").exists()
    failed = [gate for gate in told["gates"] if gate["state"] == "failed"]
    assert [gate["name"] for gate in failed] == ["nothing_planted"]
    assert failed[0]["detail"] == "the variable LD_PRELOAD changes the behaviour of every program"


@pytest.mark.docker
def test_an_image_that_is_not_at_the_commit_the_folder_declares_fails(tmp_path: Path, image: BuiltImage) -> None:
    folder = folder_of(tmp_path, image, base_commit="1" * 40)
    (folder / "environment/Dockerfile").write_text(f"FROM {image.tag}\n")
    assert not verified(folder)[0]
    told = json.loads((folder / "failure.json").read_text())
    assert told["gates"][0]["state"] == "failed"
    assert "1" * 40 in told["gates"][0]["detail"]


@pytest.mark.docker
def test_what_cannot_be_built_or_is_nobody_s_task_is_an_error_with_a_file(tmp_path: Path, image: BuiltImage) -> None:
    folder = folder_of(tmp_path, image)
    (folder / "environment/Dockerfile").write_text(f"FROM {image.tag}\nRUN false\n")
    with pytest.raises(ItemFailure, match="failed"):
        verified(folder)
    assert "failed" in json.loads((folder / "failure.json").read_text())["error"]


def test_a_broken_folder_is_an_error_with_a_file(tmp_path: Path) -> None:
    (tmp_path / "verification_success.json").write_text("{}")
    with pytest.raises(ConfigurationError, match=r"holds no task\.toml"):
        verified(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["failure.json"]
    with pytest.raises(ConfigurationError, match="is no folder"):
        verified(tmp_path / "nowhere")
