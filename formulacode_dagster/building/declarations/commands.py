"""Facts from asv's `build_command` and `install_command`: extras, packages, variables, and steps before the install."""

from __future__ import annotations

import posixpath
import re
import shlex

from pydantic import Field, ValidationError

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.recipe import Command, OnFailure

from .asv_config import AsvConfig
from .declared_requirement import DeclaredRequirement, read_requirements_file
from .install_arguments import install_arguments
from .tree import Tree, join

_ASSIGNMENT = re.compile(r"^(?P<name>[A-Za-z_][\w-]*)=(?P<value>.*)$", re.DOTALL)
_SELF = re.compile(
    r"^(?P<path>\{wheel_file\}|\{build_dir\}[^\[]*|\{conf_dir\}|\.[^\[]*|\{build_cache_dir\}[^\[]*)(\[(?P<extras>[^\]]*)\])?$"
)
_PLACEHOLDER = re.compile(r"\{\w+\}")
_NETWORK_TOOLS = frozenset({"apt", "apt-get", "curl", "git", "svn", "wget", "yum"})
_INSTALLERS = frozenset({"pip", "build", "uv", "virtualenv"})


class CommandReading(Frozen):
    """The facts behind the commands."""

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = Field(default=(), description="PEP 735 groups named by `--group`")
    requirements: tuple[DeclaredRequirement, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict, description="variables set in front of a build command")
    steps: tuple[Command, ...] = Field(default=(), description="to run before the package is installed")
    package_folder: str = Field(default="", description="folder below asv's build folder that is installed")
    notes: tuple[str, ...] = ()


class _Reader:
    def __init__(self, tree: Tree, config: AsvConfig, build_folder: str) -> None:
        self.tree = tree
        self.config = config
        self.build_folder = build_folder
        self.extras: dict[str, None] = {}
        self.groups: dict[str, None] = {}
        self.files: set[str] = set()
        self.requirements: list[DeclaredRequirement] = []
        self.environment: dict[str, str] = {}
        self.steps: list[Command] = []
        self.package_folder = ""
        self.installs_wheel = False
        self.notes: list[str] = []

    def read(self, command: str, source: str, *, is_build: bool) -> None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            self.notes.append(f"{source}: {command!r} is no command ({error}): left out")
            return
        folder = ""
        while words and (match := _ASSIGNMENT.match(words[0])):
            words.pop(0)
            if match["name"] == "in-dir":
                folder = match["value"]
            elif match["name"] != "return-code" and not match["name"].startswith("PIP_") and is_build:
                self.environment[match["name"]] = match["value"]
        words = _without_interpreter(words)
        if not words:
            return
        tool, arguments = words[0], words[1:]
        if tool in ("pip", "uv") and (arguments[:1] in (["install"], ["wheel"]) or arguments[:2] == ["pip", "install"]):
            self._pip(arguments[1:] if arguments[0] != "pip" else arguments[2:], source)
        elif tool in ("conda", "mamba") and "install" in arguments:
            self.notes.append(f"{source}: {command!r} installs with conda: left out")
        elif tool in ("pip", "build", "setup.py", "uv", "conda", "mamba"):
            return
        elif is_build:
            self._step(words, folder, source)

    def _pip(self, arguments: list[str], source: str) -> None:
        for option, word in install_arguments(arguments):
            if option == "-r":
                self._requirements_file(word, source)
            elif option == "--group":
                self.groups[word] = None
            elif option in ("", "-e"):
                self._package(word, source)

    def _requirements_file(self, name: str, source: str) -> None:
        path = self._place(name)
        if path in self.files:
            return
        requirements = read_requirements_file(self.tree, path, seen=self.files) if path is not None else ()
        if not requirements:
            self.notes.append(f"{source} names {name}, which holds no requirement here")
        self.requirements.extend(requirements)

    def _package(self, word: str, source: str) -> None:
        match = _SELF.match(word)
        if match is not None:
            self.extras.update(
                dict.fromkeys(item.strip() for item in (match["extras"] or "").split(",") if item.strip())
            )
            below = match["path"].removeprefix("{build_dir}").strip("./")
            if match["path"] == "{wheel_file}":
                self.installs_wheel = True
            if below and "{" not in below and self.tree.below(join(self.build_folder, below) or "."):
                self.package_folder = below
        elif word.lower().split("=")[0].strip("<>!~") not in _INSTALLERS:
            self.requirements.append(DeclaredRequirement(text=word, source=source))

    def _place(self, name: str) -> str | None:
        relative = name.replace("{build_dir}/", "").replace("{conf_dir}/", "")
        return join(self.config.folder if "{conf_dir}" in name else self.build_folder, relative)

    def _step(self, words: list[str], folder: str, source: str) -> None:
        line = shlex.join(words) if not any("{" in word for word in words) else " ".join(words)
        line = line.replace("{build_dir}", ".").replace(
            "{conf_dir}", posixpath.relpath(self.config.folder, self.build_folder)
        )
        where = folder.replace("{build_dir}", ".").replace("{conf_dir}", self.config.folder)
        if _PLACEHOLDER.search(line) or _PLACEHOLDER.search(where):
            self.notes.append(f"{source}: {line!r} depends on asv's own folders: left out")
            return
        if words[0].rpartition("/")[2] in _NETWORK_TOOLS:
            self.notes.append(f"{source}: {line!r} needs the network, which a build does not have: left out")
            return
        place = join(self.build_folder, where or ".") or "."
        try:
            argv = tuple(shlex.split(line))
            self.steps.append(Command(argv=argv, folder=place, on_failure=OnFailure.STOP, source=source))
        except ValidationError as error:
            self.notes.append(f"{source}: {line!r} is left out: {error.errors()[0]['msg']}")


def _without_interpreter(words: list[str]) -> list[str]:
    """`python -m pip …`, `python -mpip …`, `python setup.py …` as `pip …`, `setup.py …`; other commands unchanged."""
    if not words or not re.fullmatch(r"(\{env_dir\}/bin/)?(python[\d.]*|\{python\}|py)", words[0]):
        return words
    rest = words[1:]
    while rest and rest[0] in ("-u", "-I", "-s", "-E", "-B"):
        rest = rest[1:]
    if rest[:1] == ["-m"]:
        return rest[1:] if rest[1:2] and rest[1] in ("pip", "build", "uv") else words
    if rest and rest[0].startswith("-m") and rest[0][2:] in ("pip", "build", "uv"):
        return [rest[0][2:], *rest[1:]]
    if rest and rest[0].rpartition("/")[2] == "setup.py":
        return ["setup.py", *rest[1:]]
    return words


def read_commands(tree: Tree, config: AsvConfig) -> CommandReading:
    """Read the commands of *config*. Building and installing the package itself is left to the image."""
    reader = _Reader(tree, config, join(".", config.repo_subdir or ".") or ".")
    for command in config.build_command or ():
        reader.read(command, f"{config.path}:build_command", is_build=True)
    built_folder = reader.package_folder
    for command in config.install_command or ():
        reader.read(command, f"{config.path}:install_command", is_build=False)
    return CommandReading(
        extras=tuple(reader.extras),
        groups=tuple(reader.groups),
        requirements=tuple(reader.requirements),
        environment=reader.environment,
        steps=tuple(reader.steps),
        package_folder=built_folder if reader.installs_wheel else reader.package_folder,
        notes=tuple(reader.notes),
    )
