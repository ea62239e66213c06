"""Starting git: a clean environment, a time limit, bytes in and out."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.cancellation.programs import run_program

CONFIGURATION = Path(__file__).with_name("gitconfig")
SECONDS = 120.0
STDERR_KEPT = 4000

_PASSED_ON = (
    "PATH",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
)


class GitError(Exception):
    """git ended with an error, or was ended. Never leaves it: `faults.translate` makes a domain error of it."""

    def __init__(
        self, arguments: tuple[str, ...], code: int, stderr: str, *, timed_out: bool = False, too_long: bool = False
    ) -> None:
        self.arguments = arguments
        self.code = code
        self.stderr = stderr
        self.timed_out = timed_out
        self.too_long = too_long
        super().__init__(f"git {arguments[0]}: {stderr}")


def environment() -> dict[str, str]:
    """Environment variables that git may see: paths of programs, proxies, and our own configuration."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return kept | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(CONFIGURATION),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "HOME": "/nonexistent",
        "LC_ALL": "C",
    }


def program() -> str:
    """Path of git; raises ConfigurationError when this machine has none."""
    path = shutil.which("git")
    if path is None:
        raise ConfigurationError("git is not on PATH", remedy="Install git 2.36 or newer")
    return path


def git(
    directory: Path | None,
    *arguments: str,
    stdin: bytes | None = None,
    extra: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
    most: int | None = None,
    into: IO[bytes] | None = None,
) -> bytes:
    """Run git on the repository *directory*; returns its standard output, or writes it to the file *into*.

    Raises GitError, also after *seconds*, and as soon as the output is longer than *most* bytes; *most* is for commands
    that read nothing from *stdin*. Raises Stopped when the run is to stop.
    """
    variables = environment() | dict(extra or {})
    if directory is not None:
        variables["GIT_DIR"] = str(directory)
    try:
        done = run_program(
            [program(), *arguments], timeout=seconds, stdin=stdin, environment=variables, into=into, most=most
        )
    except subprocess.TimeoutExpired:
        raise GitError(arguments, -1, f"ended after {seconds:.0f} s", timed_out=True) from None
    if most is not None and len(done.stdout) > most:
        raise GitError(arguments, -1, f"its output is longer than {most} bytes", too_long=True)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[-STDERR_KEPT:]
        raise GitError(arguments, done.returncode, said)
    return done.stdout
