"""Requests in shell scripts of a build context: Debian packages, requirements, variables, submodules.

Scripts are read, never run, and nothing is guessed: an install command that a recipe cannot hold is listed among the
parts left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
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
    if re.fullmatch(r"(.*/)?python[\d.]*", words[0] if words else "") and words[1:3] == ["-m", "pip"]:
        words = words[2:]
    return words


def _read(reading: ScriptReading, words: list[str], line: str) -> None:
    match words:
        case ["apt-get" | "apt", *rest] if "install" in rest:
            _apt(reading, _installed(rest, "apt"), line)
        case ["apt-get" | "apt", *_]:
            return
        case ["uv", "pip", *rest] | ["pip" | "pip3", *rest] if rest[:1] == ["install"]:
            _requirements(reading, _installed(rest, "pip"), line, is_conda=False)
        case ["conda" | "mamba" | "micromamba", *rest] if "install" in rest:
            _requirements(reading, _installed(rest, "conda"), line, is_conda=True)
        case ["export", *assignments]:
            _export(reading, assignments, line)
        case ["git", *rest] if "submodule" in rest:
            reading.submodules = True
        case [("curl" | "git" | "patch" | "sed" | "wget"), *_]:
            reading.left_out.append(line)


def _installed(words: Sequence[str], tool: str) -> list[str]:
    """Return the words after `install` that are neither options nor values of options."""
    after = words[words.index("install") + 1 :]
    return [word for option, word in install_arguments(after, tool=tool) if not option]


def _apt(reading: ScriptReading, words: Sequence[str], line: str) -> None:
    names = [word.partition("=")[0] for word in words]
    reading.apt_packages += [name for name in names if _DEBIAN.fullmatch(name)]
    if any(not _DEBIAN.fullmatch(name) for name in names):
        reading.left_out.append(line)


def _requirements(reading: ScriptReading, words: Sequence[str], line: str, *, is_conda: bool) -> None:
    for word in words:
        text = word
        if is_conda:
            pinned = _CONDA_PIN.fullmatch(word)
            text = f"{pinned[1]}=={pinned[2]}.*" if pinned else word
        try:
            requirement = parse_requirement(text)
        except InvalidRequirement:
            # the checkout itself is installed anyway; a lock cannot hold an address or a variable
            if not re.match(r"\.|\$|/", word):
                reading.left_out.append(f"{word}: {line}")
            continue
        meaning = meaning_of(requirement.name) if is_conda else None
        if meaning is not None and not meaning.project:
            reading.apt_packages += meaning.system_packages
        elif requirement.url is not None or canonicalize_name(requirement.name) in _TOOLS:
            reading.left_out.append(f"{word}: {line}")
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
