"""The four sandbox servers together, and the settings that point the platform at them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.operating.files.atomic import write_atomically

from .server import LOCALHOST, serving

SERVICES = ("github", "model", "hub", "registry")
MODEL = "sandbox-rules"
ASKED_OF_MODELS = ("FC_STATEMENT_WRITER", "FC_STATEMENT_JUDGES", "FC_WORKLOAD_WRITER")
TAKES_THE_PLACE_OF = (
    *("GITHUB_API_URL", "GITHUB_CLONE_URL", "GH_TOKENS"),
    *("LLM_BASE_URL", "LLM_MODEL", "LLM_API_KEY", *ASKED_OF_MODELS),
    *("HF_ENDPOINT", "HF_DATASET", "HF_TOKEN", "HF_TOKEN_PATH", "FC_REGISTRY_URL"),
)
"""Settings that name outside systems and their credentials: a mixture of ours and a user's would be wrong."""


SUITS_SAMPLES = {
    "FC_FIRST_MONTH": "2025-12",
    "FC_SAMPLE_SECONDS": "0.02",
    "FC_MEASUREMENT_CONCURRENCY": "2",
    # all probes of all samples take ten times as long as the rest of the demo
    "FC_GRADING_SECONDS": "0",
}
"""The samples begin in that month. Their speed-ups are large: short samples suffice, even with two at once. Those
of real repositories are small.
"""


@dataclass(frozen=True)
class Sandbox:
    """Running servers: their addresses, and the environment variables for them."""

    urls: Mapping[str, str]
    environment: Mapping[str, str]

    def calls(self) -> dict[str, int]:
        """Return the number of requests that each service has answered since it was started."""
        import httpx

        counts: dict[str, int] = {}
        for service, url in self.urls.items():
            answer = httpx.get(f"{url}/_sandbox/calls", timeout=10)
            books = answer.raise_for_status().json()
            counts[service] = int(books["chat_completions"] if service == "model" else books["total"])
        return counts


@contextmanager
def running_sandbox(
    repositories: Path, state: Path, *, host: str = LOCALHOST, first_port: int = 0, samples: bool = False
) -> Iterator[Sandbox]:
    """Serve *repositories* (bare, `owner/name.git`), keeping the Hub's and the registry's content under *state*.

    For the generated *samples*, the environment has SUITS_SAMPLES too.

    Ports are remembered under *state*, so that yesterday's artifacts are found at the same address today; not those of
    a second sandbox over the same *state*, which takes other ports. Raises ConfigurationError if *repositories* is no
    such folder.
    """
    from sandbox.model.app import app as model

    from .github import app as github
    from .hub import app as hub
    from .registry import app as registry

    repositories = repositories.absolute()
    if not any(repositories.glob("*/*.git")):
        raise ConfigurationError(
            f"{repositories} holds no bare repository",
            remedy="Put them there as owner/name.git, or leave the option out",
        )
    state.mkdir(parents=True, exist_ok=True)
    apps = {
        "github": github(repositories),
        "model": model(),
        "hub": hub(state / "hub"),
        "registry": registry(state / "registry"),
    }
    ports = _ports(state, first_port)
    with ExitStack() as stack:
        is_first = stack.enter_context(_first_of(state))
        urls: dict[str, str] = {}
        for service, application in apps.items():
            name = f"sandbox {service}"
            try:
                urls[service] = stack.enter_context(
                    serving(application, host=host, port=ports.get(service, 0), name=name)
                )
            except OutsideSystemError:
                if first_port or service not in ports:
                    raise
                urls[service] = stack.enter_context(serving(application, host=host, name=name))
        if is_first:
            _remember(state, urls)
        yield Sandbox(urls, environment_of(urls, repositories, samples=samples))


def serve_until_interrupted(console: Console, repositories: Path | None, host: str, port: int) -> None:
    """Serve, print the environment to use, and wait for Ctrl-C."""
    from resources.settings import make_home

    state = make_home() / "sandbox"
    samples = repositories is None
    if repositories is None:
        from .samples import generate

        repositories = state / "repositories"
        generate(repositories)
    with running_sandbox(repositories, state, host=host, first_port=port, samples=samples) as sandbox:
        for name, value in sandbox.environment.items():
            console.print(f"export {name}='{value}'", markup=False, highlight=False)
        console.print("# serving until interrupted (Ctrl-C)", markup=False, highlight=False)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            console.print("# stopped", markup=False, highlight=False)


def _ports(state: Path, first_port: int) -> dict[str, int]:
    if first_port:
        return {service: first_port + offset for offset, service in enumerate(SERVICES)}
    remembered = state / "ports.json"
    if not remembered.exists():
        return {}
    try:
        known = json.loads(remembered.read_text(encoding="utf-8"))
        return {service: int(known[service]) % 65536 for service in SERVICES if service in known}
    except (ValueError, TypeError):
        # only a convenience: an unreadable record is ignored
        return {}


@contextmanager
def _first_of(state: Path) -> Iterator[bool]:
    """Return True if no other sandbox serves *state* now; the lock is released when a process ends in any way."""
    lock = FileLock(state / "ports.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _remember(state: Path, urls: Mapping[str, str]) -> None:
    ports = {service: int(url.rpartition(":")[2]) for service, url in urls.items()}
    write_atomically(state / "ports.json", json.dumps(ports).encode())


def environment_of(urls: Mapping[str, str], repositories: Path, *, samples: bool = False) -> dict[str, str]:
    """The settings that use services at *urls* over *repositories*; for the generated *samples*, SUITS_SAMPLES too."""
    return {
        "GITHUB_API_URL": urls["github"],
        "GITHUB_CLONE_URL": repositories.as_uri(),
        "GH_TOKENS": "sandbox",
        # stars and languages of a served folder are made up: nothing is excluded by them
        "FC_MINIMUM_STARS": "0",
        "FC_LANGUAGES": "any",
        "LLM_BASE_URL": f"{urls['model']}/v1",
        "LLM_MODEL": MODEL,
        "LLM_API_KEY": "sandbox",
        # a model that is served elsewhere is not to be asked for here
        **{name: MODEL if os.environ.get(name) == MODEL else "" for name in ASKED_OF_MODELS},
        "HF_ENDPOINT": urls["hub"],
        "HF_DATASET": "sandbox/formulacode",
        "HF_TOKEN": "sandbox",
        "FC_REGISTRY_URL": urls["registry"].removeprefix("http://"),
        **{name: os.environ.get(name) or value for name, value in SUITS_SAMPLES.items() if samples},
    }
