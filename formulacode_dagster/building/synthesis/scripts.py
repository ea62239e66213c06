"""Requests in shell scripts of a build context: Debian packages, requirements, variables, submodules.

Scripts are read, never run, and nothing is guessed: an install command that a recipe cannot hold is listed among the
parts left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from formulacode_dagster.building.declarations.conda_names import meaning_of
from formulacode_dagster.building.declarations.install_arguments import install_arguments
from formulacode_dagster.building.declarations.python_source import parse_requirement
from formulacode_dagster.models.recipe import Fix

_DEBIAN = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULT = re.compile(r"\$\{\w+:?-([^${}]*)\}")
_CONDA_PIN = re.compile(r"([A-Za-z0-9_.-]+)=([0-9][\w.]*)")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_BEFORE = frozenset({"!", "command", "do", "else", "exec", "if", "sudo", "then", "time"})
_OPTIONS_OF_RUN = frozenset({"-n", "--name", "-p", "--prefix", "--python"})
"""Options of `conda run` and `uv run` with a value."""
_INSTALLING = frozenset({"create", "install"})
_SYNCING = frozenset({"add", "install", "sync"})
_FROM_ELSEWHERE = {
    "conda": frozenset({"-f"}),
    "pip": frozenset({"-c", "-r", "--build-constraint", "--extra", "--group", "--override"}),
}
"""Options that name requirements, or bounds of them, in a file."""
_CHECKOUT = re.compile(r"[./]")
_MANAGERS = frozenset({"conda", "mamba", "micromamba", "pip", "pip3", "uv"})
_NOT_OURS = re.compile(r"(ASV|CONDA|FC|GIT|LD|MAMBA|PIP|PYTHON|UV)_\w+|CC|CXX|HOME|PATH|PYTHON\w*")
"""Variables that set origins of packages, or change the behaviour of every program."""
_TOOLS = frozenset({"asv", "asv-runner", "pip", "python"})
"""Measuring tools, and packages that the plan decides itself."""


@dataclass
class ScriptReading:
    """Requests of scripts in their order, and the commands left out."""

    apt_packages: list[str] = field(default_factory=list)
    requirements: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    build_arguments: list[str] = field(default_factory=list)
    submodules: bool = False
    left_out: list[str] = field(default_factory=list)

    def as_fixes(self, rule: str, evidence: str) -> tuple[Fix, ...]:
        """Return the requests as one fix; none if there are none."""
        fix = Fix(
            rule=rule,
            evidence=evidence,
            apt_packages=tuple(dict.fromkeys(self.apt_packages)),
            requirements=tuple(dict.fromkeys(self.requirements)),
            environment=self.environment,
            build_arguments=tuple(dict.fromkeys(self.build_arguments)),
            submodules=self.submodules,
        )
        return () if fix == Fix(rule=rule, evidence=evidence) else (fix,)


def read_scripts(scripts: Sequence[str]) -> ScriptReading:
    """Return the requests of *scripts*, run one after the other."""
    reading = ScriptReading()
    for script in scripts:
        for line, commands in _commands(script):
            for words in commands:
                _read(reading, words, line)
    return reading


def _commands(script: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each logical line with its simple commands; the content of a here-document is no command."""
    lines = iter(script.replace("\\\n", " ").splitlines())
    for line in lines:
        stripped = line.strip()
        if here := _HEREDOC.search(stripped):
            for inside in lines:
                if inside.strip() == here[1]:
                    break
        try:
            lexer = shlex.shlex(stripped, posix=True, punctuation_chars=";&|()")
            lexer.whitespace_split = True
            words = list(lexer)
        except ValueError:
            # a quotation that continues in the next line
            words = []
        commands: list[list[str]] = [[]]
        for word in words:
            if set(word) <= set(";&|()"):
                commands.append([])
            else:
                commands[-1].append(word)
        yield stripped, [command for command in map(_plain, commands) if command]


def _plain(words: list[str]) -> list[str]:
    """Return the command itself: without its prefixes and its environment."""
    while words and (words[0] in _BEFORE or re.match(r"\w+=", words[0])):
        words = words[1:]
    if words[:2] and words[0] in _MANAGERS and words[1:2] == ["run"]:
        words = words[2:]
        while words and words[0].startswith("-"):
            words = words[2:] if words[0] in _OPTIONS_OF_RUN else words[1:]
    return words[2:] if words[1:3] == ["-m", "pip"] else words


def _read(reading: ScriptReading, words: list[str], line: str) -> None:
    match words:
        case ["apt-get" | "apt", *rest] if "install" in rest:
            _apt(reading, [word for option, word in _arguments(rest, "apt") if not option], line)
        case ["apt-get" | "apt", *_]:
            return
        case ["uv", *rest] if {"pip", "install"} <= set(rest):
            _requirements(reading, _arguments(rest, "pip"), line, is_conda=False)
        case ["pip" | "pip3", *rest] if "install" in rest:
            _requirements(reading, _arguments(rest, "pip"), line, is_conda=False)
        case [("conda" | "mamba" | "micromamba"), "env", ("create" | "update"), *_]:
            reading.left_out.append(line)
        case ["conda" | "mamba" | "micromamba", *rest] if not _INSTALLING.isdisjoint(rest):
            _requirements(reading, _arguments(rest, "conda"), line, is_conda=True)
        case [("pdm" | "pipenv" | "pixi" | "poetry" | "uv"), *rest] if not _SYNCING.isdisjoint(rest):
            reading.left_out.append(line)
        case ["export", *assignments]:
            _export(reading, assignments, line)
        case ["git", *rest] if "submodule" in rest:
            reading.submodules = True
        case [("curl" | "git" | "patch" | "sed" | "wget"), *_]:
            reading.left_out.append(line)


def _arguments(words: Sequence[str], tool: str) -> Iterator[tuple[str, str]]:
    """Return the words after `install` with the option whose value each is."""
    after = next(place for place, word in enumerate(words) if word in _INSTALLING) + 1
    return install_arguments(words[after:], tool=tool)


def _apt(reading: ScriptReading, words: Sequence[str], line: str) -> None:
    names = [word.partition("=")[0] for word in words]
    reading.apt_packages += [name for name in names if _DEBIAN.fullmatch(name)]
    if any(not _DEBIAN.fullmatch(name) for name in names):
        reading.left_out.append(line)


def _requirements(reading: ScriptReading, arguments: Iterable[tuple[str, str]], line: str, *, is_conda: bool) -> None:
    words = list(arguments)
    has_checkout = any(option == "-e" or (not option and _CHECKOUT.match(word)) for option, word in words)
    for option, word in words:
        if option == "-C" and has_checkout and "$" not in word:
            reading.build_arguments.append(word)
        elif option == "-C" or option in _FROM_ELSEWHERE["conda" if is_conda else "pip"]:
            reading.left_out.append(f"{option} {word}: {line}")
        elif option == "-e" or (not option and _CHECKOUT.match(word)):
            # the checkout itself is installed anyway, without its extras
            if "[" in word or "$" in word[1:]:
                reading.left_out.append(f"{word}: {line}")
        elif not option:
            _requirement(reading, word, line, is_conda=is_conda)


def _requirement(reading: ScriptReading, word: str, line: str, *, is_conda: bool) -> None:
    pinned = _CONDA_PIN.fullmatch(word) if is_conda else None
    try:
        requirement = parse_requirement(f"{pinned[1]}=={pinned[2]}.*" if pinned else word)
    except InvalidRequirement:
        # a lock cannot hold an address or a variable
        reading.left_out.append(f"{word}: {line}")
        return
    meaning = meaning_of(requirement.name) if is_conda else None
    if requirement.url is not None or canonicalize_name(requirement.name) in _TOOLS:
        reading.left_out.append(f"{word}: {line}")
    elif meaning is not None and not meaning.project:
        reading.apt_packages += meaning.system_packages
    else:
        if meaning is not None:
            requirement.name = meaning.project
        reading.requirements.append(str(requirement))


def _export(reading: ScriptReading, assignments: Sequence[str], line: str) -> None:
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        value = _DEFAULT.sub(r"\1", value)
        if not separator or not _NAME.fullmatch(name):
            continue
        if "$" in value or "`" in value or _NOT_OURS.fullmatch(name):
            reading.left_out.append(line)
        else:
            reading.environment[name] = value
