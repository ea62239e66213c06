"""A daemon somewhere else, reached over TCP, and shared with other machines."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.docker.commands import CommandChannel, Ended, command_that_serves
from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.image_store import DockerImageStore
from formulacode_dagster.building.engines.docker.leftovers import leftover_containers, remove_container
from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.building.engines.owner import Owner
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.image import EngineName
from tests.support.certificates import make_certificate
from tests.support.docker import OS_IMAGE, ca_bundle, remove_images
from tests.support.images import LIMITS, Sample, as_image, make_spec

pytestmark = pytest.mark.docker


class Tunnel:
    """Carries every connection to a port of this machine over to the daemon's socket, and counts them."""

    def __init__(self, target: str, *, tls: ssl.SSLContext | None = None) -> None:
        self._target, self._tls = target, tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"
        self.connections = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        for connection in (self._listening, *self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                if self._tls is not None:
                    near = self._tls.wrap_socket(near, server_side=True)
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                self.connections += 1
                self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while chunk := source.recv(65536):
                sink.sendall(chunk)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # as in a network: who sends on learns that nobody listens
            for end in (source, sink):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def local_socket() -> str:
    local = DockerDaemon().environment.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not local.startswith("unix://"):
        pytest.skip(f"the daemon of this machine is at {local}, and remote already")
    return local.removeprefix("unix://")


@pytest.fixture
def tunnel(local_socket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tunnel]:
    tunnel = Tunnel(local_socket)
    monkeypatch.setenv("DOCKER_HOST", tunnel.address)
    yield tunnel
    tunnel.close()


@pytest.mark.network
def test_all_that_the_engine_does_goes_through_the_daemons_address(tunnel: Tunnel, pure: Sample, lock: str) -> None:
    name = uuid.uuid4().hex
    engine = DockerEngine(OS_IMAGE, DockerBuildSettings(LIMITS, ca_bundle=ca_bundle(), installation=name))
    spec = make_spec(pure, lock, os_image=OS_IMAGE, build_environment={"REMOTE": name})
    image = as_image(EngineName.DOCKER, spec, engine.build(spec, Origins(pure.mirror)))
    try:
        with engine.session(image, run_id=name) as session:
            program = session.put("ask.py", b"import tinypure; print(tinypure.total(4))")
            assert session.run([session.python, program], timeout=60).stdout == b"6\n"
            (container,) = engine.daemon.client.containers.list(filters={"label": f"formulacode.run={name}"})
            assert container.attrs["Mounts"] == [], "a folder of ours is not there"
            assert session.reinstall(timeout=120).ok
        assert any(file.path.endswith("tinypure/__init__.py") for file in engine.files(image))
        room = DockerImageStore(engine.daemon, name)
        assert room.where == f"Docker ({tunnel.address})"
        assert image.tag in {str(image) for image in room.inventory().images}
        assert tunnel.connections > 5
    finally:
        remove_images(name)
    assert engine.daemon.client.containers.list(all=True, filters={"label": f"formulacode.run={name}"}) == []


def test_commands_go_over_tls(local_socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = make_certificate(tmp_path)
    (tmp_path / "cert.pem").write_bytes(certificate.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    tunnel = Tunnel(local_socket, tls=context)
    for name, value in (("HOST", tunnel.address), ("TLS_VERIFY", "1"), ("CERT_PATH", str(tmp_path))):
        monkeypatch.setenv(f"DOCKER_{name}", value)
    # requests prefers it to the certificates of the daemon
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    daemon, much = DockerDaemon(), os.urandom(3_000_000)
    command = command_that_serves("python3", 120)
    container = daemon.client.containers.create(OS_IMAGE.replace("{python}", "3.12"), command, stdin_open=True)
    channel = CommandChannel(daemon, container)

    def ask(*argv: str, timeout: float = 60, stdin: bytes | None = None) -> Ended:
        return channel.run(argv, timeout=timeout, cwd="/", environment={}, stdin=stdin)

    try:
        container.start()
        channel.hold()
        assert isinstance(channel.connection, ssl.SSLSocket)
        assert ask("cat", stdin=much).completed.stdout == much
        for number in range(50):
            assert ask("echo", str(number)).completed.stdout == f"{number}\n".encode()
        began = time.monotonic()
        assert ask("sleep", "30", timeout=1).completed.timed_out
        container.restart(timeout=0)
        channel.hold()
        talking = ask("sh", "-c", "while :; do echo more; sleep 0.01; done", timeout=1).completed
        assert (talking.timed_out, talking.stdout[:10]) == (True, b"more\nmore\n")
        assert time.monotonic() - began < 10
        channel.release()
        assert container.wait(timeout=20)["StatusCode"] == 0
        assert ask("true").with_container
    finally:
        channel.release()
        container.remove(force=True)
        daemon.client.close()
        tunnel.close()


def test_a_daemon_that_only_a_docker_context_names_is_found(
    tunnel: Tunnel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    described = ["docker", "context", "create", "elsewhere", "--docker", f"host={tunnel.address}"]
    subprocess.run(described, check=True, capture_output=True)
    monkeypatch.setenv("DOCKER_CONTEXT", "elsewhere")
    daemon = DockerDaemon()
    daemon.check()
    assert daemon.client.ping()
    before = tunnel.connections
    assert before > 0
    assert daemon.run(["info", "--format", "{{.ID}}"], timeout=30).stdout.decode().strip() == daemon.client.info()["ID"]
    assert tunnel.connections > before, "the command line goes there, too"


def test_what_another_machine_left_goes_when_it_cannot_be_in_use_any_more(tmp_path: Path) -> None:
    daemon, mark = DockerDaemon(), uuid.uuid4().hex
    (tmp_path / "Dockerfile").write_text(f'FROM scratch\nCOPY Dockerfile /\nLABEL mark={mark}\nCMD ["none"]\n')
    tag = f"formulacode/remote:{mark}"
    assert daemon.run(["buildx", "build", "--load", "--tag", tag, str(tmp_path)], timeout=60).ok
    elsewhere = Owner.current(mark).model_copy(update={"host": "another machine"})
    labels = {"formulacode.run": mark, "formulacode.owner": elsewhere.model_dump_json()}
    container = daemon.client.containers.create(tag, labels=labels)

    def left(**later: float) -> bool:
        found = leftover_containers(daemon, now=datetime.now(tz=UTC) + timedelta(**later))
        return container.id in {listed.id for listed in found}

    try:
        assert not left(), "it may be exported just now"
        assert left(hours=2)
        dead = elsewhere.model_copy(update={"host": Owner.current("").host, "started": "1"})
        gone = daemon.client.containers.create(tag, labels={**labels, "formulacode.owner": dead.model_dump_json()})
        assert gone.id in {container.id for container in leftover_containers(daemon)}, "its process was of this machine"
        remove_container(daemon, gone)
        remove_container(daemon, gone)
    finally:
        for leftover in daemon.client.containers.list(all=True, filters={"label": f"formulacode.run={mark}"}):
            remove_container(daemon, leftover)
        daemon.client.images.remove(tag, force=True)


def test_leftovers_of_another_machine_go_only_once_its_run_is_over(tunnel: Tunnel, tmp_path: Path) -> None:
    daemon, mark = DockerDaemon(), uuid.uuid4().hex
    (tmp_path / "Dockerfile").write_text(f'FROM scratch\nCOPY Dockerfile /\nLABEL mark={mark}\nCMD ["none"]\n')
    tag = f"formulacode/remote:{mark}"
    assert daemon.run(["buildx", "build", "--load", "--tag", tag, str(tmp_path)], timeout=60).ok
    here, elsewhere = Owner.current("over"), {"host": "another machine"}
    owners = {
        "over": here.model_copy(update=elsewhere),
        "under way": here.model_copy(update={**elsewhere, "run_id": "under way"}),
        "over, and this process": here,
        "no run": here.model_copy(update={**elsewhere, "run_id": ""}),
    }
    made = {
        name: daemon.client.containers.create(
            tag, labels={"formulacode.run": mark, "formulacode.owner": owner.model_dump_json()}
        )
        for name, owner in owners.items()
    }

    try:
        store = DockerImageStore(daemon, mark, lambda run_id: run_id == "over")
        assert made["over"].name in store.leftovers(remove=False)
        found = leftover_containers(daemon, run_is_over=lambda run_id: run_id == "over")
        assert {name for name, container in made.items() if container.id in {it.id for it in found}} == {"over"}
        assert tunnel.connections > 0
    finally:
        for container in made.values():
            remove_container(daemon, container)
        daemon.client.images.remove(tag, force=True)
