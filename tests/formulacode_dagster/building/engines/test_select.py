from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.select import choose_engine, require_same_engine
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.image import EngineName


@pytest.fixture
def no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.getsockname()[1]}")


def test_process_is_taken_when_asked_for(tmp_path: Path) -> None:
    engine, sentence = choose_engine("process", root=tmp_path)
    assert engine.name is EngineName.PROCESS
    assert "as FC_ENGINE=process says" in sentence


def test_auto_takes_folders_when_no_daemon_answers_and_says_why(tmp_path: Path, no_docker: None) -> None:
    engine, sentence = choose_engine("auto", root=tmp_path)
    assert engine.name is EngineName.PROCESS
    assert "no answer" in sentence
    assert "nothing can be published" in sentence


def test_docker_that_does_not_answer_is_an_error_when_it_was_asked_for(tmp_path: Path, no_docker: None) -> None:
    with pytest.raises(OutsideSystemError, match="docker"):
        choose_engine("docker", root=tmp_path)


def test_a_docker_with_the_image_store_of_containerd_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}
    monkeypatch.setattr(DockerDaemon, "client", SimpleNamespace(info=lambda: answer))
    with pytest.raises(OutsideSystemError, match="containerd-snapshotter"):
        choose_engine("docker", root=tmp_path)
    engine, sentence = choose_engine("auto", root=tmp_path)
    assert engine.name is EngineName.PROCESS
    assert "store of containerd" in sentence


FOLDERS = "Building the samples in folders of this machine, since docker: connect: no answer"


@pytest.mark.parametrize(
    ("strangers", "built_with", "what"),
    [
        ({"pandas-dev/pandas"}, (), "pandas-dev/pandas would be built in folders of this machine"),
        ({"b/b", "a/a", "c/c"}, (), "a/a and 2 more would be built in folders"),
        (
            set(),
            {EngineName.DOCKER},
            "built with Docker, and is not built otherwise: Building the samples",
        ),
        (set(), {EngineName.DOCKER, EngineName.PROCESS}, "the month was built with Docker"),
    ],
)
def test_auto_never_moves_a_month_or_a_stranger_to_folders_of_the_host(
    tmp_path: Path, strangers: set[str], built_with: set[EngineName], what: str
) -> None:
    chosen = (ProcessEngine(tmp_path), FOLDERS)
    with pytest.raises(OutsideSystemError, match=what) as stopped:
        require_same_engine("auto", chosen, strangers=strangers, built_with=built_with)
    assert "FC_ENGINE=process" in str(stopped.value)
    assert stopped.value.system == "docker"
    require_same_engine("process", chosen, strangers=strangers, built_with=built_with)


@pytest.mark.parametrize("setting", ["auto", "process"])
def test_a_machine_that_cannot_confine_code_builds_only_the_samples(
    tmp_path: Path, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formulacode_dagster.building.engines.select.can_confine", lambda: False)
    chosen = (ProcessEngine(tmp_path), FOLDERS)
    require_same_engine(setting, chosen, strangers=(), built_with=())
    with pytest.raises(OutsideSystemError, match="pandas-dev/pandas cannot be built in folders") as refused:
        require_same_engine(setting, chosen, strangers={"pandas-dev/pandas"}, built_with=())
    assert "user.max_user_namespaces" in str(refused.value)
    require_same_engine(setting, (DockerEngine(), "Docker"), strangers={"pandas-dev/pandas"}, built_with=())


def test_auto_takes_folders_for_samples_and_docker_for_everything_else(tmp_path: Path) -> None:
    require_same_engine("auto", (ProcessEngine(tmp_path), FOLDERS), strangers=(), built_with={EngineName.PROCESS})
    docker = (DockerEngine(), "Building with Docker")
    require_same_engine("auto", docker, strangers={"a/a"}, built_with={EngineName.DOCKER})


@pytest.mark.docker
def test_auto_takes_docker_when_a_daemon_answers(tmp_path: Path) -> None:
    engine, sentence = choose_engine("auto", root=tmp_path, os_image="fc-os:py{python}")
    assert engine.name is EngineName.DOCKER
    assert sentence == "Building with Docker, since a daemon answers"


@pytest.mark.docker
def test_auto_takes_folders_when_docker_has_no_os_image(tmp_path: Path) -> None:
    engine, sentence = choose_engine("auto", root=tmp_path, os_image="127.0.0.1:9/none:py{python}")
    assert engine.name is EngineName.PROCESS
    assert "can neither pull nor find 127.0.0.1:9/none:py3.x" in sentence
