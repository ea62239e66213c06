"""The asv configuration of a suite: where it is, and what it says, read as asv reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import regex
from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .tree import Tree, join

FILE_NAMES = ("asv.conf.json", "asv.conf.jsonc")
"""The names asv looks for, in its order."""

MATCH_SECONDS = 1.0
"""How long one pattern of a repository may take: the file is anybody's."""

_MATRIX_KINDS = ("req", "env", "env_nobuild")
_BARE = ("python", "environment_type", "sys_platform")

Values = tuple[str | None, ...]
"""Values of one matrix key: `` means any version, None means that the key is absent."""


class Matrix(Frozen):
    """asv's `matrix`, with the old form (package → versions) read as `req`."""

    req: dict[str, Values] = Field(default_factory=dict, description="package → versions")
    env: dict[str, Values] = Field(default_factory=dict, description="variables of build and benchmark runs")
    env_nobuild: dict[str, Values] = Field(default_factory=dict, description="variables of benchmark runs only")


class Rule(Frozen):
    """One entry of `include` or `exclude`. Values are regular expressions in `exclude`, plain in `include`."""

    python: str | None = None
    environment_type: str | None = None
    sys_platform: str | None = None
    req: dict[str, str | None] = Field(default_factory=dict)
    env: dict[str, str | None] = Field(default_factory=dict)
    env_nobuild: dict[str, str | None] = Field(default_factory=dict)


class AsvConfig(Frozen):
    """What an asv.conf.json says, as far as an environment depends on it."""

    path: str = Field(description="path of the file below the repository")
    project: str = ""
    repo: str = ""
    repo_subdir: str = ""
    pythons: tuple[str, ...] = Field(default=(), description="as written; empty when asv would take its own")
    matrix: Matrix = Matrix()
    include: tuple[Rule, ...] = ()
    exclude: tuple[Rule, ...] = ()
    build_command: tuple[str, ...] | None = None
    install_command: tuple[str, ...] | None = None
    benchmark_dir: str = Field(description="folder of the benchmarks below the repository")
    environment_type: str = ""
    conda_environment_file: str = Field(default="", description="as written; `IGNORE` for none, not even the usual one")

    @property
    def folder(self) -> str:
        """Folder of the configuration file, `.` for the top."""
        return self.path.rpartition("/")[0] or "."


def find_config(tree: Tree) -> str | None:
    """Path of the asv configuration: at the top first, else the shallowest, else the first by name. None: no suite."""
    return nearest_config(tree.files)


def nearest_config(paths: Iterable[str]) -> str | None:
    """Of the files *paths* of a commit the asv configuration that is nearest to the top; None when there is none."""
    found = [path for path in paths if path.rpartition("/")[2] in FILE_NAMES]
    return min(found, key=lambda path: (path.count("/"), path), default=None)


def read_config(tree: Tree, path: str) -> AsvConfig:
    """Read the configuration at *path*; comments and trailing commas are allowed, unknown keys ignored.

    Raises ItemFailure (`asv_config`) when it is not an object of the form asv accepts.
    """
    import json5

    text = tree.text(path)
    if text is None:
        raise _malformed(path, "there is no such file")
    try:
        data = json5.loads(text)
    except (ValueError, RecursionError) as error:
        raise _malformed(path, str(error).splitlines()[0]) from error
    if not isinstance(data, dict):
        raise _malformed(path, "it is not an object")
    folder = path.rpartition("/")[0] or "."
    benchmark_dir = join(folder, _string(path, data, "benchmark_dir") or "benchmarks")
    if benchmark_dir is None:
        raise _malformed(path, "benchmark_dir lies outside the repository")
    return AsvConfig(
        path=path,
        project=_string(path, data, "project"),
        repo=_string(path, data, "repo"),
        repo_subdir=_string(path, data, "repo_subdir"),
        pythons=tuple(_plain(path, "pythons", item) or "" for item in _sequence(data.get("pythons"))),
        matrix=_matrix(path, data.get("matrix") or {}),
        include=tuple(_rule(path, "include", item) for item in _sequence(data.get("include"))),
        exclude=tuple(_rule(path, "exclude", item) for item in _sequence(data.get("exclude"))),
        build_command=_commands(path, data, "build_command"),
        install_command=_commands(path, data, "install_command"),
        benchmark_dir=benchmark_dir,
        environment_type=_string(path, data, "environment_type"),
        conda_environment_file=_string(path, data, "conda_environment_file"),
    )


def excluded(config: AsvConfig, python: str, chosen: Mapping[tuple[str, str], str | None]) -> bool:
    """Whether an `exclude` rule matches the combination *chosen* of (kind, key) → value on *python*."""
    target = {**chosen, ("python", ""): python, **_platform(config)}
    return any(_matches(target, _wanted(rule)) for rule in config.exclude)


def applies(config: AsvConfig, rule: Rule) -> bool:
    """Whether an `include` entry is for this platform and kind of environment."""
    wanted = {place: pattern for place, pattern in _wanted(rule).items() if place in _platform(config)}
    return _matches(_platform(config), wanted)


def _platform(config: AsvConfig) -> dict[tuple[str, str], str | None]:
    return {("environment_type", ""): config.environment_type or "virtualenv", ("sys_platform", ""): "linux"}


def _wanted(rule: Rule) -> dict[tuple[str, str], str | None]:
    wanted: dict[tuple[str, str], str | None] = {}
    for name in _BARE:
        value = getattr(rule, name)
        if value is not None:
            wanted[name, ""] = value
    for kind in _MATRIX_KINDS:
        wanted.update({(kind, key): value for key, value in getattr(rule, kind).items()})
    return wanted


def _matches(target: Mapping[tuple[str, str], str | None], wanted: Mapping[tuple[str, str], str | None]) -> bool:
    """As asv matches rules: every pattern from the first character to the last; null for what is absent."""
    for place, pattern in wanted.items():
        actual = target.get(place)
        if pattern is None or actual is None:
            if pattern is not actual:
                return False
            continue
        try:
            found = regex.match(pattern, actual, timeout=MATCH_SECONDS)
        except TimeoutError as error:
            raise ItemFailure(
                FailureKind.ASV_CONFIG,
                f"the pattern {pattern[:60]!r} of an `exclude` cannot be matched",
                why=f"it takes more than {MATCH_SECONDS:g} s on {actual[:60]!r}",
                remedy="It repeats a repetition: such a file is as good as unreadable",
            ) from error
        if found is None or found.end() != len(actual):
            return False
    return True


def _malformed(path: str, why: str) -> ItemFailure:
    return ItemFailure(
        FailureKind.ASV_CONFIG, f"{path} cannot be read", why=why, remedy="asv itself would refuse this file"
    )


def _sequence(value: object) -> list[object]:
    """*value* as asv takes a list: a lone value stands for a list of one, null for none."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _plain(path: str, key: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise _malformed(path, f"{key} holds {type(value).__name__} where a string belongs")


def _string(path: str, data: Mapping[str, object], key: str) -> str:
    return _plain(path, key, data.get(key)) or ""


def _commands(path: str, data: Mapping[str, object], key: str) -> tuple[str, ...] | None:
    if data.get(key) is None:
        return None
    return tuple(_plain(path, key, item) or "" for item in _sequence(data[key]))


def _matrix(path: str, data: object) -> Matrix:
    if not isinstance(data, dict):
        raise _malformed(path, "matrix is not an object")
    parts = _by_kind(path, "matrix", data)
    return Matrix(
        **{kind: {key: _values(path, key, value) for key, value in part.items()} for kind, part in parts.items()}
    )


def _values(path: str, key: str, value: object) -> Values:
    if value == []:
        return ("",)
    return tuple(_plain(path, f"matrix {key}", item) for item in (value if isinstance(value, list) else [value]))


def _rule(path: str, name: str, data: object) -> Rule:
    if not isinstance(data, dict):
        raise _malformed(path, f"{name} holds something that is not an object")
    bare = {key: _plain(path, name, data[key]) for key in _BARE if key in data}
    rest = {key: value for key, value in data.items() if key not in bare}
    parts = {
        kind: {key: _plain(path, name, value) for key, value in part.items()}
        for kind, part in _by_kind(path, name, rest).items()
    }
    for pattern in (*bare.values(), *(value for part in parts.values() for value in part.values())):
        try:
            regex.compile(pattern or "" if name == "exclude" else "")
        except regex.error as error:
            raise _malformed(path, f"{name} holds {pattern!r}, which is no regular expression: {error}") from error
    return Rule(**bare, **parts)


def _by_kind(path: str, name: str, data: Mapping[str, object]) -> dict[str, dict[str, object]]:
    if not any(kind in data for kind in _MATRIX_KINDS):
        return {"req": {str(key): value for key, value in data.items()}}
    strange = sorted(set(data) - set(_MATRIX_KINDS))
    if strange:
        raise _malformed(path, f"{name} mixes {', '.join(strange)} with req, env and env_nobuild")
    parts: dict[str, dict[str, object]] = {}
    for kind in _MATRIX_KINDS:
        part = data.get(kind) or {}
        if not isinstance(part, dict):
            raise _malformed(path, f"{name} {kind} is not an object")
        parts[kind] = {str(key): value for key, value in part.items()}
    return parts
