from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from resources.documentation import SETTINGS
from sandbox.session import SERVICES, SUITS_SAMPLES, Sandbox, running_sandbox
from tests.support.command_line import FC_DATA
from tests.support.git_world import BareRepository


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one bare repository."""
    folder = tmp_path_factory.mktemp("bare repositories")
    made = BareRepository(folder / "acme" / "tool.git")
    made.add("Begin")
    made.write()
    return folder


def ports(sandbox: Sandbox) -> dict[str, int]:
    return {service: int(url.rpartition(":")[2]) for service, url in sandbox.urls.items()}


@contextmanager
def listening(port: int = 0) -> Iterator[int]:
    """Somebody else's server."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        yield taken.getsockname()[1]


def free_row() -> int:
    """The first of four ports that were free a moment ago; below those that the kernel gives out by itself.

    Drawn, since other tests of this machine look for such a row at the same time.
    """
    for first in random.SystemRandom().sample(range(12_000, 32_000, 4), 1000):
        try:
            for port in range(first, first + 4):
                with listening(port):
                    pass
        except OSError:
            continue
        return first
    raise AssertionError("no four free ports")


def test_four_servers_answer_at_the_addresses_of_the_environment(repositories: Path, tmp_path: Path) -> None:
    with running_sandbox(repositories, tmp_path / "state") as sandbox:
        assert tuple(sandbox.urls) == SERVICES
        told = sandbox.environment
        token = {"Authorization": f"Bearer {told['GH_TOKENS']}"}
        assert httpx.get(f"{told['GITHUB_API_URL']}/repos/acme/tool", headers=token).json()["full_name"] == "acme/tool"
        key = {"Authorization": f"Bearer {told['LLM_API_KEY']}"}
        models = httpx.get(f"{told['LLM_BASE_URL']}/models", headers=key).json()["data"]
        assert told["LLM_MODEL"] in {model["id"] for model in models}
        assert httpx.get(f"{told['HF_ENDPOINT']}/api/datasets/{told['HF_DATASET']}").status_code in (200, 401, 404)
        assert httpx.get(f"http://{told['FC_REGISTRY_URL']}/v2/").status_code == 200
        cloned = subprocess.run(
            ["git", "ls-remote", f"{told['GITHUB_CLONE_URL']}/acme/tool.git", "main"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "refs/heads/main" in cloned.stdout
        assert set(told) <= {setting.name for setting in SETTINGS}
        # short samples of real repositories would prove nothing
        assert not set(told) & set(SUITS_SAMPLES)


def test_its_books_count_every_request_by_service(repositories: Path, tmp_path: Path) -> None:
    with running_sandbox(repositories, tmp_path / "state") as sandbox:
        assert sandbox.calls() == dict.fromkeys(SERVICES, 0)
        httpx.get(f"{sandbox.urls['registry']}/v2/")
        httpx.get(f"{sandbox.urls['github']}/repos/acme/tool", headers={"Authorization": "Bearer sandbox"})
        # asking which models there are is not asking a model
        httpx.get(f"{sandbox.urls['model']}/v1/models", headers={"Authorization": "Bearer sandbox"})
        assert sandbox.calls() == {"github": 1, "model": 0, "hub": 0, "registry": 1}


def test_ports_are_remembered_so_that_yesterdays_addresses_hold(repositories: Path, tmp_path: Path) -> None:
    with running_sandbox(repositories, tmp_path / "state") as first:
        before = ports(first)
    with running_sandbox(repositories, tmp_path / "state") as second:
        assert ports(second) == before


def test_only_a_remembered_port_that_is_taken_is_replaced(repositories: Path, tmp_path: Path) -> None:
    with running_sandbox(repositories, tmp_path / "state") as first:
        before = ports(first)
    with listening(before["hub"]), running_sandbox(repositories, tmp_path / "state") as second:
        after = ports(second)
        assert httpx.get(f"{second.urls['hub']}/_sandbox/calls").status_code == 200
    assert after["hub"] != before["hub"]
    assert {**after, "hub": 0} == {**before, "hub": 0}


@pytest.mark.parametrize("content", ["", "[1, 2]", '{"github": "x"}', '{"github": null, "hub": 1}', "null"])
def test_a_memory_of_ports_that_cannot_be_read_is_forgotten(repositories: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "ports.json").write_text(content)
    with running_sandbox(repositories, tmp_path) as sandbox:
        assert json.loads((tmp_path / "ports.json").read_text()) == ports(sandbox)


def test_ports_that_were_asked_for_are_taken_in_order(repositories: Path, tmp_path: Path) -> None:
    first = free_row()
    with running_sandbox(repositories, tmp_path / "state", first_port=first) as sandbox:
        assert list(ports(sandbox).values()) == [first, first + 1, first + 2, first + 3]


def test_a_requested_port_that_is_taken_is_named_and_nothing_stays_open(repositories: Path, tmp_path: Path) -> None:
    first = free_row()
    with (
        listening(first + 2),
        pytest.raises(OutsideSystemError, match=rf"sandbox hub: cannot listen on 127\.0\.0\.1:{first + 2}"),
        running_sandbox(repositories, tmp_path / "state", first_port=first),
    ):
        pytest.fail("it started")
    with listening(first), listening(first + 1):
        pass


def test_a_folder_without_repositories_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigurationError, match=r"holds no bare repository.*owner/name\.git"),
        running_sandbox(tmp_path, tmp_path / "state"),
    ):
        pytest.fail("it started")


def test_what_was_published_is_still_there_the_next_time(repositories: Path, tmp_path: Path) -> None:
    pushed = b"layer"
    with running_sandbox(repositories, tmp_path / "state") as sandbox:
        digest = push(sandbox, pushed)
    with running_sandbox(repositories, tmp_path / "state") as sandbox:
        assert httpx.get(f"{sandbox.urls['registry']}/v2/a/b/blobs/{digest}").content == pushed


def push(sandbox: Sandbox, content: bytes) -> str:
    """Its digest, by which `has` finds it."""
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    registry = sandbox.urls["registry"]
    opened = httpx.post(f"{registry}/v2/a/b/blobs/uploads/")
    upload = httpx.URL(registry).join(opened.headers["Location"])
    httpx.put(upload.copy_merge_params({"digest": digest}), content=content).raise_for_status()
    return digest


def has(sandbox: Sandbox, digest: str) -> bool:
    return httpx.get(f"{sandbox.urls['registry']}/v2/a/b/blobs/{digest}").status_code == 200


def knows(sandbox: Sandbox, repository: str) -> bool:
    token = {"Authorization": f"Bearer {sandbox.environment['GH_TOKENS']}"}
    return httpx.get(f"{sandbox.urls['github']}/repos/{repository}", headers=token).status_code == 200


def datasets(sandbox: Sandbox) -> bool:
    token = {"Authorization": f"Bearer {sandbox.environment['HF_TOKEN']}"}
    dataset = sandbox.environment["HF_DATASET"]
    return httpx.get(f"{sandbox.urls['hub']}/api/datasets/{dataset}", headers=token).status_code == 200


@pytest.mark.slow
def test_two_at_once_keep_apart(repositories: Path, tmp_path: Path) -> None:
    others = BareRepository(tmp_path / "others" / "other" / "thing.git")
    others.add("Begin")
    others.write()
    one_home, other_home = tmp_path / "one", tmp_path / "other"
    with running_sandbox(tmp_path / "others", other_home) as other:
        with running_sandbox(repositories, one_home) as one:
            before = ports(one)
            assert len({*before.values(), *ports(other).values()}) == 8
            assert (knows(one, "acme/tool"), knows(one, "other/thing")) == (True, False)
            assert (knows(other, "acme/tool"), knows(other, "other/thing")) == (False, True)
            digest = push(one, b"layer of one")
            assert (has(one, digest), has(other, digest)) == (True, False)
            owner, name = one.environment["HF_DATASET"].split("/")
            made = {"type": "dataset", "organization": owner, "name": name}
            token = {"Authorization": f"Bearer {one.environment['HF_TOKEN']}"}
            httpx.post(f"{one.urls['hub']}/api/repos/create", json=made, headers=token).raise_for_status()
            assert (datasets(one), datasets(other)) == (True, False)
            assert other.calls()["model"] == one.calls()["model"] == 0
            assert other.calls()["registry"] < one.calls()["registry"]
        assert knows(other, "other/thing"), "the end of one is not that of the other"
        with running_sandbox(repositories, one_home) as again:
            assert ports(again) == before
            assert has(again, digest)
    assert json.loads((one_home / "ports.json").read_text()) == before
    assert not set(before.values()) & set(json.loads((other_home / "ports.json").read_text()).values())


def test_a_second_one_over_the_same_state_leaves_the_memory_of_ports_alone(repositories: Path, tmp_path: Path) -> None:
    """Else what was published would be looked for where the second one was."""
    with running_sandbox(repositories, tmp_path / "state") as first:
        before = ports(first)
        with running_sandbox(repositories, tmp_path / "state") as second:
            assert not set(ports(second).values()) & set(before.values())
        assert json.loads((tmp_path / "state" / "ports.json").read_text()) == before
    with running_sandbox(repositories, tmp_path / "state") as third:
        assert ports(third) == before


@contextmanager
def served(repositories: Path, home: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """`fc-data sandbox` as a user starts it, and the environment it printed."""
    command = [str(FC_DATA), "sandbox", "--repositories", str(repositories)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "FC_HOME": str(home / "state")}
    process = subprocess.Popen(
        command, env=environment, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    late = threading.Timer(60, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        printed: dict[str, str] = {}
        for line in process.stdout:
            if line.startswith("#"):
                break
            match = re.fullmatch(r"export ([A-Z_]+)='(.*)'\n", line)
            assert match is not None, line
            printed[match[1]] = match[2]
        yield process, printed
    finally:
        late.cancel()
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_the_environment_and_ends_on_interrupt(
    repositories: Path, tmp_path: Path, number: signal.Signals
) -> None:
    with served(repositories, tmp_path) as (process, printed):
        token = {"Authorization": f"Bearer {printed['GH_TOKENS']}"}
        answer = httpx.get(f"{printed['GITHUB_API_URL']}/repos/acme/tool", headers=token)
        assert answer.json()["full_name"] == "acme/tool"
        assert printed["GITHUB_CLONE_URL"] == repositories.as_uri()
        assert set(printed) <= {setting.name for setting in SETTINGS}
        process.send_signal(number)
        rest, complaints = process.communicate(timeout=30)
    assert (process.returncode, rest, complaints) == (0, "# stopped\n", "")
    with pytest.raises(httpx.ConnectError):
        httpx.get(printed["GITHUB_API_URL"])


@pytest.mark.slow
def test_two_commands_serve_two_homes_and_a_killed_one_harms_no_other(repositories: Path, tmp_path: Path) -> None:
    for home in ("one", "other"):
        (tmp_path / home).mkdir()
    with (
        served(repositories, tmp_path / "one") as (killed, one),
        served(repositories, tmp_path / "other") as (_, other),
    ):
        addresses = ("GITHUB_API_URL", "LLM_BASE_URL", "HF_ENDPOINT", "FC_REGISTRY_URL")
        assert all(one[name] != other[name] for name in addresses)
        killed.kill()
        killed.wait(30)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{one['HF_ENDPOINT']}/_sandbox/calls")
        assert httpx.get(f"{other['HF_ENDPOINT']}/_sandbox/calls").status_code == 200


@pytest.mark.slow
def test_what_the_command_prints_can_be_read_by_a_shell(repositories: Path, tmp_path: Path) -> None:
    with served(repositories, tmp_path) as (_, printed):
        script = "".join(f"export {name}='{value}'\n" for name, value in printed.items())
        shown = subprocess.run(["sh", "-c", f"{script} env"], capture_output=True, text=True, check=True, env={})
    assert {f"{name}={value}" for name, value in printed.items()} <= set(shown.stdout.splitlines())
