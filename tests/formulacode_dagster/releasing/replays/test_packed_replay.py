"""Tasks packed, and replayed without Docker, in a user namespace, by a user without rights and by root."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

from formulacode_dagster.building.engines.callgrind import Callgrind
from formulacode_dagster.cli.app import app
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.measurements import replays_of
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth
from formulacode_dagster.releasing.registries.accounts import STRANGER
from formulacode_dagster.releasing.registries.publishing import Registry
from formulacode_dagster.releasing.replays.packing import ReleaseToPack, pack
from formulacode_dagster.releasing.replays.portable.command import lay_tools
from formulacode_dagster.releasing.replays.portable.contents import ArchiveRefusedError, Contents
from formulacode_dagster.releasing.replays.portable.entering import NAMESPACES, WAYS
from formulacode_dagster.releasing.replays.portable.layers import RootFileSystem, image_of
from formulacode_dagster.releasing.replays.portable.sessions import PYTHON as PYTHON_OF_IMAGE
from formulacode_dagster.releasing.replays.portable.sessions import SessionMachine, SessionPlace
from formulacode_dagster.releasing.replays.portable.slim import PROGRAMS, find_interpreter
from formulacode_dagster.releasing.replays.released import TaskToReplay
from formulacode_dagster.releasing.replays.replay_program import SCRIPTS
from formulacode_dagster.releasing.replays.taking import read_results, take
from resources.hub import HubResource
from tests.records import MONTH
from tests.support.docker import MakeDockerEngine, remove_images
from tests.support.exports import PYTHON, REGISTRY, C, make_rows, read_rows
from tests.support.sharing import RunFolder

RELEASE = ReleaseToPack("formulacode@2026-03", MONTH, "hub:acme/tasks")
NO_RIGHTS = 54_321
"""A user that no machine has."""
PATH = "/usr/local/bin:/usr/bin:/bin"


def registry() -> Registry:
    return Registry(REGISTRY, "exports", STRANGER, "single")


@pytest.fixture(scope="session")
def tasks(make_docker_engine: MakeDockerEngine, run_folder: RunFolder, lock: str) -> Iterator[dict[str, TaskToReplay]]:
    """A task of Python and one of C, of one image in the local registry."""
    try:
        httpx.get(f"http://{REGISTRY}/v2/", timeout=5).raise_for_status()
    except httpx.HTTPError:
        pytest.skip(f"no registry on {REGISTRY}; run .ci/install-registry")
    installation = f"test-{run_folder.uid}-packed"

    def make(folder: Path) -> None:
        make_rows(make_docker_engine(installation=installation), folder, lock)

    with run_folder.shared("packed-rows", make, partial(remove_images, installation)) as folder:
        yield {kind: task_of(row) for kind, row in read_rows(folder).items()}


def task_of(row: dict[str, Any]) -> TaskToReplay:
    return TaskToReplay(
        month=MONTH,
        task_id=row["task_id"],
        item=f"acme/{row['task_id'].removeprefix('acme__').replace('-', '#')}",
        number=row["pr_number"],
        patch=row["patch"].encode(),
        procedure_json=row["procedure"],
        image_name=row["image_name"],
        image_digest=row["image_digest"],
    )


@pytest.fixture(scope="module")
def archive(tasks: dict[str, TaskToReplay]) -> Iterator[Path]:
    """Both tasks, packed and unpacked again in a folder that every user reaches."""
    place = Path(tempfile.mkdtemp(prefix="fc-packed-"))
    place.chmod(0o755)
    try:
        pack(RELEASE, list(tasks.values()), place / "month.tar", reader=registry(), progress=print)
        with tarfile.open(place / "month.tar") as packed:
            packed.extractall(place, filter="tar")
        yield place / "month"
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def counted(tasks: dict[str, TaskToReplay]) -> dict[str, TaskToReplay]:
    """The tasks, with time to count instructions, though their rounds take seconds."""

    def with_time(task: TaskToReplay) -> TaskToReplay:
        procedure = task.procedure()
        plan = procedure.plan.model_copy(update={"instructions_share": 60.0})
        return dataclasses.replace(task, procedure_json=procedure.model_copy(update={"plan": plan}).to_json())

    return {kind: with_time(task) for kind, task in tasks.items()}


@pytest.fixture(scope="module")
def slim_archive(counted: dict[str, TaskToReplay]) -> Iterator[tuple[Path, str]]:
    """Both tasks in a slim archive, and an interpreter of this user that it takes."""
    place = Path(tempfile.mkdtemp(prefix="fc-slim-"))
    place.chmod(0o755)
    try:
        packed = pack(RELEASE, list(counted.values()), place / "slim.tar", reader=registry(), progress=print, slim=True)
        with tarfile.open(place / "slim.tar") as archive:
            archive.extractall(place, filter="tar")
        slim = packed.manifest.tasks[0].slim
        assert slim is not None
        try:
            yield place / "slim", find_interpreter(slim.python).path
        except ArchiveRefusedError as error:
            pytest.skip(str(error))
    finally:
        shutil.rmtree(place)


Replay = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def replay(archive: Path) -> Iterator[Replay]:
    """`replay(option, …, user=…)`: `./replay` without anything of Docker's, results in a folder of the user's."""
    work = Path(tempfile.mkdtemp(prefix="fc-replay-"))

    def replay(
        *options: str, user: int = NO_RIGHTS, folder: Path = archive, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        if os.getuid() == 0:
            os.chown(work, user, user)
        elif user == 0:
            pytest.skip("needs root")
        ids = {"user": user, "group": user, "extra_groups": []} if os.getuid() == 0 else {}
        return subprocess.run(
            [str(folder / "replay"), "--work", str(work), "--results", str(work / "results.json"), *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=work,
            env={"PATH": PATH, "HOME": "/nonexistent", **variables},
            **ids,
        )

    yield replay
    shutil.rmtree(work)


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("user", "kind"), [(NO_RIGHTS, PYTHON), (NO_RIGHTS, C)], ids=["python", "c"])
def test_a_packed_task_is_confirmed_without_docker(
    replay: Replay, tasks: dict[str, TaskToReplay], database, user: int, kind: str
) -> None:
    task = tasks[kind]
    done = replay("--only", task.item, "--enter", NAMESPACES, user=user)
    assert done.returncode == 0, done.stderr
    assert "entered by namespaces" in done.stderr
    content = Path(done.args[4]).read_bytes()
    # the results are all that is left
    assert [path.name for path in Path(done.args[4]).parent.iterdir()] == ["results.json"]
    results = read_results(content, "results.json")
    assert results.machine.model
    assert results.machine.kernel == os.uname().release
    with database.transaction() as connection:
        take(connection, results, list(tasks.values()), release=RELEASE.tag, destination=RELEASE.destination)
        ((name, (made,)),) = replays_of(connection, MONTH).items()
    assert (name, made.verdict, made.is_same_harness) == (task.task_id, "confirmed", True)
    objects = {sample.objects for result in made.measurement.results for sample in result.samples}
    # each build of compiled code has another layout
    assert (len(objects) > 2) is (kind == C)


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", [PYTHON, C])
def test_a_slim_archive_is_measured_by_the_interpreter_of_the_machine(
    replay: Replay, slim_archive: tuple[Path, str], counted: dict[str, TaskToReplay], database: Database, kind: str
) -> None:
    folder, python = slim_archive
    assert not list(folder.glob("oci/blobs/sha256/*.part"))
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 64 * 1024**2
    task = counted[kind]
    done = replay("--only", task.item, "--python", python, folder=folder, user=os.getuid())
    assert done.returncode == 0, done.stderr
    results = read_results(Path(done.args[4]).read_bytes(), "results.json")
    with database.transaction() as connection:
        take(connection, results, list(counted.values()), release=RELEASE.tag, destination=RELEASE.destination)
        ((made,),) = replays_of(connection, MONTH).values()
    assert (made.verdict, made.is_same_harness, made.entered_by) == ("confirmed", True, "namespaces, slim"), made.detail
    objects = {sample.objects for result in made.measurement.results for sample in result.samples}
    assert (len(objects) > 2) is (kind == C)
    if Callgrind.find():
        assert (made.measurement.instructions_ratio or 0.0) > 1.5, made.measurement.instructions


@pytest.mark.docker
@pytest.mark.slow
def test_a_machine_without_interpreter_or_compiler_is_told_so(
    replay: Replay, slim_archive: tuple[Path, str], tmp_path: Path
) -> None:
    folder, python = slim_archive
    done = replay("--python", "/usr/bin/true", folder=folder)
    assert done.returncode == 2
    assert re.search(r"refused: CPython 3\.11\.\d+ is not here, only none; name it with --python", done.stderr)
    # a search path with all programs but the compiler
    programs = Path(tempfile.mkdtemp(prefix="fc-programs-"))
    try:
        programs.chmod(0o755)
        for name in (*PROGRAMS, "python3", "sh"):
            (programs / name).symlink_to(shutil.which(name, path=PATH) or "")
        done = replay("--python", python, folder=folder, user=os.getuid(), PATH=str(programs))
    finally:
        shutil.rmtree(programs)
    assert done.returncode == 2
    assert "no compiler (cc) is on PATH, and acme/python#5, acme/c#5 cannot be built without one" in done.stderr


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_documented_commands_pack_and_take(
    tasks: dict[str, TaskToReplay],
    database: Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    task = tasks[PYTHON]
    row = {"month": MONTH, "task_id": task.task_id, "repo_name": "acme/fast", "pr_number": 5, "metric": "time"}
    row |= {"patch": task.patch.decode(), "patch_encoding": "utf-8", "procedure": task.procedure_json}
    released = pl.DataFrame([{**row, "image_name": task.image_name, "image_digest": task.image_digest}])
    monkeypatch.setattr(HubResource, "released", lambda *_: ReleasedMonth(RELEASE.tag, released))
    monkeypatch.setattr(HubResource, "destination", lambda _: SimpleNamespace(name=RELEASE.destination))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").mkdir()

    def fc_data(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["replay", *arguments], env={"COLUMNS": "200"})

    pack_month = ("pack", "--month", MONTH, "build/tasks.tar")
    assert "has no task acme/fast#6" in str(fc_data(*pack_month, "--only", "acme/fast#6").exception)
    slim = fc_data(*pack_month, "--slim")
    assert slim.exit_code == 0, slim.output
    assert "1 tasks in build/tasks.tar, " in slim.output
    slim_size = Path("build/tasks.tar").stat().st_size
    packed = fc_data(*pack_month, "--only", "acme/fast#5")
    assert packed.exit_code == 0, packed.output
    assert Path("build/tasks.tar").stat().st_size > 3 * slim_size
    assert "1 tasks in build/tasks.tar" in packed.output
    subprocess.run(["tar", "-xf", "build/tasks.tar"], check=True)
    command = ["tasks/replay", "--times", "2", "--results", "results.json"]
    replay = subprocess.run(command, capture_output=True, text=True, check=False)
    assert replay.returncode == 0, replay.stderr
    for said in ("2 replays taken, 0 known before, 0 refused", "0 replays taken, 2 known before, 0 refused"):
        taken = fc_data("take", "results.json")
        assert taken.exit_code == 0, taken.output
        assert said in taken.output
        assert "confirmed" in taken.output
    with database.transaction() as connection:
        assert len(replays_of(connection, MONTH)[task.task_id]) == 2


@pytest.mark.docker
@pytest.mark.slow
def test_an_archive_that_was_changed_is_refused(replay: Replay, archive: Path) -> None:
    harness = archive / "fc_harness.pyz"
    content = harness.read_bytes()
    harness.write_bytes(content + b"\0")
    try:
        done = replay()
    finally:
        harness.write_bytes(content)
    assert done.returncode == 2
    assert "refused: 1 files are not as they were packed: fc_harness.pyz hashes to" in done.stderr


LOOKS_AROUND = """
import json, os, socket
def fails(attempt):
    try:
        attempt()
    except OSError:
        return "failed"
    return "worked"
told = {
    "root": fails(lambda: open("/usr/new", "w")),
    "harness": fails(lambda: open("/opt/formulacode/harness/fc_harness.pyz", "a")),
    "checkout": fails(lambda: open("/workspace/repo/new", "w")),
    "network": fails(lambda: socket.create_connection(("127.0.0.1", 5000), 5)),
    "processes": sum(name.isdigit() for name in os.listdir("/proc")) < 9,
    "user": os.getuid() != 0,
    "folders": [name for name in ("home/user", "work", "root/.pyenv") if os.path.exists(f"/{name}")],
}
print(json.dumps(told))
"""


@pytest.mark.docker
@pytest.mark.slow
def test_code_of_a_task_reaches_nothing_of_the_machine_and_cannot_change_the_harness(
    archive: Path, tmp_path: Path
) -> None:
    contents = Contents(str(archive))
    layers, variables = image_of(contents, contents.manifest["tasks"][0]["image"])
    root = RootFileSystem(str(tmp_path / "root"))
    root.unpack(contents, layers, print)
    tools = str(tmp_path / "tools")
    lay_tools(tools, contents, lambda name: resources.files(SCRIPTS[name][0]).joinpath(SCRIPTS[name][1]).read_bytes())
    machine = SessionMachine(root, variables, WAYS[0], tools, {"memory_mb": 1024, "processes": 64})
    place = SessionPlace(machine, str(tmp_path / "place"))
    try:
        done = place.run([PYTHON_OF_IMAGE, "-c", LOOKS_AROUND], timeout=60)
        assert json.loads(done.stdout) == {
            "root": "failed",
            "harness": "failed",
            "checkout": "worked",
            "network": "failed",
            "processes": True,
            "user": True,
            "folders": [],
        }, done.describe()
        late = place.run(["sh", "-c", "sleep 98765 & sleep 98765"], timeout=2)
        assert late.timed_out
        assert b"sleep\x0098765" not in {
            file.read_bytes().rstrip(b"\0") for file in Path("/proc").glob("[0-9]*/cmdline")
        }
    finally:
        place.close()


@pytest.mark.docker
@pytest.mark.slow
def test_a_machine_without_a_way_into_the_image_is_told_so(replay: Replay) -> None:
    done = replay("--enter", "apptainer")
    assert done.returncode == 2
    assert "no way into the root file system works here: none is installed" in done.stderr


@pytest.mark.docker
@pytest.mark.slow
def test_images_share_their_layers_and_each_is_stored_once(archive: Path) -> None:
    manifest = json.loads((archive / "manifest.json").read_bytes())
    assert {task["task_id"] for task in manifest["tasks"]} == {"acme__python-5", "acme__c-5"}
    index = json.loads((archive / "oci" / "index.json").read_bytes())
    (image,) = index["manifests"]
    blobs = {path.name for path in (archive / "oci" / "blobs" / "sha256").iterdir()}
    layers = json.loads((archive / "oci" / "blobs" / "sha256" / image["digest"][7:]).read_bytes())["layers"]
    assert blobs == {image["digest"][7:], manifest["tasks"][0]["image_id"][7:]} | {
        each["digest"][7:] for each in layers
    }


@pytest.mark.docker
@pytest.mark.slow
def test_an_image_that_was_published_nowhere_comes_from_the_daemon(
    tasks: dict[str, TaskToReplay], tmp_path: Path
) -> None:
    unpublished = dataclasses.replace(tasks[PYTHON], image_name="", image_digest="")
    packed = pack(RELEASE, [unpublished], tmp_path / "one.tar", reader=registry(), progress=print)
    (task,) = packed.manifest.tasks
    assert task.image_id == unpublished.procedure().image_digest


def test_what_cannot_be_packed_is_named(task, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a__b-1 was measured with process, whose images have no root file"):
        pack(RELEASE, [task()], tmp_path / "none.tar", reader=registry(), progress=print)
    assert list(tmp_path.iterdir()) == []
