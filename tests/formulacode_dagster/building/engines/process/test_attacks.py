"""Attacks of code under build and under measurement on the machine of the process engine."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import formulacode_dagster
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.processes import can_confine
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.image import EngineName
from tests.support.images import COMPILED, LIMITS, Sample, as_image, make_sample, make_spec

pytestmark = [pytest.mark.network, pytest.mark.skipif(not can_confine(), reason="this kernel allows no namespaces")]

ATTACKS = """
import json, os, pathlib, socket


def attack(read, written, folders, sockets, port, pid):
    def succeeds(act):
        try:
            act()
        except OSError:
            return False
        return True

    def write_in(folder):
        path = os.path.join(folder, "planted-by-a-test")
        open(path, "w").close()
        os.unlink(path)

    def connect(path):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)

    done = [f"read {path}" for path in read if succeeds(lambda: open(path).close())]
    done += [f"wrote {path}" for path in written if succeeds(lambda: open(path, "r+").close())]
    done += [f"wrote in {folder}" for folder in folders if succeeds(lambda: write_in(folder))]
    done += [f"connected to {path}" for path in sockets if succeeds(lambda: connect(path))]
    knock = lambda: socket.create_connection(("127.0.0.1", port), 2).close()
    done += ["reached the network"] if succeeds(knock) else []
    done += ["found the platform's process"] if succeeds(lambda: os.kill(pid, 0)) else []
    # records that the platform writes next to the folders of a build, with its own rights
    own = pathlib.Path(os.environ["TMPDIR"]).parent
    done += ["planted a record"] if succeeds(lambda: (own / "build.log").symlink_to("/nonexistent/build.log")) else []
    # what later builds, and the tests, are run with
    for name in ("build", "instrument", "tests"):
        done += [f"wrote in {name}"] if succeeds(lambda: write_in(own / name)) else []
    done += ["changed the input"] if succeeds(lambda: (own / "task" / "build-steps").write_text("")) else []
    done += ["is root"] if os.getuid() == 0 else []
    print("DONE " + json.dumps(done))


"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[dict[str, object]]:
    """The arguments of `attack`: files and sockets of a platform with its home in *tmp_path*."""
    home = tmp_path / "home"
    secret = tmp_path / ".env"
    secret.touch(mode=0o600)
    mirror, instance = home / "mirrors/a/b.git/config", home / "dagster/dagster.yaml"
    other = home / "builds/images/other/venv/module.py"
    for file in (mirror, instance, other):
        file.parent.mkdir(parents=True)
        file.write_text("")
    source = Path(formulacode_dagster.__file__)
    with ExitStack() as stack:
        daemon = stack.enter_context(socket.socket(socket.AF_UNIX))
        daemon.bind(str(tmp_path / "docker.sock"))
        daemon.listen()
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield {
            "read": [str(secret), str(other), f"/proc/{os.getpid()}/environ", "/etc/shadow"],
            "written": [str(mirror), str(instance), str(other), str(source)],
            "folders": [str(file.parent) for file in (mirror, instance, other, source)]
            + ["/etc/cron.d", "/etc", "/usr/local/bin", "/var/tmp"],
            "sockets": [str(tmp_path / "docker.sock"), "/var/run/docker.sock"],
            "port": server.getsockname()[1],
            "pid": os.getpid(),
        }


def with_attacks(folder: Path, machine: dict[str, object]) -> Sample:
    """A C extension whose build attacks *machine*."""
    files = {**COMPILED, "setup.py": f"{ATTACKS}attack(**{machine!r})\n{COMPILED['setup.py']}"}
    return make_sample(folder, folder.name, files, {"README.md": "x"})


def successes(output: str) -> list[str]:
    return json.loads(next(line for line in output.splitlines() if line.startswith("DONE ")).removeprefix("DONE "))


def test_code_reaches_nothing_of_the_machine_and_is_built_all_the_same(
    tmp_path: Path, lock: str, machine: dict[str, object]
) -> None:
    engine, sample = ProcessEngine(tmp_path / "home/builds", LIMITS), with_attacks(tmp_path / "nosy", machine)
    spec = make_spec(sample, lock)
    built = engine.build(spec, Origins(sample.mirror))
    assert successes(built.log) == []
    with engine.session(as_image(EngineName.PROCESS, spec, built), run_id="run") as session:
        program = f"{ATTACKS}attack(**{machine!r})\nimport tinyc; print(tinyc.answer())"
        measured = session.run([session.python, "-c", program], timeout=60)
        assert successes(measured.stdout.decode()) == []
        assert measured.stdout.endswith(b"\n41\n")
        # one build or process leaves nothing for the next but in its folder
        assert session.run(["sh", "-c", "touch /tmp/left ~/kept"], timeout=30).ok
        assert session.run(["sh", "-c", "test ! -e /tmp/left && test -e ~/kept"], timeout=30).ok
        rebuilt = session.reinstall(timeout=120)
        assert rebuilt.ok, rebuilt.stderr
        assert successes((rebuilt.stdout + rebuilt.stderr).decode()) == []


def test_without_namespaces_the_attacks_succeed(tmp_path: Path, lock: str, machine: dict[str, object]) -> None:
    engine, sample = ProcessEngine(tmp_path / "home/builds", LIMITS), with_attacks(tmp_path / "nosy", machine)
    vars(engine).update(confines=False, isolates_network=False)
    log: list[str] = []
    # it writes the log where the planted link leads
    with suppress(OutsideSystemError):
        engine.build(make_spec(sample, lock), Origins(sample.mirror), progress=log.append)
    done = successes("\n".join(log))
    assert f"read {tmp_path / '.env'}" in done
    assert f"wrote {tmp_path / 'home/mirrors/a/b.git/config'}" in done
    assert f"wrote in {tmp_path / 'home/dagster'}" in done
    assert f"connected to {tmp_path / 'docker.sock'}" in done
    assert "reached the network" in done
    assert "found the platform's process" in done
    assert "planted a record" in done
    assert "wrote in build" in done
