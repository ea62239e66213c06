"""Containers of one task: gone at the end, however that comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import docker.errors
import pytest

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.leftovers import remove_leftovers
from formulacode_dagster.releasing.exports.containers import task_container, task_image
from tests.support.docker import OS_IMAGE

pytestmark = pytest.mark.docker

LIMITS = {"cpus": 1, "memory_mb": 256, "processes": 64}


def is_there(daemon: DockerDaemon, name: str) -> bool:
    try:
        daemon.client.containers.get(name)
    except docker.errors.NotFound:
        return False
    return True


def test_a_container_is_there_for_the_length_of_its_block() -> None:
    daemon = DockerDaemon()
    with task_container(OS_IMAGE.format(python="3.11"), LIMITS, daemon) as container:
        done = daemon.run(["exec", container.name, "id", "-un"], timeout=30)
        assert (done.ok, done.stdout) == (True, b"root\n")
    assert not is_there(daemon, container.name)


def test_two_gradings_of_a_task_at_once_share_no_image(tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "Dockerfile").write_text(f"FROM {OS_IMAGE.format(python='3.11')}\nRUN touch /graded\n")
    daemon = DockerDaemon()
    with task_image(tmp_path, daemon) as image:
        with task_image(tmp_path, daemon) as other:
            is_shared = daemon.client.images.get(image).id == daemon.client.images.get(other).id
        with task_container(image, LIMITS, daemon) as container:
            assert daemon.run(["exec", container.name, "ls", "/graded"], timeout=30).ok
    assert not is_shared
    assert not daemon.run(["image", "inspect", image], timeout=30).ok


def test_the_image_of_a_killed_grading_is_removed_by_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "Dockerfile").write_text(f"FROM {OS_IMAGE.format(python='3.11')}\nRUN touch /graded\n")
    program = f"""
import time
from pathlib import Path
from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.releasing.exports.containers import task_image
with task_image(Path({str(tmp_path)!r}), DockerDaemon()) as image:
    print(image, flush=True)
    time.sleep(600)
"""
    daemon = DockerDaemon()
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        image = killed.stdout.readline().strip()
        remove_leftovers(daemon)
        assert daemon.run(["image", "inspect", image], timeout=30).ok, "its process lives"
        killed.kill()
    remove_leftovers(daemon)
    assert not daemon.run(["image", "inspect", image], timeout=30).ok


def test_a_container_ends_with_the_process_that_is_killed() -> None:
    program = f"""
import time
from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.releasing.exports.containers import task_container, task_image
with task_container({OS_IMAGE.format(python="3.11")!r}, {LIMITS!r}, DockerDaemon()) as container:
    print(container.name, flush=True)
    time.sleep(600)
"""
    daemon = DockerDaemon()
    killed = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    name = killed.stdout.readline().strip()
    left = daemon.client.containers.get(name)
    try:
        assert left.status == "running"
        killed.kill()
        killed.wait()
        killed.stdout.close()
        left.wait(timeout=20)
    finally:
        daemon.run(["rm", "--force", name], timeout=60)
