"""`fc-data sandbox`, a GitHub, a model, a Hub and a registry on localhost; and the demo's, for commands after it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from formulacode_dagster.models.errors import ConfigurationError

from .console import complaints, console

OFFLINE_SOURCE = "FC_OFFLINE_SOURCE"


def sandbox(
    repositories: Annotated[
        Path | None, typer.Option(help="Folder of bare repositories owner/name.git.", show_default="the samples")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on, or a name of this machine.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65532, help="First of four ports; 0: those of the last time, or free ones.")
    ] = 0,
) -> None:
    """Serve a GitHub, a model, a Hub and a registry on localhost until interrupted."""
    from sandbox.session import serve_until_interrupted

    serve_until_interrupted(console, repositories, host, port)


@contextmanager
def demo_services(*, quiet: bool = False) -> Iterator[None]:
    """Start the sandbox of FC_HOME and use it, if the demo was run there and the user configured no outside system.

    Reports it on standard error; unless *quiet*, also that a configured system keeps it from being started.
    """
    from resources.settings import read_settings

    try:
        state = read_settings().home / "sandbox"
    except ConfigurationError:
        # the command reports it
        yield
        return
    if not (state / "repositories").is_dir():
        yield
        return
    with sandbox_unless_set(state, quiet=quiet):
        yield


@contextmanager
def sandbox_unless_set(state: Path, *, quiet: bool = False) -> Iterator[None]:
    """Start the sandbox over the repositories in *state*, and use its settings; not if a system is configured."""
    from sandbox.session import TAKES_THE_PLACE_OF, running_sandbox

    taken = [name for name in (*TAKES_THE_PLACE_OF, OFFLINE_SOURCE) if os.environ.get(name)]
    if taken:
        if not quiet:
            complaints.print(f"not serving the sandbox, though the demo was run: {', '.join(taken)} set")
        yield
        return
    with running_sandbox(state / "repositories", state, samples=True) as sandbox:
        given = {name: value for name, value in sandbox.environment.items() if not os.environ.get(name)}
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        complaints.print(
            "serving the sandbox too, since the demo was run and no outside system is set", highlight=False
        )
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def with_demo_services(command: Callable[..., None]) -> Callable[..., None]:
    """Return *command* with `demo_services`; not for a run from files, whose repositories are no samples."""

    @functools.wraps(command)
    def call(**options: Any) -> None:
        if options.get("offline_source") is not None:
            command(**options)
            return
        with demo_services(quiet=True):
            command(**options)

    return call
