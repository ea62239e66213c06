from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
from docker.models.containers import Container
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.leftovers import leftover_containers, remove_container
from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuiltImage, EngineName
from sandbox.server import serving
from tests.support.docker import OS_IMAGE, MakeDockerEngine
from tests.support.images import LIMITS, PURE, Sample, build_sample, command, make_sample, make_spec
from tests.support.sampling import ENDED_IN_A_DAEMON

pytestmark = [pytest.mark.docker, pytest.mark.network]

TEST_LOCK = "iniconfig==2.3.0 --hash=sha256:f631c04d2c48c52b84d0d0549c99ff3859c98df65b3101406327ecc7d53fbf12\n"
# other runs of these tests have containers in the same daemon
MARK = uuid.uuid4().hex


@pytest.fixture(scope="module")
def docker(make_docker_engine: MakeDockerEngine) -> DockerEngine:
    return make_docker_engine()


@pytest.fixture(scope="module")
def built(docker: DockerEngine, compiled: Sample, lock: str) -> tuple[BuiltImage, str]:
    spec = make_spec(compiled, lock, os_image=OS_IMAGE, test_lock=TEST_LOCK)
    image, log = build_sample(docker, spec, compiled, run_id="test-docker", force=True)
    return image, log


@pytest.fixture
def image(built: tuple[BuiltImage, str]) -> BuiltImage:
    return built[0]


def containers(docker: DockerEngine, run_id: str) -> list[str]:
    found = docker.daemon.client.containers.list(all=True, filters={"label": f"formulacode.run={run_id}"})
    return [str(container.name) for container in found]


def images(docker: DockerEngine, run_id: str) -> list[str]:
    made = docker.daemon.client.images.list(all=True, filters={"label": f"formulacode.run={run_id}"})
    return [str(image.id) for image in made]


def test_a_build_is_verified_and_its_tiers_are_told_apart(docker: DockerEngine, built: tuple[BuiltImage, str]) -> None:
    image, log = built
    assert all(verification.ok for verification in image.verifications)
    assert image.verifications[0].name == "declared_commit"
    assert image.benchmarks == ("bench_answer.time_answer",)
    assert [tier.name for tier in image.tiers] == ["base", "repo", "env", "task"]
    base, repo, env, task = (tier.size_bytes for tier in image.tiers)
    assert base > 50 * env > 50 * task > 0
    assert repo < 1_000_000
    assert image.digest.startswith("sha256:")
    assert image.toolchain.os_digest == docker.daemon.client.images.get(OS_IMAGE.replace("{python}", "3.11")).id
    assert [package for package in image.toolchain.apt if package.startswith("libc6:amd64=2.")]
    assert image.toolchain.tools["asv_runner"] == "0.2.0"
    assert "install-package" in log


def test_nothing_of_the_build_stays_in_a_layer(docker: DockerEngine, image: BuiltImage) -> None:
    paths = {file.path for file in docker.files(image) if "/ensurepip/" not in file.path}
    assert not [path for path in paths if path.endswith((".bundle", ".whl")) or "formulacode-build/" in path]
    assert not [path for path in paths if path.startswith(("run/secrets", "var/cache/uv/"))]
    history = docker.daemon.client.images.get(image.tag).history()
    assert "BEGIN CERTIFICATE" not in str(history)


def test_a_distribution_that_the_build_altered_is_found_though_its_record_agrees(
    docker: DockerEngine, lock: str, tmp_path: Path
) -> None:
    code = """
import base64, glob, hashlib
site = "/opt/venv/lib/python3.11/site-packages"
with open(site + "/evil.pth", "wb") as file:
    file.write(b"import os")
digest = base64.urlsafe_b64encode(hashlib.sha256(b"import os").digest()).decode().rstrip("=")
with open(glob.glob(site + "/setuptools-*.dist-info/RECORD")[0], "a") as file:
    file.write("evil.pth,sha256=" + digest + ",9\\n")
"""
    files = {**PURE, "setup.py": f"{code}\nimport setuptools\nsetuptools.setup()\n"}
    sample = make_sample(tmp_path / "tinypure", "tinypure", files, {"README.md": "x"})
    with pytest.raises(BuildFailure, match=r"setuptools-[\d.]+\.dist-info/RECORD is not the file") as caught:
        build_sample(docker, make_spec(sample, lock, os_image=OS_IMAGE), sample)
    assert caught.value.kind == "nothing_planted"


def test_no_layer_stays_after_the_files_of_an_image_were_read(
    docker: DockerEngine, image: BuiltImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = docker.daemon.client.info()
    mounts = Path(facts["DockerRootDir"]) / "image" / facts["Driver"] / "layerdb" / "mounts"
    before: list[Path] = []

    def remove(daemon: DockerDaemon, container: Container) -> None:
        before.append((mounts / str(container.id)).resolve(strict=True))
        remove_container(daemon, container)

    monkeypatch.setattr(f"{DockerEngine.__module__}.remove_container", remove)
    assert sum(1 for _ in docker.files(image)) > 1000
    # while a stream is open, the daemon does not remove its container
    assert next(docker.files(image)).path
    # a layer that is held keeps those of the image for ever
    assert [mount.exists() for mount in before] == [False, False]


def test_leftovers_are_found_while_the_files_of_an_image_are_read(docker: DockerEngine, image: BuiltImage) -> None:
    # the daemon does not answer for the container until all is read
    for _ in itertools.islice(docker.files(image), 1):
        left = leftover_containers(docker.daemon)
        assert image.digest not in [container.attrs["Image"] for container in left]


def test_a_second_build_of_the_same_spec_costs_next_to_nothing(
    docker: DockerEngine, image: BuiltImage, compiled: Sample
) -> None:
    again = docker.build(image.spec, Origins(compiled.mirror))
    assert again.digest == image.digest
    assert again.log.count("is there already") == len(again.tiers) == 4
    assert docker.exists(image)
    assert not docker.exists(image.model_copy(update={"digest": "sha256:" + "0" * 64}))


def test_two_tasks_of_one_repository_share_the_lower_tiers(
    docker: DockerEngine, image: BuiltImage, compiled: Sample, lock: str
) -> None:
    other = {"task_id": "Acme__tinyc-6", "build_environment": {"CFLAGS": "-O1"}}
    spec = make_spec(compiled, lock, os_image=OS_IMAGE, test_lock=TEST_LOCK, **other)
    outcome = docker.build(spec, Origins(compiled.mirror))
    docker.daemon.client.images.remove(outcome.tag, force=True)
    assert outcome.tag != image.tag
    assert [tier.tag for tier in outcome.tiers][:3] == [tier.tag for tier in image.tiers][:3]
    assert outcome.log.count("is there already") == 3


def test_downloads_of_source_distributions_are_kept_for_their_repository(
    docker: DockerEngine, compiled: Sample, lock: str, tmp_path: Path
) -> None:
    number, other = (uuid.uuid4().int % 10**15 for _ in range(2))
    # a lock of its own: the environment of another build with it would be taken
    spec = make_spec(compiled, f"{lock}# {number}\n", os_image=OS_IMAGE, repository_id=number)
    docker.build(spec, Origins(compiled.mirror))

    def holds_something(cache: str) -> bool:
        mount = f"--mount=type=cache,id=formulacode-uv-{cache},target=/cache,uid=1000,gid=1000"
        os_image = OS_IMAGE.replace("{python}", "3.11")
        (tmp_path / "Dockerfile").write_text(f"FROM {os_image}\nRUN {mount} ls -A /cache | grep -q .\n")
        return docker.daemon.run(["buildx", "build", "--no-cache", str(tmp_path)], timeout=60).ok

    assert holds_something(str(number))
    assert not holds_something(str(other))


def test_a_session_is_confined(docker: DockerEngine, image: BuiltImage) -> None:
    with docker.session(image, run_id=f"confined-{MARK}") as session:
        (name,) = containers(docker, f"confined-{MARK}")
        attributes = docker.daemon.client.containers.get(name).attrs
        host = attributes["HostConfig"]
        assert host["NetworkMode"] == "none"
        assert host["CapDrop"] == ["ALL"]
        assert host["SecurityOpt"] == ["no-new-privileges:true"]
        assert (host["Memory"], host["PidsLimit"]) == (LIMITS.memory_mb * 1024 * 1024, LIMITS.processes)
        assert attributes["Mounts"] == []
        assert session.run(["id", "-u"], timeout=30).stdout == b"1000\n"
        assert session.run(["cat"], timeout=30, stdin=b"fed").stdout == b"fed"
        done = session.run(["env"], timeout=30, environment={"PYTHONPATH": "/mine"})
        assert b"PYTHONPATH=/opt/formulacode/instrument:/mine\n" in done.stdout
    assert containers(docker, f"confined-{MARK}") == []


def test_a_limit_above_the_cpus_of_the_machine_is_all_of_them(
    make_docker_engine: MakeDockerEngine, image: BuiltImage
) -> None:
    docker = make_docker_engine(LIMITS.model_copy(update={"cpus": 4096.0}))

    with docker.session(image, run_id=f"wide-{MARK}"):
        (name,) = containers(docker, f"wide-{MARK}")
        host = docker.daemon.client.containers.get(name).attrs["HostConfig"]

    assert host["NanoCpus"] == docker.daemon.client.info()["NCPU"] * 1_000_000_000


def test_the_harness_can_be_read_and_not_written(docker: DockerEngine, image: BuiltImage) -> None:
    with docker.session(image, run_id="harness") as session:
        path = session.put("judge.py", b"print('honest')\n")
        assert session.run([session.python, path], timeout=30).stdout == b"honest\n"
        for attempt in (
            f"echo x > {path}",
            f"rm -f {path}",
            f"chmod 777 {session.harness}",
            f"touch {session.harness}/x",
            # whose interpreter a rebuild would take
            "mkdir -p /opt/build/bin && touch /opt/build/bin/python",
            "echo x >> /opt/formulacode/task/record-hashes",
        ):
            assert not session.run(["sh", "-c", attempt], timeout=30).ok


def test_a_patch_is_rebuilt_offline_by_the_script_that_built_the_image(docker: DockerEngine, image: BuiltImage) -> None:
    run_id = f"rebuild-{MARK}"
    with docker.session(image, run_id=run_id) as session:
        with docker.session(image, run_id="copy", like=session) as copy:
            assert copy.run(["ls", f"{copy.tests}/iniconfig/__init__.py"], timeout=30).ok
            assert images(docker, run_id) == [], "nothing was changed: a copy is another container of the image"
        ask = [session.python, "-c", "import tinyc; print(tinyc.answer())"]
        assert session.run(ask, timeout=30).stdout == b"41\n"
        change = ["sed", "-i", "s/41/42/", "tinyc/answer.h"]
        assert session.run(change, timeout=30, cwd=session.repository).ok
        rebuilt = session.reinstall(timeout=120)
        assert rebuilt.ok, rebuilt.stderr
        assert session.run(ask, timeout=30).stdout == b"42\n"
        with docker.session(image, run_id="copy", like=session) as copy:
            assert copy.run(ask, timeout=30).stdout == b"42\n"
            assert copy.run(["ls", f"{copy.tests}/iniconfig/__init__.py"], timeout=30).ok
            assert not copy.run(["touch", f"{copy.tests}/mine"], timeout=30).ok
            with docker.session(image, run_id="copy", like=session):
                # both are of this very session: others may build on this daemon meanwhile
                assert len(images(docker, run_id)) == 1
        assert session.run(["touch", "/tmp/mine"], timeout=30).ok
        with docker.session(image, run_id="copy", like=session) as copy:
            assert copy.run(["ls", "/tmp/mine"], timeout=30).ok, "a copy is of the content at its time"
    assert images(docker, run_id) == []


def test_a_timeout_in_a_session_kills_every_process_it_started(docker: DockerEngine, image: BuiltImage) -> None:
    with docker.session(image, run_id=f"timeout-{MARK}") as session:
        (name,) = containers(docker, f"timeout-{MARK}")
        session.run(["touch", "/tmp/kept"], timeout=30)
        done = session.run(["sh", "-c", "setsid sleep 7654 & setsid sleep 7654"], timeout=1)
        assert done.timed_out
        assert not done.ok
        listed = docker.daemon.client.containers.get(name).top()["Processes"]
        assert not [row for row in listed if "7654" in str(row)]
        assert session.run(["ls", "/tmp/kept"], timeout=30).ok, "the session goes on, with what it had"
        for renamed in ("", "-a '[sleep] <defunct>' "):
            session.run(["bash", "-c", f'setsid bash -c "exec {renamed}sleep 7654" >/dev/null 2>&1 &'], timeout=30)
            listed = docker.daemon.client.containers.get(name).top()["Processes"]
            assert not [row for row in listed if "7654" in str(row)], "nothing outlives its command"


def test_code_cannot_end_its_container_nor_reach_who_runs_it(docker: DockerEngine, image: BuiltImage) -> None:
    with docker.session(image, run_id=f"suicide-{MARK}") as session:
        for sent in ("KILL", "INT", "CHLD", "STOP"):
            # bash sends nothing to itself by -1
            done = session.run(["bash", "-c", f"kill -{sent} -1; kill -{sent} 1; kill -9 $$"], timeout=30)
            assert done.rc == 137, done
        pried = session.run(
            ["sh", "-c", "ls /proc/1/fd; cat /proc/1/environ /proc/1/maps; echo x > /proc/1/fd/1"], timeout=30
        )
        assert pried.stdout == b""
        assert pried.stderr.lower().count(b"permission denied") == 4, pried.stderr
        assert session.run(["echo", "still"], timeout=30).stdout == b"still\n"


def test_an_ended_container_fails_its_item(docker: DockerEngine, image: BuiltImage) -> None:
    with docker.session(image, run_id=f"ended-{MARK}") as session:
        (name,) = containers(docker, f"ended-{MARK}")
        threading.Timer(1.0, docker.daemon.client.containers.get(name).kill).start()
        with pytest.raises(ItemFailure, match="the container ended under sleep"):
            session.run(["sleep", "60"], timeout=30)
        with pytest.raises(ItemFailure, match="the container ended under true"):
            session.run(["true"], timeout=30)
    assert containers(docker, f"ended-{MARK}") == []


CARGO = """#!/bin/sh
[ "$1" = vendor ] || exit 0
mkdir -p "$4/acme-1.0.0"
printf 'let url = "https://user:secret@example.org/";\\n' >"$4/acme-1.0.0/lib.rs"
cp /bin/sh "$4/acme-1.0.0/sh"
chmod 4755 "$4/acme-1.0.0/sh"
touch ~/left-online /workspace/left-online
printf '[source.vendored-sources]\\ndirectory = "%s"\\n' "$4"
"""
"""As `cargo vendor --locked --versioned-dirs FOLDER`, with what a repository's configuration may make it run."""


def test_crates_are_roots_and_all_that_is_left_of_fetching_them(
    docker: DockerEngine, lock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os_image = "formulacode-test/with-cargo:py{python}"
    (tmp_path / "cargo").write_text(CARGO)
    system = OS_IMAGE.replace("{python}", "3.11")
    (tmp_path / "Dockerfile").write_text(f"FROM {system}\nCOPY --chmod=0755 cargo /usr/local/bin/cargo\n")
    tag = os_image.replace("{python}", "3.11")
    done = docker.daemon.run(["buildx", "build", "--load", "--tag", tag, str(tmp_path)], timeout=60)
    assert done.ok, done.stderr
    monkeypatch.setattr(f"{DockerEngine.__module__}.naming.needs_crates", lambda _spec: True)
    files = {**PURE, "Cargo.toml": "[package]\n", "Cargo.lock": "version = 3\n"}
    sample = make_sample(tmp_path / "rusty", "rusty", files, {"README.md": "x"})
    spec = make_spec(sample, lock, os_image=os_image, package_name="tinypure")
    image, _ = build_sample(docker, spec, sample)
    crates = {file.path: file.uid for file in docker.files(image) if file.path.startswith("crates/")}
    assert crates == {
        f"crates/{path}": 0 for path in ("config.toml", *(f"vendor/acme-1.0.0/{n}" for n in ("lib.rs", "sh")))
    }
    assert not [file.path for file in docker.files(image) if file.path.endswith("left-online")]
    with docker.session(image, run_id="crates") as session:
        told = session.run(["stat", "-c", "%a", "/opt/formulacode/crates/vendor/acme-1.0.0/sh"], timeout=30)
    assert told.stdout == b"755\n"


@ENDED_IN_A_DAEMON
def test_a_build_that_hangs_is_killed_in_the_daemon_too(
    make_docker_engine: MakeDockerEngine, docker: DockerEngine, lock: str, tmp_path: Path
) -> None:
    mark = f"7{os.getpid()}6"
    files = {**PURE, "setup.py": f"import subprocess\nsubprocess.run(['setsid', 'sleep', '{mark}'])\n"}
    sample = make_sample(tmp_path / "hanging", "hanging", files, {"README.md": "x"})
    spec = make_spec(sample, lock, os_image=OS_IMAGE)
    # on a busy machine all tiers may take longer than there is patience for the last one
    docker.build_repo(spec, Origins(sample.mirror))
    short = make_docker_engine(LIMITS.model_copy(update={"build_seconds": 15}))
    with pytest.raises(BuildFailure, match="was killed after 15 s") as caught:
        short.build(spec, Origins(sample.mirror))
    assert caught.value.kind == "timeout"
    assert "install-package" in caught.value.log
    for _ in range(100):
        found = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True, text=True).stdout
        if f"sleep {mark}" not in found:
            break
    assert f"sleep {mark}" not in found


def test_a_build_that_fails_keeps_its_log(docker: DockerEngine, lock: str, tmp_path: Path) -> None:
    files = {**PURE, "setup.py": "raise SystemExit('cannot build this')\n"}
    sample = make_sample(tmp_path / "broken", "broken", files, {"README.md": "x"})
    with pytest.raises(BuildFailure, match="task tier of Acme__broken-5 failed") as caught:
        docker.build(make_spec(sample, lock, os_image=OS_IMAGE), Origins(sample.mirror))
    assert caught.value.kind == "build"
    assert "cannot build this" in caught.value.log_tail
    assert "install-environment" in caught.value.log


def test_a_package_is_built_without_network(docker: DockerEngine, lock: str, tmp_path: Path) -> None:
    sample = make_sample(tmp_path / "nosy", "nosy", PURE, {"README.md": "x"})
    knock = "import socket; socket.create_connection(('1.1.1.1', 53), 3)"
    spec = make_spec(sample, lock, os_image=OS_IMAGE, commands=[command("python", "-c", knock)])
    with pytest.raises(BuildFailure) as caught:
        docker.build(spec, Origins(sample.mirror))
    assert "Network is unreachable" in caught.value.log
    assert caught.value.kind == "build"


def test_an_os_image_that_cannot_be_had_is_named(docker: DockerEngine, compiled: Sample, lock: str) -> None:
    spec = make_spec(compiled, lock, os_image="127.0.0.1:9/none:py{python}")
    with pytest.raises(BuildFailure, match=r"127\.0\.0\.1:9/none:py3\.11 cannot be had") as caught:
        docker.build(spec, Origins(compiled.mirror))
    assert caught.value.kind == "interpreter"


def test_a_rate_limiting_registry_is_not_one_without_the_image(
    docker: DockerEngine, compiled: Sample, lock: str
) -> None:
    said = {
        "errors": [{"code": "TOOMANYREQUESTS", "message": "toomanyrequests: You have reached your pull rate limit."}]
    }

    def refuse(_: Request) -> JSONResponse:
        return JSONResponse(said, status_code=429)

    with serving(Starlette(routes=[Route("/{path:path}", refuse)]), name="registry") as url:
        os_image = f"{url.removeprefix('http://')}/busy:py{{python}}"
        with pytest.raises(OutsideSystemError, match="registry: did not report whether it has 127") as caught:
            docker.build(make_spec(compiled, lock, os_image=os_image), Origins(compiled.mirror))
        with pytest.raises(OutsideSystemError, match="registry: did not report whether it has 127"):
            DockerEngine(os_image).interpreters()
    assert "429" in str(caught.value)


def test_an_os_image_with_another_interpreter_is_refused(docker: DockerEngine, compiled: Sample, lock: str) -> None:
    spec = make_spec(compiled, lock, os_image=OS_IMAGE.replace("{python}", "3.12"))
    with pytest.raises(BuildFailure) as caught:
        docker.build(spec, Origins(compiled.mirror))
    assert "the OS image has Python 3.12, not 3.11" in caught.value.log


def test_an_anchor_outside_the_history_is_refused(docker: DockerEngine, compiled: Sample, lock: str) -> None:
    spec = make_spec(compiled, lock, os_image=OS_IMAGE, anchor_sha=compiled.merge)
    with pytest.raises(ItemFailure, match="is not in the history"):
        docker.build(spec, Origins(compiled.mirror))


def test_something_planted_in_an_image_is_found_by_the_host(
    docker: DockerEngine, image: BuiltImage, compiled: Sample, tmp_path: Path
) -> None:
    from formulacode_dagster.building.verification.evidence import Subject
    from formulacode_dagster.building.verification.origin import MirrorOrigin
    from formulacode_dagster.building.verification.verify import verify

    plants = (
        "RUN echo 'import os' > /opt/venv/lib/python3.11/site-packages/sitecustomize.py"
        " && printf '#!/bin/sh\\n' > /opt/venv/bin/git && echo x >> ~/.bashrc\n"
        "USER root\nRUN echo /tmp/x.so > /etc/ld.so.preload && touch /usr/local/lib/python3.11/usercustomize.py\n"
    )
    (tmp_path / "Dockerfile").write_text(f"FROM {image.tag}\n{plants}")
    tag = f"formulacode/planted:{uuid.uuid4().hex}"
    done = docker.daemon.run(["buildx", "build", "--load", "--tag", tag, str(tmp_path)], timeout=60)
    assert done.ok, done.stderr
    digest = str(docker.daemon.client.images.get(tag).id)
    planted = image.model_copy(update={"digest": digest, "tag": tag})
    try:
        origin = MirrorOrigin(compiled.mirror, compiled.pull_request())
        made = verify(Subject(docker, planted, origin, run_id="planted")).verifications
    finally:
        docker.daemon.client.images.remove(tag, force=True)
    assert (made[-1].name, made[-1].ok) == ("nothing_planted", False)
    for trace in ("sitecustomize.py", "bin/git", ".bashrc", "ld.so.preload", "usercustomize.py"):
        assert trace in made[-1].detail or "more" in made[-1].detail


def test_clean_removes_containers_of_killed_runs_and_nobody_elses(docker: DockerEngine, image: BuiltImage) -> None:
    killed_run = uuid.uuid4().hex
    program = f"""
import time
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.models.image import BuiltImage
image = BuiltImage.model_validate_json({image.model_dump_json()!r})
with DockerEngine({OS_IMAGE!r}).session(image, run_id={killed_run!r}):
    print("open", flush=True)
    time.sleep(600)
"""
    killed = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"open\n"
    client = docker.daemon.client
    stranger = client.containers.create(image.digest, ["sleep", "1"], labels={"someone": "else"})
    try:
        with docker.session(image, run_id="alive") as session:
            docker.clean()
            assert len(containers(docker, killed_run)) == 1, "it still lives"
            killed.kill()
            killed.wait()
            killed.stdout.close()
            assert docker.clean() >= 1
            assert containers(docker, killed_run) == []
            assert session.run(["true"], timeout=30).ok
            assert client.containers.get(str(stranger.id)).id == stranger.id
    finally:
        stranger.remove(force=True)


@pytest.mark.parametrize("before", ["pass", "session.run(['sleep', '600'], timeout=1)"], ids=["idle", "restarted"])
def test_a_container_ends_with_the_process_that_uses_it(docker: DockerEngine, image: BuiltImage, before: str) -> None:
    killed_run = uuid.uuid4().hex
    program = f"""
import time
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.models.image import BuiltImage
image = BuiltImage.model_validate_json({image.model_dump_json()!r})
with DockerEngine({OS_IMAGE!r}).session(image, run_id={killed_run!r}) as session:
    {before}
    print("open", flush=True)
    time.sleep(600)
"""
    killed = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"open\n"
    (name,) = containers(docker, killed_run)
    left = docker.daemon.client.containers.get(name)
    try:
        time.sleep(1)
        left.reload()
        assert left.status == "running", "it waits for its process"
        killed.kill()
        killed.wait()
        killed.stdout.close()
        left.wait(timeout=20)
    finally:
        left.remove(force=True)


def test_interpreters_are_the_local_os_images_if_none_can_be_pulled(docker: DockerEngine) -> None:
    here = docker.interpreters()
    assert here is None or "3.11" in here
    assert DockerEngine("127.0.0.1:9/none:py{python}").interpreters() == frozenset()


def test_a_daemon_that_does_not_answer_stops_the_stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
    with pytest.raises(OutsideSystemError, match="docker: connect: no answer") as caught:
        DockerDaemon().check()
    assert "FC_ENGINE=process" in str(caught.value)


def test_an_os_image_without_a_place_for_the_interpreter_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="lacks"):
        DockerEngine("python:3.11")
    assert DockerEngine.name is EngineName.DOCKER
