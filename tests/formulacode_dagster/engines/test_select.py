from __future__ import annotations

import socket
from pathlib import Path

import pytest

from formulacode_dagster.engines.select import choose_engine
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
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


def test_another_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="FC_ENGINE=podman"):
        choose_engine("podman", root=tmp_path)


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
