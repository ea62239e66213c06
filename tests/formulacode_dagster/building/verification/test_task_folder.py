from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.leftovers import GRADED_IN
from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.verification.task_folder import image_of, read_task_folder
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.image import ResourceLimits

SHA = "a1" * 20
TASK = f"""
version = "1.0"
[metadata]
task_id = "acme__fast-5"
base_commit = "{SHA}"
benchmark_dir = "benchmarks"
package_name = "fast"
[environment]
docker_image = "registry.example.org/acme/formulacode:acme__fast-5"
cpus = 2
"""


def lay(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    patch = "diff --git a/x b/x\n+return cached_neighbours(graph, node)\n"
    files = {
        "task.toml": TASK,
        "solution/fix.patch": patch,
        "solution/more/solve.sh": "git apply",
        "instruction.md": "",
    }
    task = read_task_folder(lay(tmp_path, files))
    assert (task.task_id, task.base_sha, task.package_name, task.benchmark_dir) == (
        *("acme__fast-5", SHA, "fast"),
        "benchmarks",
    )
    assert task.image == "registry.example.org/acme/formulacode:acme__fast-5"
    assert patch.encode() in task.solution
    assert b"git apply" in task.solution


@pytest.mark.parametrize("place", ["environment", "."])
def test_without_an_image_s_name_the_dockerfile_is_built(tmp_path: Path, place: str) -> None:
    text = TASK.replace("docker_image", "# docker_image")
    files = {"task.toml": text, f"{place}/Dockerfile": "FROM x", f"{place}/requirements.txt": "numpy==1.0"}
    task = read_task_folder(lay(tmp_path, files))
    assert task.image == tmp_path / place / "Dockerfile"
    assert task.lock == "numpy==1.0"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"README": ""}, "holds no task.toml"),
        ({"task.toml": "a = "}, "is not valid TOML"),
        ({"task.toml": "metadata = 3"}, r"\[metadata\] .* is no table"),
        ({"task.toml": TASK.replace(SHA, "main")}, "declares no base_commit"),
        ({"task.toml": TASK.replace(f'"{SHA}"', "7")}, "base_commit .* is no text"),
        ({"task.toml": TASK.replace("docker_image", "# ")}, "has no image"),
    ],
)
def test_a_broken_folder_is_refused_in_words_that_tell_why(tmp_path: Path, files: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_task_folder(lay(tmp_path, files))
    with pytest.raises(ConfigurationError, match="is no folder"):
        read_task_folder(tmp_path / "nowhere")


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    lay(tmp_path, {"secret": "the host's", "away/Dockerfile": "FROM x", "task/task.toml": TASK, "real/task.toml": TASK})
    (tmp_path / "task/solution").symlink_to(tmp_path)
    assert read_task_folder(tmp_path / "task").solution == b""
    lay(tmp_path, {"task/task.toml": TASK.replace("docker_image", "# ")})
    (tmp_path / "task/environment").symlink_to(tmp_path / "away")
    (tmp_path / "task/Dockerfile").symlink_to(tmp_path / "away/Dockerfile")
    with pytest.raises(ConfigurationError, match="has no image"):
        read_task_folder(tmp_path / "task")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/task.toml").symlink_to(tmp_path / "real/task.toml")
    with pytest.raises(ConfigurationError, match=r"holds no task\.toml"):
        read_task_folder(tmp_path / "linked")


class FailingDaemon(DockerDaemon):
    """One that has buildx, and whose builds fail; it keeps their labels."""

    def run(self, arguments: Sequence[str], **_: object) -> Completed:
        prefix = "--label="
        pairs = (argument.removeprefix(prefix).partition("=") for argument in arguments if argument.startswith(prefix))
        self.labels = {name: value for name, _, value in pairs}
        return Completed(int(arguments[1] == "build"), b"", b"", 0.0)


def test_the_image_of_a_verification_says_whose_it_is_so_that_the_next_run_removes_it(tmp_path: Path) -> None:
    text = TASK.replace("docker_image", "# docker_image")
    task = read_task_folder(lay(tmp_path, {"task.toml": text, "Dockerfile": "FROM x"}))
    daemon = FailingDaemon()
    with pytest.raises(ItemFailure, match="failed"):
        image_of(task, daemon, ResourceLimits()).__enter__()
    owner = Owner.parse(daemon.labels["formulacode.owner"])
    assert owner is not None
    assert owner.is_alive()
    assert daemon.labels[GRADED_IN]
