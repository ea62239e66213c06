"""A build context as a folder, in the layout of the predecessor: a Dockerfile and `docker_build_*.sh`.

An imported folder becomes a recipe, which is then built and verified like every other, and a recipe is exported as such
a folder. An exported folder holds `recipe.json`, too: while its scripts are unchanged, importing it restores exactly
that recipe.
"""

from __future__ import annotations

import ast
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter, ValidationError

from formulacode_dagster.building.declarations.python_source import parse_python
from formulacode_dagster.building.images.recipes import IMPORTED_RULE
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.recipe import Fix, StoredContext
from formulacode_dagster.operating.files.atomic import write_atomically
from formulacode_dagster.operating.files.regular_files import is_regular_file, read_regular_file

from .scripts import ScriptReading, read_scripts

DOCKERFILES = ("Dockerfile", "Dockerfile.base", "Dockerfile.repo", "Dockerfile.pr")
SCRIPTS = tuple(f"docker_build_{name}.sh" for name in ("base", "env", "pkg", "run", "final"))
TASK, RECIPE, LOCK = "task.txt", "recipe.json", "requirements.txt"
_OTHERS = ("entrypoint.sh", "profile.sh", "run_tests.sh", "run-tests.sh", TASK, RECIPE, LOCK)
MOST_BYTES = 1 << 20
_FIXES = TypeAdapter(tuple[Fix, ...])


@dataclass(frozen=True)
class DockerContext:
    """The files of a build context, by name."""

    files: Mapping[str, str]
    name: str = ""
    """Name of the folder."""
    stored: StoredContext | None = field(default=None, repr=False)
    """The row it belongs to, if any."""

    @classmethod
    def from_directory(cls, path: str | Path) -> Self:
        """Read the files of *path* that belong to a context; links are not followed, other files are ignored.

        Raises ConfigurationError if there is neither a Dockerfile nor a script, or for files that are not text.
        """
        folder = Path(path)
        files = {
            name: _read(folder / name) for name in (*DOCKERFILES, *SCRIPTS, *_OTHERS) if is_regular_file(folder / name)
        }
        if not files.keys() & {*DOCKERFILES, *SCRIPTS}:
            raise ConfigurationError(
                f"{folder} is not a build context", why=f"it has neither a Dockerfile nor {SCRIPTS[0]} or the like"
            )
        return cls(files, folder.resolve().name)

    @classmethod
    def of(cls, context: StoredContext, spec: BuildSpec | None = None) -> Self:
        """Return the folder of *context*: its imported files, else files written from its fixes and *spec*."""
        if context.files:
            return cls(context.files, context.made_by, context)
        files = _scripts_of(context, spec)
        recipe = {"scripts": _digest(files), "fixes": [fix.model_dump(mode="json") for fix in context.fixes]}
        files[RECIPE] = json.dumps(recipe, indent=1, sort_keys=True) + "\n"
        return cls(files, context.context_id, context)

    def to_directory(self, path: str | Path) -> Path:
        """Write all files into *path*, which is created if it is missing; return it."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            write_atomically(folder / name, text.encode())
            if name.endswith(".sh"):
                (folder / name).chmod(0o755)
        return folder

    @property
    def dockerfile(self) -> str:
        """The Dockerfile, `` if there is none."""
        return self.files.get("Dockerfile", "")

    @property
    def task(self) -> dict[str, str]:
        """`owner`, `repo` and `sha`, as far as task.txt has them; it is parsed as an expression, and not run."""
        try:
            body = parse_python(self.files.get(TASK, "").strip()).body
        except (SyntaxError, ValueError, RecursionError):
            return {}
        match body:
            case [ast.Expr(value=ast.Call(keywords=keywords))]:
                known = {word.arg: word.value.value for word in keywords if isinstance(word.value, ast.Constant)}
            case _:
                return {}
        return {name: value for name in ("owner", "repo", "sha") if isinstance(value := known.get(name), str)}

    def recipe(self) -> tuple[tuple[Fix, ...], ScriptReading]:
        """Return the requests of its scripts as fixes, and the parts left out."""
        fixes = self._given_out()
        if fixes is not None:
            return tuple(_imported(fix) for fix in fixes), ScriptReading()
        reading = read_scripts([self.files[name] for name in SCRIPTS if name in self.files])
        return reading.as_fixes(f"{IMPORTED_RULE}{self.name}", "its scripts ask for it"), reading

    def _given_out(self) -> tuple[Fix, ...] | None:
        try:
            recipe = json.loads(self.files.get(RECIPE, "null"))
            if not isinstance(recipe, dict) or recipe.get("scripts") != _digest(self.files):
                return None
            return _FIXES.validate_python(recipe.get("fixes"))
        except (json.JSONDecodeError, ValidationError):
            return None


def _imported(fix: Fix) -> Fix:
    is_imported = fix.rule.startswith(IMPORTED_RULE)
    return fix if is_imported else fix.model_copy(update={"rule": f"{IMPORTED_RULE}{fix.rule}"})


def _digest(files: Mapping[str, str]) -> str:
    scripts = {name: text for name, text in files.items() if name in (*DOCKERFILES, *SCRIPTS)}
    return hashlib.sha256(json.dumps(scripts, sort_keys=True).encode()).hexdigest()


def _scripts_of(context: StoredContext, spec: BuildSpec | None) -> dict[str, str]:
    fixes = context.fixes
    packages = spec.apt_packages if spec else tuple(name for fix in fixes for name in fix.apt_packages)
    variables = spec.build_environment if spec else {k: v for fix in fixes for k, v in fix.environment.items()}
    commands = spec.commands if spec else tuple(command for fix in fixes for command in fix.commands)
    settings = spec.build_arguments if spec else tuple(text for fix in fixes for text in fix.build_arguments)
    install = [
        "python",
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-build-isolation",
        *(f"-C{text}" for text in settings),
    ]
    wanted = [text for fix in fixes for text in (*fix.requirements, *fix.constraints)]
    owner, _, repo = context.repository.partition("/")
    run = [f"(cd {shlex.quote(command.folder)} && {shlex.join(command.argv)})" for command in commands]
    files = {
        "Dockerfile": _DOCKERFILE.format(
            os_image=spec.os_image.replace("{python}", spec.python) if spec else "python:3-slim-bookworm",
            repository=context.repository,
            sha=context.base_sha,
            scripts=" ".join(SCRIPTS[:4]),
            lock=f" {LOCK}" if spec else "",
        ),
        "docker_build_base.sh": _script(
            ["apt-get update", f"apt-get install -y --no-install-recommends {shlex.join(packages)}"] if packages else []
        ),
        "docker_build_env.sh": _script(
            [f"python -m pip install --no-deps --require-hashes -r /build/{LOCK}"] if spec else [],
            [f"python -m pip install {shlex.join(wanted)}"] if wanted and spec is None else [],
        ),
        "docker_build_pkg.sh": _script(
            ["cd /workspace/repo"],
            [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())],
            ["git submodule update --init --recursive"] if any(fix.submodules for fix in fixes) else [],
            run,
            [f"{shlex.join(install)} {_root(spec)}"],
        ),
        "docker_build_run.sh": _script(["cd /workspace/repo", "git status --short"]),
        TASK: f"Task(owner={owner!r}, repo={repo!r}, sha={context.base_sha!r})\n",
    }
    return {**files, LOCK: spec.lock} if spec else files


def _root(spec: BuildSpec | None) -> str:
    return shlex.quote(f"./{spec.package_root}") if spec and spec.package_root != "." else "."


def _script(*parts: Sequence[str]) -> str:
    return "\n".join(["#!/usr/bin/env bash", "set -euo pipefail", *(line for part in parts for line in part), ""])


_DOCKERFILE = """\
FROM {os_image}
ARG REPO_URL=https://github.com/{repository}.git
ARG COMMIT_SHA={sha}
WORKDIR /build
COPY {scripts}{lock} /build/
RUN bash docker_build_base.sh
RUN git clone "$REPO_URL" /workspace/repo && git -C /workspace/repo checkout --detach "$COMMIT_SHA"
RUN bash docker_build_env.sh && bash docker_build_pkg.sh && bash docker_build_run.sh
WORKDIR /workspace/repo
"""


def _read(path: Path) -> str:
    try:
        return read_regular_file(path, MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} cannot be read", why=str(error)) from error
